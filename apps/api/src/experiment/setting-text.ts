import { type BootSettingName, parseBootSetting } from '../rules/boot-settings.ts'

/** Settings and differences for people. */

const names: Record<BootSettingName, string> = {
  'read-limit': 'reads',
  'read-ahead': 'read-ahead',
  codec: 'compression',
  mtu: 'MTU',
  stream: 'encryption',
  cache: 'cache',
}

/** The title of a cell, e.g. `reads up to 44 KB, read-ahead off`. */
export function cellTitle(settings: readonly string[]): string {
  return settings.length === 0 ? 'as now' : settings.map(settingTitle).join(', ')
}

function settingTitle(text: string): string {
  const setting = parseBootSetting(text)
  if (!setting) return text
  const { name, value } = setting
  const words: Partial<Record<BootSettingName, string>> = {
    'read-limit': value === 'off' ? 'reads of any size' : `reads up to ${value.slice(0, -1)} KB`,
    'read-ahead': `read-ahead ${value === 'off' || value === 'auto' ? value : `${value.slice(0, -1)} MB`}`,
    codec: `compression ${value}`,
    stream: value === 'sealed' ? 'encrypted' : 'not encrypted',
    cache: `${value} cache`,
  }
  return words[name] ?? `${names[name]} ${value}`
}

/** A time in seconds, or in milliseconds below a tenth of one. */
export function timeText(us: number): string {
  const size = Math.abs(us)
  return size < 100_000 ? `${Math.round(size / 1000)} ms` : `${(size / 1_000_000).toFixed(size < 10_000_000 ? 2 : 1)} s`
}
