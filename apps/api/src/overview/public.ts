export { getOverview, nameScope } from './get-overview.ts'
