/** What other nouns may import, apart from the schemas. */
export { edgeInstallation } from './edge-release.ts'
