import type { RouterInputs } from '../../lib/trpc'

/** The matrix of an experiment that is not started yet. */

export type Factor = RouterInputs['experiment']['create']['factors'][number]
export type SettingName = Factor['setting']

/** Stands for null, which is no value of a form. */
export const asNow = 'as-now'

interface Level {
  value: string
  label: string
}

export interface SettingChoice {
  setting: SettingName
  title: string
  hint: string
  levels: Level[]
}

const now: Level = { value: asNow, label: 'As now' }

export const settingChoices: SettingChoice[] = [
  {
    setting: 'read-limit',
    title: 'Read size',
    hint: 'The most that a device requests at once.',
    levels: [
      now,
      ...[4, 8, 16, 32, 44, 64].map((size) => ({ value: `${size}k`, label: `${size} KB` })),
      { value: 'off', label: 'Unlimited' },
    ],
  },
  {
    setting: 'read-ahead',
    title: 'Read-ahead',
    hint: 'Memory for what the boot profile says will be read.',
    levels: [
      now,
      { value: 'off', label: 'Off' },
      ...[8, 16, 32, 64, 128].map((size) => ({ value: `${size}m`, label: `${size} MB` })),
      { value: 'auto', label: 'By memory' },
    ],
  },
  {
    setting: 'codec',
    title: 'Compression',
    hint: 'Whether the edge packs what it sends.',
    levels: [now, { value: 'off', label: 'Off' }, { value: 'lz4', label: 'LZ4' }, { value: 'auto', label: 'By speed' }],
  },
  {
    setting: 'mtu',
    title: 'MTU of the stream',
    hint: 'The largest packets that the stream uses, where the network takes them.',
    levels: [now, ...['576', '1400', '1500', '4080', '9000'].map((value) => ({ value, label: value }))],
  },
  {
    setting: 'stream',
    title: 'Encryption',
    hint: 'Only an edge that was started with --clear serves streams without it.',
    levels: [now, { value: 'sealed', label: 'Encrypted' }, { value: 'clear', label: 'Not encrypted' }],
  },
  {
    setting: 'cache',
    title: 'Cache of the edge',
    hint: 'Cold: before the boot, the edge forgets what its memory holds of its store. It is compared, never applied.',
    levels: [
      { value: 'warm', label: 'Warm' },
      { value: 'cold', label: 'Cold' },
    ],
  },
]

/** The chosen levels of each setting, in the order of the choices. */
export type Matrix = Partial<Record<SettingName, string[]>>

export function factorsOf(matrix: Matrix): Factor[] {
  return settingChoices.flatMap(({ setting, levels }) => {
    const chosen = levels.filter(({ value }) => matrix[setting]?.includes(value))
    if (chosen.length === 0) return []
    return [{ setting, values: chosen.map(({ value }) => (value === asNow ? null : value)) }]
  })
}

/**
 * Combinations of all levels, and what they are compared with: the devices as they are now, once for each state of the
 * cache, where no combination is that.
 */
export function cellCountOf(factors: Factor[]): number {
  if (factors.length === 0) return 0
  const combined = factors.reduce((count, { values }) => count * values.length, 1)
  const settings = factors.filter(({ setting }) => setting !== 'cache')
  if (settings.every(({ values }) => values.includes(null))) return combined
  return combined + (factors.find(({ setting }) => setting === 'cache')?.values.length ?? 1)
}

/** The cache is in one state at a time. */
export function isOneAtATime(factors: Factor[]): boolean {
  return factors.some(({ setting }) => setting === 'cache')
}

/** Between two boots of a device: the order reaches it, and it restarts. */
const betweenBootsUs = 15_000_000
const usualBootUs = 60_000_000

interface Size {
  devices: number
  cells: number
  repetitions: number
  atOnce: number
}

export function bootCountOf({ devices, cells, repetitions }: Size): number {
  return devices * cells * repetitions
}

/** About how long the boots take. @param bootUs of one boot; null: nobody knows, and a minute is assumed */
export function estimateUs({ devices, cells, repetitions, atOnce }: Size, bootUs: number | null): number {
  if (devices === 0) return 0
  const rounds = Math.ceil(devices / Math.max(1, Math.min(devices, atOnce))) * cells * repetitions
  return rounds * ((bootUs ?? usualBootUs) + betweenBootsUs)
}

/** Of ready boots; null without any. */
export function medianUs(durations: number[]): number | null {
  const sorted = durations.toSorted((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null
}
