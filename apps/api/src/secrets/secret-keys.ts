import { createHash, hkdfSync } from 'node:crypto'
import { openBytes, sealBytes, sealSizeBytes } from './sealed-bytes.ts'

const keySizeBytes = 32
const keysMax = 8
const idSizeBytes = 8
/** Begins each sealed secret. Those of earlier releases were 32 random bytes in clear: too few to be a sealed one. */
const magic = Buffer.from('bfs1')
const headSizeBytes = magic.length + idSizeBytes

interface SecretKey {
  /** Tells which key sealed a secret; says nothing about the key. */
  id: Buffer
  key: Uint8Array
}

/** Seals secrets with the first key and opens them with any. */
export interface SecretKeys {
  first: SecretKey
  all: SecretKey[]
}

/** The row that a secret belongs to: a sealed secret that was moved to another row does not open there. */
export interface SecretPlace {
  kind: 'signing_key' | 'webhook' | 'site'
  organizationId: string
  id: string
}

export class SecretNotOpened extends Error {
  override readonly name = 'SecretNotOpened'
}

/**
 * Makes the keys from their text: 32 bytes in base64 each, the newest first, with commas or white space between. The
 * last key is derived from `apiSecret`, so that what it sealed can be opened once others are set; it seals where there
 * is no other. Throws one sentence for what is no key.
 */
export function secretKeysFrom(text: string, apiSecret: string): SecretKeys {
  const given = text.split(/[\s,]+/).filter(Boolean)
  if (given.length > keysMax) throw new Error(`at most ${keysMax} keys can be given, not ${given.length}`)
  const keys = given.map((one, index) => keyOf(decodedKey(one, index)))
  const derived = keyOf(new Uint8Array(hkdfSync('sha256', apiSecret, '', 'bootfarm secrets at rest', keySizeBytes)))
  const [first = derived, ...others] = [...keys, derived]
  return { first, all: [first, ...others] }
}

function decodedKey(text: string, index: number): Uint8Array {
  const key = Buffer.from(text, 'base64')
  if (key.length !== keySizeBytes || key.toString('base64') !== text)
    throw new Error(`key ${index + 1} is not ${keySizeBytes} bytes in base64; make one with: openssl rand -base64 32`)
  return key
}

function keyOf(key: Uint8Array): SecretKey {
  const id = createHash('sha256').update('bootfarm key id').update(key).digest().subarray(0, idSizeBytes)
  return { id, key }
}

/** Magic, key id, sealed bytes. The place is authenticated. An empty secret stays empty. */
export function sealSecret({ first }: SecretKeys, place: SecretPlace, secret: Uint8Array): Uint8Array<ArrayBuffer> {
  if (secret.length === 0) return new Uint8Array()
  return Uint8Array.from(Buffer.concat([magic, first.id, sealBytes(first.key, secret, textOf(place))]))
}

/** Opens a sealed secret; one that an earlier release kept in clear is returned as it is. Throws `SecretNotOpened`. */
export function openSecret(keys: SecretKeys, place: SecretPlace, kept: Uint8Array): Uint8Array<ArrayBuffer> {
  if (!isSealed(kept)) return Uint8Array.from(kept)
  const id = keyIdOf(kept)
  const known = keys.all.find((one) => one.id.equals(id))
  if (!known)
    throw new SecretNotOpened(
      `A secret in the database is sealed with key ${id.toString('hex')}, which this API does not have. Add it to SECRETS_KEY; where none was set, restore the former BETTER_AUTH_SECRET.`,
    )
  try {
    return Uint8Array.from(openBytes(known.key, kept.subarray(headSizeBytes), textOf(place)))
  } catch {
    throw new SecretNotOpened(
      `The secret of ${place.kind} ${place.id} was changed in the database, or belongs to another row.`,
    )
  }
}

/** Whether the first key sealed it; an empty secret needs no seal. */
export function isNewestSeal({ first }: SecretKeys, kept: Uint8Array): boolean {
  return kept.length === 0 || (isSealed(kept) && keyIdOf(kept).equals(first.id))
}

function isSealed(kept: Uint8Array): boolean {
  return kept.length > headSizeBytes + sealSizeBytes && magic.equals(kept.subarray(0, magic.length))
}

function keyIdOf(kept: Uint8Array): Buffer {
  return Buffer.from(kept.subarray(magic.length, headSizeBytes))
}

function textOf({ kind, organizationId, id }: SecretPlace): string {
  return `bootfarm secret v1\n${kind}\n${organizationId}\n${id}`
}
