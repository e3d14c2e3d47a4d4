/** Jobs that run automatically, in one API process at a time; `migrate` creates a queue for each. */
export const jobNames = [
  'drop old captures',
  'make boot partitions',
  'drop old boots',
  'keep schedules',
  'drop old answers',
  'empty the trash',
  'tell silent edges',
  'drop old deliveries',
  'delete organizations',
  'remove old audit entries',
  'release versions',
  'drop old store jobs',
] as const

export type JobName = (typeof jobNames)[number]
