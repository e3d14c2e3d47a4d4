import { createHash, type Hash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { AppError } from '../errors/app-error.ts'
import { UploadFiles, type UploadKey } from './upload-files.ts'

export interface UploadSettings {
  /** Null: this installation takes no uploads. */
  directory: string | null
  /** The largest upload. */
  sizeBytesMax: number
  /** All uploads of an organization together, by their announced sizes. */
  organizationBytesMax: number
  /** Space that uploads leave free on their file system. */
  freeBytesMin: number
}

const gib = 1024 ** 3
export const defaultUploadSettings: UploadSettings = {
  directory: null,
  sizeBytesMax: 128 * gib,
  organizationBytesMax: 512 * gib,
  freeBytesMin: 5 * gib,
}

/** Hashes that are kept for uploads that continue; the oldest ones are computed again. */
const hashesMax = 256

interface Receiving {
  stop(): void
  ended: Promise<unknown>
}

export interface Piece extends UploadKey {
  /** Of the whole upload. */
  sizeBytes: number
  /** Where the sender continues. */
  offset: number
  bytes: Readable
}

/** The uploads of this process: their limits, their bytes, and the pieces that arrive. */
export class Uploads {
  readonly settings: UploadSettings
  readonly #files: UploadFiles | null
  /** At most one piece of each upload is written at a time. */
  readonly #receiving = new Map<string, Receiving>()
  /** Of the bytes from 0 to `size`. */
  readonly #hashes = new Map<string, { hash: Hash; size: number }>()

  constructor(settings: UploadSettings) {
    this.settings = settings
    this.#files = settings.directory === null ? null : new UploadFiles(settings.directory)
  }

  /** Throws `conflict` where there are none. */
  get files(): UploadFiles {
    if (this.#files) return this.#files
    throw new AppError('conflict', {
      public:
        'This control plane takes no uploads: its operator has not set BOOTFARM_UPLOADS. Import the image from the edge’s store or from a URL.',
    })
  }

  get areOpen(): boolean {
    return this.#files !== null
  }

  /** Throws `conflict` if so many bytes do not fit beside what is to stay free. */
  async requireSpace(bytes: number): Promise<void> {
    const free = await this.files.freeBytes()
    if (free - bytes >= this.settings.freeBytesMin) return
    throw new AppError('conflict', {
      internal: `${free} bytes are free, ${bytes} are needed beside ${this.settings.freeBytesMin}`,
      public:
        'The control plane has too little free disk space for this upload. Delete uploads that nobody needs, or ask its operator for space.',
    })
  }

  /**
   * Takes one piece, and keeps what arrived of it, whatever ends it. A newer piece of the same upload ends this one:
   * its sender has lost the connection, which this side may not know yet. Throws `conflict` with the held offset if the
   * piece begins elsewhere, and `too_large` if it exceeds the upload.
   * @returns bytes that are held now
   */
  async receive(piece: Piece): Promise<number> {
    const { uploadId, bytes } = piece
    for (let earlier = this.#receiving.get(uploadId); earlier; earlier = this.#receiving.get(uploadId)) {
      earlier.stop()
      await earlier.ended
    }
    const work = this.#take(piece)
    const ended = work.then(
      () => undefined,
      () => undefined,
    )
    this.#receiving.set(uploadId, { stop: () => bytes.destroy(), ended })
    try {
      return await work
    } finally {
      this.#receiving.delete(uploadId)
    }
  }

  async #take({ offset, sizeBytes, bytes, ...key }: Piece): Promise<number> {
    const held = await this.files.sizeOf(key)
    if (offset !== held) {
      bytes.resume()
      throw new AppError('conflict', {
        public: `The upload continues at byte ${held}, not ${offset}.`,
        extra: { receivedBytes: held },
      })
    }
    const file = await this.files.open(key)
    let size = held
    try {
      // The stream stays open: destroying it would close the connection before the sender has the answer.
      for await (const chunk of bytes.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        if (size + chunk.length > sizeBytes)
          throw new AppError('too_large', { public: `The upload was announced with ${sizeBytes} bytes, and has more.` })
        await file.put(chunk, size)
        this.#hash(key, { chunk, offset: size })
        size += chunk.length
      }
      if (size === sizeBytes) await file.sync()
      return size
    } catch (error) {
      bytes.resume()
      throw receiveError(error, bytes)
    } finally {
      await file.close()
    }
  }

  /** Only bytes that follow those that it covers. */
  #hash({ uploadId }: UploadKey, { chunk, offset }: { chunk: Buffer; offset: number }): void {
    const known = this.#hashes.get(uploadId) ?? { hash: createHash('sha256'), size: 0 }
    if (known.size !== offset) return
    known.hash.update(chunk)
    known.size += chunk.length
    this.#hashes.delete(uploadId)
    this.#hashes.set(uploadId, known)
    const [oldest] = this.#hashes.keys()
    if (this.#hashes.size > hashesMax && oldest !== undefined) this.#hashes.delete(oldest)
  }

  /** Returns the SHA-256 of all bytes; reads those that another process received. */
  async sha256(key: UploadKey, sizeBytes: number): Promise<string> {
    const known = this.#hashes.get(key.uploadId) ?? { hash: createHash('sha256'), size: 0 }
    this.#hashes.delete(key.uploadId)
    if (known.size < sizeBytes)
      for await (const chunk of this.files.get(key, { first: known.size, last: sizeBytes - 1 }))
        known.hash.update(chunk as Buffer)
    return known.hash.digest('hex')
  }

  /** Ends a piece that arrives, and deletes the bytes. */
  async delete(key: UploadKey): Promise<void> {
    const receiving = this.#receiving.get(key.uploadId)
    receiving?.stop()
    await receiving?.ended
    this.#hashes.delete(key.uploadId)
    await this.files.delete(key)
  }
}

function receiveError(error: unknown, bytes: Readable): unknown {
  if (error instanceof AppError) return error
  if (error instanceof Error && 'code' in error && error.code === 'ENOSPC')
    return new AppError('conflict', {
      public: 'The disk of the control plane is full. What arrived is kept: continue when its operator has made space.',
      cause: error,
    })
  if (!bytes.destroyed) return error
  return new AppError('invalid', { internal: 'the sender left', public: 'The piece ended before its announced size.' })
}
