/** What other nouns may import, apart from the schemas. */
export { collectionSummaryOf, collectionSummarySelect } from './list-collections.ts'
