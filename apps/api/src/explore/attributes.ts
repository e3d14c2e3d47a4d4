import type { z } from 'zod'
import type { bootFilterInput } from '../boot/schema.ts'
import { memoryGibOf } from '../rules/device/memory-size.ts'
import type { SampledBoot } from './read-sample.ts'

type FilterName = keyof z.output<typeof bootFilterInput>

interface Attribute {
  /** Null: not known of the boot. */
  valueOf: (boot: SampledBoot) => string | null
  /** The filter of lists of boots that has the boots of a value. */
  filter: FilterName
  /** What a value names; null: it is its own name. */
  names: 'site' | 'edge' | 'collection' | 'device' | 'version' | null
}

const hourOf = (boot: SampledBoot) => new Date(boot.startedMs).toISOString().slice(11, 13)
const readsOf = ({ isCold }: SampledBoot) => (isCold === null ? null : isCold ? 'cold' : 'warm')

const memoryOf = ({ memoryMib }: SampledBoot) => (memoryMib === null ? null : memoryGibOf(memoryMib).toString())

/** By what boots are grouped and compared. Another fact of boots is a line here, and a column in `readSample`. */
export const attributes = {
  version: { valueOf: (boot) => boot.versionId, filter: 'versionId', names: 'version' },
  site: { valueOf: (boot) => boot.siteId, filter: 'siteId', names: 'site' },
  collection: { valueOf: (boot) => boot.collectionId, filter: 'collectionId', names: 'collection' },
  edge: { valueOf: (boot) => boot.edgeId, filter: 'edgeId', names: 'edge' },
  device: { valueOf: (boot) => boot.deviceId, filter: 'deviceId', names: 'device' },
  firmware: { valueOf: (boot) => boot.clientArch?.toString() ?? null, filter: 'clientArch', names: null },
  model: { valueOf: (boot) => boot.hardwareModel, filter: 'hardwareModel', names: null },
  processors: { valueOf: (boot) => boot.processors?.toString() ?? null, filter: 'processors', names: null },
  memory: { valueOf: memoryOf, filter: 'memoryGib', names: null },
  card: { valueOf: (boot) => boot.networkCard, filter: 'networkCard', names: null },
  storage: { valueOf: (boot) => boot.storage, filter: 'storage', names: null },
  release: { valueOf: (boot) => boot.edgeRelease, filter: 'edgeRelease', names: null },
  segment: { valueOf: (boot) => boot.segment, filter: 'segment', names: null },
  reads: { valueOf: readsOf, filter: 'reads', names: null },
  outcome: { valueOf: (boot) => boot.outcome, filter: 'outcome', names: null },
  cause: { valueOf: (boot) => boot.failedCause, filter: 'failedCause', names: null },
  hour: { valueOf: hourOf, filter: 'hour', names: null },
} satisfies Record<string, Attribute>

export type AttributeName = keyof typeof attributes
export const attributeNames = Object.keys(attributes) as [AttributeName, ...AttributeName[]]

export function attributeOf(name: AttributeName): Attribute {
  return attributes[name]
}
