export { requireRelease, setWantedRelease } from './order-release.ts'
export { edgeSummaryOf, edgeSummarySelect, heartbeatOf, onlineEdgeFilter } from './rows.ts'
