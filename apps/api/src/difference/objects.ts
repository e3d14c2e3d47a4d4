import { hash } from 'node:crypto'
import { differencePieceSize } from '@bootfarm/proto/uplink'
import { AppError } from '../errors/app-error.ts'
import type { DifferenceKey, ObjectStore } from './object-store.ts'

export interface ObjectSettings {
  /** Null: the control plane keeps no differences, and edges get them only from edges of their site. */
  store: ObjectStore | null
  /** All differences of an organization together. */
  organizationBytesMax: number
}

export const defaultObjectSettings: ObjectSettings = { store: null, organizationBytesMax: 512 * 1024 ** 3 }

/** SHA-256 of each piece, one after another. */
export const hashSize = 32
const listName = 'list'
/** Numbers of one answer: an edge asks again after it has sent these. */
const missingMax = 1024

/** A difference as its row describes it, once its list is known. */
export interface ListedDifference extends DifferenceKey {
  sizeBytes: number
  listSha256: string
}

/** The differences in the object store: a list of pieces each, and pieces that were compared with it. */
export class Objects {
  readonly settings: ObjectSettings
  /** Of the differences used last: each is asked for again with each of its pieces. */
  readonly #lists = new Map<string, Buffer>()

  constructor(settings: ObjectSettings) {
    this.settings = settings
  }

  get areOpen(): boolean {
    return this.settings.store !== null
  }

  /** Throws `not_found` where there is none: no job names the control plane then. */
  get store(): ObjectStore {
    if (this.settings.store) return this.settings.store
    throw new AppError('not_found', {
      public: 'This control plane keeps no differences (BOOTFARM_OBJECTS is not set).',
    })
  }

  /** Throws `invalid_body` for a list that does not belong to a file of this size. */
  async putList(key: DifferenceKey, { list, sizeBytes }: { list: Uint8Array; sizeBytes: number }): Promise<void> {
    if (list.length !== piecesOf(sizeBytes) * hashSize)
      throw new AppError('invalid_body', {
        public: `A difference of ${sizeBytes} bytes has ${piecesOf(sizeBytes)} pieces: its list has ${piecesOf(sizeBytes) * hashSize} bytes, not ${list.length}.`,
      })
    await this.store.put({ ...key, name: listName }, list)
  }

  /** Throws `not_found` while the store lacks the list that the row names. */
  async list({ organizationId, differenceId, listSha256 }: ListedDifference): Promise<Buffer> {
    const known = this.#lists.get(listSha256)
    if (known) return known
    const bytes = await this.store.get({ organizationId, differenceId, name: listName })
    if (!bytes || hash('sha256', bytes, 'hex') !== listSha256)
      throw new AppError('not_found', { public: 'The object store does not have the list of this difference.' })
    const list = Buffer.from(bytes)
    this.#lists.set(listSha256, list)
    const [oldest] = this.#lists.keys()
    if (this.#lists.size > listsMax && oldest !== undefined) this.#lists.delete(oldest)
    return list
  }

  /** Returns the first missing pieces, ascending; none: the store has the whole difference. */
  async missing(difference: ListedDifference): Promise<number[]> {
    const count = (await this.list(difference)).length / hashSize
    const held = new Set(await this.store.names(keyOf(difference)))
    const missing: number[] = []
    for (let index = 0; index < count && missing.length < missingMax; index++)
      if (!held.has(String(index))) missing.push(index)
    return missing
  }

  /** Throws `invalid_body` for a piece that there is not or of another size, `conflict` for other bytes. */
  async putPiece(difference: ListedDifference, { index, bytes }: { index: number; bytes: Uint8Array }): Promise<void> {
    const list = await this.list(difference)
    const size = pieceSizeOf(difference, index)
    if (bytes.length !== size)
      throw new AppError('invalid_body', { public: `Piece ${index} has ${size} bytes, not ${bytes.length}.` })
    const wanted = list.subarray(index * hashSize, (index + 1) * hashSize)
    if (!hash('sha256', bytes, 'buffer').equals(wanted))
      throw new AppError('conflict', { public: `Piece ${index} has another SHA-256 than the list says.` })
    await this.store.put({ ...keyOf(difference), name: String(index) }, bytes)
  }

  /** Throws `invalid_body` for a piece that there is not, `not_found` while the store lacks it. */
  async piece(difference: ListedDifference, index: number): Promise<Uint8Array> {
    pieceSizeOf(difference, index)
    const bytes = await this.store.get({ ...keyOf(difference), name: String(index) })
    if (!bytes) throw new AppError('not_found', { public: `The object store does not have piece ${index}.` })
    return bytes
  }
}

/** Lists have up to 1 MiB. */
const listsMax = 16

export function piecesOf(sizeBytes: number): number {
  return Math.ceil(sizeBytes / differencePieceSize)
}

function pieceSizeOf({ sizeBytes }: ListedDifference, index: number): number {
  if (index >= piecesOf(sizeBytes))
    throw new AppError('invalid_body', { public: `The difference has ${piecesOf(sizeBytes)} pieces, from 0 on.` })
  return Math.min(differencePieceSize, sizeBytes - index * differencePieceSize)
}

function keyOf({ organizationId, differenceId }: DifferenceKey): DifferenceKey {
  return { organizationId, differenceId }
}
