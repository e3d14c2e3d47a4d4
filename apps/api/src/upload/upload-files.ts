import { constants, createReadStream } from 'node:fs'
import { mkdir, open, readdir, rm, stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'

export interface UploadKey {
  organizationId: string
  uploadId: string
}

/**
 * Keeps the bytes of uploads under their keys: put at an offset, get a range, delete. Nothing else of the API knows
 * that they are files of a directory.
 */
export class UploadFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Bytes that are held; 0 for an unknown key. */
  async sizeOf(key: UploadKey): Promise<number> {
    return stat(this.#pathOf(key)).then(
      ({ size }) => size,
      (error: unknown) => {
        if (isAbsent(error)) return 0
        throw error
      },
    )
  }

  /** Opens the bytes for pieces. */
  async open(key: UploadKey): Promise<OpenUpload> {
    const file = this.#pathOf(key)
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    const handle = await open(file, constants.O_RDWR | constants.O_CREAT, 0o600)
    return {
      async put(bytes, offset) {
        let written = 0
        while (written < bytes.length) {
          const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, offset + written)
          written += bytesWritten
        }
      },
      sync: () => handle.datasync(),
      close: () => handle.close(),
    }
  }

  /** Reads the bytes from `first` to `last`, both included. */
  get(key: UploadKey, { first, last }: { first: number; last: number }): Readable {
    return createReadStream(this.#pathOf(key), { start: first, end: last, highWaterMark: readSize })
  }

  async delete(key: UploadKey): Promise<void> {
    await rm(this.#pathOf(key), { force: true })
  }

  /** Bytes that the file system can still take. */
  async freeBytes(): Promise<number> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const { bavail, bsize } = await statfs(this.#directory)
    return bavail * bsize
  }

  /** Organizations with uploads, also deleted ones. */
  organizationIds(): Promise<string[]> {
    return namesIn(this.#directory)
  }

  uploadIds(organizationId: string): Promise<string[]> {
    return namesIn(path.join(this.#directory, organizationId))
  }

  async deleteOrganization(organizationId: string): Promise<void> {
    await rm(path.join(this.#directory, organizationId), { recursive: true, force: true })
  }

  #pathOf({ organizationId, uploadId }: UploadKey): string {
    return path.join(this.#directory, organizationId, uploadId)
  }
}

export interface OpenUpload {
  put(bytes: Uint8Array, offset: number): Promise<void>
  /** Resolves when the bytes survive the machine's end. */
  sync(): Promise<void>
  close(): Promise<void>
}

const readSize = 256 * 1024
const idPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Only ids: other files of the directory are not ours. */
async function namesIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error: unknown) => {
    if (isAbsent(error)) return []
    throw error
  })
  return names.filter((name) => idPattern.test(name))
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
