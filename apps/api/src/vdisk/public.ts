export { withVdiskHeld } from './hold-vdisk.ts'
export { changeVdiskVersions } from './open-version.ts'
export { onlyVisible, versionHolders } from './remove-version.ts'
export { seesEdgesOf } from './tally-devices.ts'
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
