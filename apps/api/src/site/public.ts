export { requireReportedSet } from './boot-program-sets.ts'
export { chooseForCollection, chooseForDevice } from './choose-boot-programs.ts'
