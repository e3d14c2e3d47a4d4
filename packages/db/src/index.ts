/** The database for programs: `createDb`, `inOrganization`, row types, and the listener of its notifications. */
export { requireApiRole } from './api-role.ts'
export { createDb, type Db, type DbTransaction, defaultConnectionsMax, openDb, sendPrepared } from './client.ts'
export { BootOutcome, Prisma, Role, UnknownDevices } from './generated/client.ts'
export { inOrganization, type OrganizationOptions, type TenantDb } from './in-organization.ts'
export type { JobName } from './job-queue.ts'
export { type DoneJob, type JobEvents, type JobQueue, openJobQueue } from './job-queue.ts'
export { listen, type NotificationListener } from './notification-listener.ts'
export type { EndedQuery, OnQuery } from './organization-client.ts'
