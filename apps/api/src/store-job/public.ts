export { cancelStoreJob } from './change-jobs.ts'
