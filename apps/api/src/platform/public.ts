/** What other nouns may import, apart from the schemas. */
export { isPlatformOperator } from './platform-operator.ts'
