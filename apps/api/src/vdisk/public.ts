export { createVdisk, removeVdisk } from './change-vdisk.ts'
export { withVdiskHeld } from './hold-vdisk.ts'
export { discardMaintenance, sealVersion, startMaintenance } from './maintain-version.ts'
export { importVersion } from './make-version.ts'
export { changeVdiskVersions } from './open-version.ts'
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
} from './version-facts.ts'
