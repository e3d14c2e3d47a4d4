export { changeVdiskVersions } from './open-version.ts'
export {
  type ChoicesJson,
  choicesJson,
  readResolved,
  resolvedOf,
  versionChoicesSelect,
  versionFactsSelect,
} from './version-facts.ts'
