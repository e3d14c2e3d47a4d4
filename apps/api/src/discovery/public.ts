/** What other nouns may import, apart from the schemas. */
export { forgetDiscovered, lockSite, type SitePlace } from './rows.ts'
