/** What other nouns may import, apart from the schemas. */
export { edgeSummaryOf, edgeSummarySelect, heartbeatOf, onlineEdgeFilter } from './rows.ts'
