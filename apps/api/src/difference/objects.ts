import { hash } from 'node:crypto'
import { differencePieceSize } from '@bootfarm/proto/uplink'
import { AppError } from '../errors/app-error.ts'
import type { DifferenceKey, ObjectKey, ObjectStore } from './object-store.ts'
import { type ObjectOperation, objectTrouble } from './object-trouble.ts'

export interface ObjectSettings {
  /** Null: the control plane keeps no differences, and edges get them only from edges of their site. */
  store: ObjectStore | null
  /** All differences of an organization together. */
  organizationBytesMax: number
  /** Hears of each failure of the store. */
  onTrouble?: (operation: ObjectOperation) => void
}

export const defaultObjectSettings: ObjectSettings = { store: null, organizationBytesMax: 512 * 1024 ** 3 }

/** SHA-256 of each piece, one after another. */
export const hashSize = 32
const listName = 'list'
/** Beside a piece that was read with other bytes: it is to be sent again. The bytes stay until then. */
const damagedSuffix = '.damaged'
/** A store, or what lies before it, may have garbled an answer once. */
const readsMax = 2
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
  /** Right ones, read last: an edge gets a piece in several ranges. */
  readonly #pieces = new Map<string, Uint8Array>()

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
    await this.#ask('put', 'take a list', (store) => store.put({ ...key, name: listName }, list))
  }

  /** Throws `not_found` while the store lacks the list that the row names. */
  async list({ organizationId, differenceId, listSha256 }: ListedDifference): Promise<Buffer> {
    const known = this.#lists.get(listSha256)
    if (known) return known
    const isRight = (bytes: Uint8Array) => hash('sha256', bytes, 'hex') === listSha256
    const bytes = await this.#read({ organizationId, differenceId, name: listName }, 'send a list', isRight)
    if (bytes === null || bytes === 'wrong')
      throw new AppError('not_found', { public: 'The object store does not have the list of this difference.' })
    const list = Buffer.from(bytes)
    keep(this.#lists, listSha256, list, listsMax)
    return list
  }

  /** Returns the first missing pieces, ascending; none: the store has the whole difference. */
  async missing(difference: ListedDifference): Promise<number[]> {
    const count = (await this.list(difference)).length / hashSize
    const names = await this.#ask('list', 'list pieces', (store) => store.names(keyOf(difference)))
    const held = new Set(names)
    const missing: number[] = []
    for (let index = 0; index < count && missing.length < missingMax; index++)
      if (!held.has(String(index)) || held.has(`${index}${damagedSuffix}`)) missing.push(index)
    return missing
  }

  /** Throws `invalid_body` for a piece that there is not or of another size, `conflict` for other bytes. */
  async putPiece(difference: ListedDifference, { index, bytes }: { index: number; bytes: Uint8Array }): Promise<void> {
    const list = await this.list(difference)
    const size = pieceSizeOf(difference, index)
    if (bytes.length !== size)
      throw new AppError('invalid_body', { public: `Piece ${index} has ${size} bytes, not ${bytes.length}.` })
    if (!isPiece(bytes, list, index))
      throw new AppError('conflict', { public: `Piece ${index} has another SHA-256 than the list says.` })
    const key = keyOf(difference)
    await this.#ask('put', `take piece ${index}`, (store) => store.put({ ...key, name: String(index) }, bytes))
    const damaged = { ...key, name: `${index}${damagedSuffix}` }
    await this.#ask('delete', `take piece ${index}`, (store) => store.remove(damaged))
  }

  /**
   * Throws `invalid_body` for a piece that there is not, `not_found` while the store lacks it, or has other bytes:
   * these are never given to anybody.
   */
  async piece(difference: ListedDifference, index: number): Promise<Uint8Array> {
    const size = pieceSizeOf(difference, index)
    const cached = `${difference.listSha256} ${index}`
    const known = this.#pieces.get(cached)
    if (known) return known
    const list = await this.list(difference)
    const key = keyOf(difference)
    const isRight = (bytes: Uint8Array) => bytes.length === size && isPiece(bytes, list, index)
    const bytes = await this.#read({ ...key, name: String(index) }, `send piece ${index}`, isRight)
    if (bytes === 'wrong') {
      const damaged = { ...key, name: `${index}${damagedSuffix}` }
      await this.#ask('put', `note that piece ${index} is damaged`, (store) => store.put(damaged, new Uint8Array()))
      throw new AppError('not_found', {
        public: `The object store has other bytes of piece ${index} than were sent to it. An edge sends it again.`,
      })
    }
    if (!bytes) throw new AppError('not_found', { public: `The object store does not have piece ${index}.` })
    keep(this.#pieces, cached, bytes, piecesMax)
    return bytes
  }

  /** Deletes all of a difference. */
  drop(key: DifferenceKey): Promise<void> {
    return this.#ask('delete', 'delete a difference', (store) => store.delete(key))
  }

  /** Reads again what comes out wrong. */
  async #read(
    key: ObjectKey,
    what: string,
    isRight: (bytes: Uint8Array) => boolean,
  ): Promise<Uint8Array | 'wrong' | null> {
    for (let read = 0; read < readsMax; read++) {
      const bytes = await this.#ask('get', what, (store) => store.get(key))
      if (!bytes || isRight(bytes)) return bytes
      this.settings.onTrouble?.('get')
    }
    return 'wrong'
  }

  /** Throws `unavailable`, with the reason, where the store fails. */
  async #ask<T>(operation: ObjectOperation, what: string, work: (store: ObjectStore) => Promise<T>): Promise<T> {
    const { store } = this
    try {
      return await work(store)
    } catch (error) {
      this.settings.onTrouble?.(operation)
      throw objectTrouble(what, error)
    }
  }
}

/** The oldest goes. */
function keep<T>(kept: Map<string, T>, key: string, value: T, max: number): void {
  kept.set(key, value)
  const [oldest] = kept.keys()
  if (kept.size > max && oldest !== undefined) kept.delete(oldest)
}

function isPiece(bytes: Uint8Array, list: Buffer, index: number): boolean {
  return hash('sha256', bytes, 'buffer').equals(list.subarray(index * hashSize, (index + 1) * hashSize))
}

/** Lists have up to 1 MiB. */
const listsMax = 16
/** Of 4 MiB each. */
const piecesMax = 8

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
