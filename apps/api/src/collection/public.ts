export { collectionSummaryOf, collectionSummarySelect } from './read-collections.ts'
