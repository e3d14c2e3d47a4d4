import { deviceTypes } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { deviceNameSizeMax } from './name-pattern.ts'

/** Fields of many objects, as people write them. */

const nameSizeMax = 64
export const noteSizeMax = 500
/** Half of what an edge keeps (`devices_max` of its desired_state.zig). */
export const devicesPerSiteMax = 10_000
export const tagsMax = 32
const tagSizeMax = 64
const controlCharacter = /\p{C}/u

/** One line, without characters that move a terminal's cursor or reverse the text around it. */
export const nameOf = (whenEmpty: string) =>
  z
    .string()
    .trim()
    .min(1, whenEmpty)
    .max(nameSizeMax, `A name can have at most ${nameSizeMax} characters.`)
    .refine((text) => !controlCharacter.test(text), 'A name cannot contain control characters.')

/** Name of a farm, site, collection, store or vDisk. */
export const objectName = nameOf('Enter a name.')

/** Lines and tabs are a note's own; what moves a terminal's cursor or turns text around is not. */
export const objectNote = z
  .string()
  .trim()
  .max(noteSizeMax, `A note can have at most ${noteSizeMax} characters.`)
  .refine(
    (text) => !/[^\P{Cc}\n\t\r]|[\u202a-\u202e\u2066-\u2069]/u.test(text),
    'A note cannot contain control characters.',
  )

/** The rule for adopted devices, too: a name that every system accepts as a host name. */
export const deviceName = z
  .string()
  .trim()
  .min(1, 'Enter a name.')
  .max(deviceNameSizeMax, `A device name can have at most ${deviceNameSizeMax} characters.`)
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
    'A device name consists of letters, digits, hyphens, dots and underscores, and begins and ends with a letter or digit.',
  )

/** With colons, hyphens, dots or nothing between the digits; stored in lower case with colons. */
export const writtenMac = z
  .string()
  .trim()
  .toLowerCase()
  .transform((text) => text.replace(/[.:-]/g, ''))
  .pipe(z.string().regex(/^[0-9a-f]{12}$/, 'A MAC address has twelve hexadecimal digits.'))
  .refine((digits) => (Number.parseInt(digits.slice(0, 2), 16) & 1) === 0, {
    message: 'This is a multicast address. Enter the address of a network card.',
  })
  .refine((digits) => digits !== '000000000000', { message: 'This is not the address of a network card.' })
  .transform((digits) => digits.replace(/(..)(?!$)/g, '$1:'))

export const tag = z
  .string()
  .trim()
  .min(1)
  .max(tagSizeMax, `A tag can have at most ${tagSizeMax} characters.`)
  .refine((text) => !controlCharacter.test(text) && !/[,;]/.test(text), 'A tag cannot contain commas or semicolons.')

/** Each once, in order. */
export const tags = z
  .array(tag)
  .max(tagsMax, `Enter at most ${tagsMax} tags.`)
  .transform((all) => [...new Set(all)].sort())

/** Which version of its vDisk a device gets: rules/device/version-access.ts. */
export const deviceType = z.enum(deviceTypes)
export type DeviceType = z.infer<typeof deviceType>

/** The range of PostgreSQL's `integer`. */
const revisionMax = 2 ** 31 - 1
/** The revision that the caller has seen: a change is refused if the object has another one by now. */
export const seenRevision = z.number().int().positive().max(revisionMax)

export const timeZone = z.string().refine(isTimeZone, 'Unknown time zone. Enter a name such as Europe/Berlin.')

function isTimeZone(name: string): boolean {
  try {
    // An offset is none: it knows no summer time.
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '' && !/^[+-]/.test(name)
  } catch {
    return false
  }
}

/** Lists are read page by page: a page continues after the last row's sort key, which travels as an opaque cursor. */

const pageSizeMax = 100
const pageSizeDefault = 50

export const pageInput = {
  cursor: z.string().max(512).nullish(),
  limit: z.number().int().min(1).max(pageSizeMax).default(pageSizeDefault),
}

/** Part of the name, upper or lower case. */
export const searchInput = { search: z.string().trim().max(64).optional() }

/** A page of `DeviceSummary`s is a `DevicePage`. */
export function pageOf<T extends z.ZodType>(item: T) {
  const page = z.object({ items: z.array(item), nextCursor: z.string().nullable() })
  const name = z.globalRegistry.get(item)?.id
  return name ? page.meta({ id: `${name.replace(/Summary$/, '')}Page` }) : page
}
