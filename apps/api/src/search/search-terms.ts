/** What a search may mean, besides the beginning of a name. */
export interface SearchTerms {
  /** As keys are compared: packages/db lowers names in the same manner. */
  text: string
  /** Hexadecimal digits of a MAC address or a machine's UUID, without what people write between them. */
  digits: string | null
  /** Ids that begin with these digits: the first and the last. */
  ids: { from: string; until: string } | null
  /** The beginning of an IPv4 address. */
  ip: string | null
  /** A version of the vDisks whose names begin with this. */
  version: { vdisk: string; number: number } | null
}

/** Fewer digits are the beginning of nearly every name. */
const digitsMin = 4
/** Ids that are made on one day begin with the same digits: the first group alone tells them apart. */
const idDigitsMin = 8
const uuidDigits = 32
const versionDigitsMax = 6

export function searchTerms(search: string): SearchTerms {
  const text = search.toLowerCase()
  const bare = text.replace(/[.:-]/g, '')
  const isHex = /^[0-9a-f]+$/.test(bare) && bare.length <= uuidDigits
  const isIp = /^\d{1,3}(\.\d{1,3}){1,3}\.?$|^\d{1,3}(\.\d{1,3}){0,2}\.$/.test(text)
  return {
    text,
    digits: isHex && !isIp && bare.length >= digitsMin && bare !== text ? bare : null,
    ids: isHex && !isIp && bare.length >= idDigitsMin ? idsWith(bare) : null,
    ip: isIp ? text : null,
    version: versionOf(text),
  }
}

function idsWith(digits: string): { from: string; until: string } {
  const idOf = (filled: string) => filled.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { from: idOf(digits.padEnd(uuidDigits, '0')), until: idOf(digits.padEnd(uuidDigits, 'f')) }
}

/** "Linux 3", "Linux v3" and "Linux version 3". */
function versionOf(text: string): SearchTerms['version'] {
  const [, vdisk, digits = ''] = /^(.*?\S)\s+(?:version\s+|v\s*|#)?(\d+)$/.exec(text) ?? []
  if (!vdisk || digits.length > versionDigitsMax) return null
  return { vdisk, number: Number(digits) }
}
