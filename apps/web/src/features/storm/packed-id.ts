/** Ids as `storm.get` has them: 16 bytes in base64url, without padding. */
export const packedIdLength = 22

/** Null for none. */
export function packedIdAt(ids: string, index: number): string | null {
  const id = ids.slice(index * packedIdLength, (index + 1) * packedIdLength)
  return id.startsWith('.') ? null : id
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
