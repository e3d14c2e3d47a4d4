export { edgeSummaryOf, edgeSummarySelect, heartbeatOf, onlineEdgeFilter } from './rows.ts'
