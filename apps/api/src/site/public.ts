export { chooseForCollection, chooseForDevice, requireReportedSet } from './choose-boot-programs.ts'
