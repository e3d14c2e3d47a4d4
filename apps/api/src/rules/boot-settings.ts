import { z } from 'zod'

/**
 * Settings that an edge gives to a boot beside its version's command line, `name=value` as
 * edge/streamer-zig/src/core/target/tuning.zig reads them: those of the device's collection, or of an experiment.
 */

export const bootSettingNames = ['read-limit', 'read-ahead', 'codec', 'mtu', 'stream', 'cache'] as const
export type BootSettingName = (typeof bootSettingNames)[number]

interface Kind {
  takes: (value: string) => boolean
  /** What is wrong with another value, as the end of a sentence. */
  wants: string
}

const kinds: Record<BootSettingName, Kind> = {
  'read-limit': {
    takes: (value) => value === 'off' || isNumber(value, { unit: 'k', min: 4, max: 128, step: 4 }),
    wants: 'off, or a multiple of 4k up to 128k',
  },
  'read-ahead': {
    takes: (value) => value === 'off' || value === 'auto' || isNumber(value, { unit: 'm', min: 1, max: 256, step: 1 }),
    wants: 'off, auto, or 1m to 256m',
  },
  codec: { takes: (value) => ['auto', 'lz4', 'off'].includes(value), wants: 'auto, lz4 or off' },
  mtu: { takes: (value) => isNumber(value, { unit: '', min: 576, max: 9000, step: 1 }), wants: '576 to 9000' },
  stream: { takes: (value) => value === 'sealed' || value === 'clear', wants: 'sealed or clear' },
  cache: { takes: (value) => value === 'cold' || value === 'warm', wants: 'cold or warm' },
}

/** A state of the edge before the boot, and no setting of anything: experiments compare it, and nobody can apply it. */
export const conditionNames: readonly BootSettingName[] = ['cache']

function isNumber(value: string, { unit, min, max, step }: { unit: string; min: number; max: number; step: number }) {
  const digits = value.endsWith(unit) ? value.slice(0, value.length - unit.length) : ''
  if (!/^[1-9]\d{0,4}$/.test(digits)) return false
  const number = Number(digits)
  return number >= min && number <= max && number % step === 0
}

export interface BootSetting {
  name: BootSettingName
  value: string
}

/** Null for a text that is no setting. */
export function parseBootSetting(text: string): BootSetting | null {
  const [name = '', value = '', ...more] = text.split('=')
  const known = bootSettingNames.find((one) => one === name)
  return known && more.length === 0 && kinds[known].takes(value) ? { name: known, value } : null
}

/** What a value of a setting may be, for people. */
export function valuesOf(name: BootSettingName): string {
  return kinds[name].wants
}

export function isValueOf(name: BootSettingName, value: string): boolean {
  return kinds[name].takes(value)
}

const bootSetting = z
  .string()
  .max(64)
  .refine((text) => parseBootSetting(text) !== null, {
    error: ({ input }) => {
      const name = String(input).split('=')[0] ?? ''
      const known = bootSettingNames.find((one) => one === name)
      return known
        ? `${known} takes ${valuesOf(known)}.`
        : `Enter settings as name=value, with one of the names ${bootSettingNames.join(', ')}.`
    },
  })

/** Settings that last: of a collection. */
export const bootSettings = z
  .array(bootSetting)
  .max(bootSettingNames.length)
  .refine((all) => new Set(all.map(nameOf)).size === all.length, 'Each setting can be given once only.')
  .refine((all) => !all.some((text) => conditionNames.includes(nameOf(text))), 'A cold cache is for experiments only.')
  .meta({ examples: [['read-limit=32k']] })
  .transform((all) => all.toSorted())

function nameOf(text: string): BootSettingName {
  return text.split('=')[0] as BootSettingName
}

/** The settings of `over` in place of those of the same name, in order of name. */
export function overlaid(below: readonly string[], over: readonly string[]): string[] {
  const names = new Set(over.map(nameOf))
  return [...below.filter((text) => !names.has(nameOf(text))), ...over].toSorted()
}
