export { forgetDiscovered, lockSite, type SitePlace } from './rows.ts'
