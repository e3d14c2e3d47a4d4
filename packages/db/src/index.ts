/** The database for programs: `createDb`, row types, and the listener of its notifications. */
export { createDb, type Db, type DbTransaction } from './client.ts'
export { BootOutcome, Prisma, Role, UnknownDevices } from './generated/client.ts'
export { listen, type NotificationListener } from './notification-listener.ts'
