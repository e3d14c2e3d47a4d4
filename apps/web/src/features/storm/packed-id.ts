/** Ids as `storm.get` has them: 16 bytes in base64url, without padding. */
export const packedIdLength = 22

/** MAC addresses are there as hexadecimal digits. */
export const packedMacLength = 12

/** The id or address with this index of a column. */
export function packedAt(column: string, index: number, length: number): string {
  return column.slice(index * length, (index + 1) * length)
}

export function packMac(mac: string): string {
  return mac.replaceAll(':', '')
}

export function packId(uuid: string): string {
  const bytes = uuid.replaceAll('-', '').match(/../g) ?? []
  const text = String.fromCharCode(...bytes.map((byte) => Number.parseInt(byte, 16)))
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

export function unpackId(id: string): string {
  const hex = [...atob(id.replaceAll('-', '+').replaceAll('_', '/'))]
    .map((letter) => letter.charCodeAt(0).toString(16).padStart(2, '0'))
    .join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
