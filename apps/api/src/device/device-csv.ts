import { parse } from 'csv-parse/sync'
import { z } from 'zod'
import { type Personality, personalityName, personalityValue } from '../rules/device/personality.ts'
import { type DeviceType, deviceName, deviceType, tags, writtenMac } from '../rules/object-fields.ts'

/**
 * Devices of a site as a table: UTF-8 with or without a byte order mark, commas or semicolons between the cells, cells
 * quoted where they need it. An empty cell leaves a device's field unchanged; `none` removes the device's own setting.
 */

const csvRowsMax = 10_000
export const csvSizeMax = 3_000_000
const cellSizeMax = 4_096
const none = 'none'
const personalityPrefix = 'personality.'

const deviceColumns = [
  'mac',
  'name',
  'collection',
  'enabled',
  'tags',
  'vdisk',
  'boot_programs',
  'boot_menu',
  'device_type',
] as const
type DeviceColumn = (typeof deviceColumns)[number]

/** One line of the table; undefined fields stay unchanged. */
export interface CsvDevice {
  /** Line number in the file, from 1; the heading is line 1. */
  line: number
  mac?: string
  name?: string
  collection?: string
  enabled?: boolean
  tags?: string[]
  vdisk?: string | null
  bootPrograms?: string | null
  /** `null`: none, even if its collection has one; `collection`: the collection's. */
  bootMenu?: string | null
  deviceType?: DeviceType
  personality: Personality
  problems: string[]
}

/** An unreadable file is reported in one sentence; a problem of a line is reported with that line. */
export function parseDevicesCsv(text: string): { devices: CsvDevice[] } | { problem: string } {
  if (text.includes('\uFFFD')) return { problem: 'The file is not UTF-8. Save it as “CSV UTF-8”.' }
  let records: { record: Record<string, string>; line: number }[]
  let heading: string[] = []
  try {
    const parsed = parse(text, {
      bom: true,
      delimiter: delimiterOf(text),
      skip_empty_lines: true,
      info: true,
      max_record_size: cellSizeMax * 16,
      to: csvRowsMax + 2,
      columns: (names: string[]) => {
        heading = names.map((name) => headingOf(unescaped(name)))
        return heading
      },
    }) as unknown as { record: Record<string, string>; info: { lines: number } }[]
    records = parsed.map(({ record, info }) => ({ record, line: info.lines }))
  } catch (error) {
    return { problem: `The file is not a table: ${error instanceof Error ? error.message : String(error)}.` }
  }
  const problem = headingProblem(heading)
  if (problem) return { problem }
  if (records.length === 0) return { problem: 'The file has no rows below the heading.' }
  if (records.length > csvRowsMax) return { problem: `The file has more than ${csvRowsMax} rows. Split the file.` }
  return { devices: records.map(({ record, line }) => readLine(record, line)) }
}

/** Whichever stands more often in the heading. */
function delimiterOf(text: string): ',' | ';' {
  const heading = text.slice(0, text.search(/[\r\n]|$/))
  return heading.split(';').length > heading.split(',').length ? ';' : ','
}

/** The names after `personality.` are as they were written. */
function headingOf(name: string): string {
  const lower = name.trim().toLowerCase()
  return lower.startsWith(personalityPrefix)
    ? personalityPrefix + name.trim().slice(personalityPrefix.length)
    : lower.replaceAll(' ', '_')
}

function headingProblem(heading: string[]): string | null {
  const twice = heading.find((name, index) => heading.indexOf(name) !== index)
  if (twice !== undefined) return `The column ${twice} occurs twice.`
  for (const name of heading) {
    if ((deviceColumns as readonly string[]).includes(name)) continue
    if (!name.startsWith(personalityPrefix))
      return `Unknown column ${name || '(without a name)'}. Known columns are ${deviceColumns.join(', ')} and ${personalityPrefix}NAME.`
    const parsed = personalityName.safeParse(name.slice(personalityPrefix.length))
    if (!parsed.success) return `${name}: ${parsed.error.issues[0]?.message}`
  }
  if (!heading.includes('mac') && !heading.includes('name')) return 'Add a column mac or name. Rows are matched by it.'
  return null
}

function readLine(record: Record<string, string>, line: number): CsvDevice {
  const device: CsvDevice = { line, personality: {}, problems: [] }
  const cell = (name: DeviceColumn) => unescaped(record[name] ?? '').trim()
  const read = <T>(name: DeviceColumn, schema: z.ZodType<T>, take: (value: T) => void) => {
    const text = cell(name)
    if (text === '') return
    const parsed = schema.safeParse(text)
    if (parsed.success) take(parsed.data)
    else device.problems.push(`${name}: ${parsed.error.issues[0]?.message}`)
  }
  read('mac', writtenMac, (mac) => Object.assign(device, { mac }))
  read('name', deviceName, (name) => Object.assign(device, { name }))
  read('collection', z.string(), (collection) => Object.assign(device, { collection }))
  read('enabled', truth, (enabled) => Object.assign(device, { enabled }))
  read('tags', tagCell, (all) => Object.assign(device, { tags: all }))
  read('vdisk', nullable, (vdisk) => Object.assign(device, { vdisk }))
  read('boot_programs', nullable, (bootPrograms) => Object.assign(device, { bootPrograms }))
  read('boot_menu', nullable, (bootMenu) => Object.assign(device, { bootMenu }))
  read('device_type', typeCell, (type) => Object.assign(device, { deviceType: type }))
  for (const [column, raw] of Object.entries(record)) {
    if (!column.startsWith(personalityPrefix) || raw === '') continue
    const name = column.slice(personalityPrefix.length)
    const parsed = personalityValue.safeParse(unescaped(raw))
    if (parsed.success) device.personality[name] = parsed.data
    else device.problems.push(`${column}: ${parsed.error.issues[0]?.message}`)
  }
  if (!device.mac && !device.name && device.problems.length === 0)
    device.problems.push('Enter a MAC address or a name to identify the device.')
  return device
}

const nullable = z.string().transform((text) => (text.toLowerCase() === none ? null : text))
const truth = z
  .string()
  .toLowerCase()
  .pipe(z.enum(['yes', 'no', 'true', 'false', '1', '0'], 'Enter yes or no.'))
  .transform((text) => ['yes', 'true', '1'].includes(text))
const typeCell = z.string().toLowerCase().pipe(z.enum(deviceType.options, 'Enter production, test or maintenance.'))
const tagCell = z
  .string()
  .transform((text) => (text.toLowerCase() === none ? [] : text.split(',').map((one) => one.trim())))
  .pipe(tags)

/** The prefix that `csvLine` puts before a text that a spreadsheet would execute. */
function unescaped(text: string): string {
  return /^'+[=+\-@\t\r]/.test(text) ? text.slice(1) : text
}

export interface ExportedDevice {
  mac: string
  name: string
  collection: string
  enabled: boolean
  tags: string[]
  vdisk: string | null
  bootPrograms: string | null
  bootMenu: string | null
  deviceType: DeviceType
  personality: Personality
}

/** The columns of a table that `parseDevicesCsv` reads back without a change. */
export function deviceHeading(personalityColumns: string[]): string[] {
  return [...deviceColumns, ...personalityColumns.map((name) => personalityPrefix + name)]
}

export function deviceCells(device: ExportedDevice, personalityColumns: string[]): string[] {
  return [
    device.mac,
    device.name,
    device.collection,
    device.enabled ? 'yes' : 'no',
    device.tags.join(', ') || none,
    device.vdisk ?? none,
    device.bootPrograms ?? none,
    device.bootMenu ?? none,
    device.deviceType,
    ...personalityColumns.map((name) => device.personality[name] ?? ''),
  ]
}
