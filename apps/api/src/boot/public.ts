/** What other nouns may import, apart from the schemas. */
export { type BootTimes, daysBefore, fillDays } from './boot-times.ts'
export { readBootDays, readNewestBoots } from './newest-boots.ts'
export { findBoot, readPlainBoots } from './read-boots.ts'
export { bootSummaryOf } from './rows.ts'
export { reportedWaitOf, type WaitEdgeJson, type WaitJson, waitEdgeJson, waitEdgeOf, waitsJson } from './waits.ts'
