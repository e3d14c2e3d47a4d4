export { createVdisk, removeVdisk } from './change-vdisk.ts'
export { withVdiskHeld } from './hold-vdisk.ts'
export { discardMaintenance, sealVersion, startMaintenance } from './maintain-version.ts'
export { importVersion } from './make-version.ts'
export {
  changedVersionNow,
  changeVdiskVersions,
  changeVersion,
  conflict,
  nextVersions,
  type OpenVersion,
} from './open-version.ts'
export { takeStep } from './release-version.ts'
export { onlyVisible, versionHolders } from './remove-version.ts'
export { runningDevices, seesEdgesOf } from './tally-devices.ts'
export { readAtEdges } from './version-detail.ts'
export {
  type ChoicesJson,
  choicesJson,
  readResolved,
  readVersions,
  resolvedOf,
  versionChoicesSelect,
  versionFactsSelect,
  writeVersions,
} from './version-facts.ts'
export { apply } from './version-steps.ts'
export { type PromotionRow, promotionsName, readPromotion, vdiskChange } from './waiting-promotion.ts'
