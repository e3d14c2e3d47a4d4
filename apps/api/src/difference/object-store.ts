import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import path from 'node:path'

/** Keeps the bytes of differences under `<organization>/<difference>/<name>`. Several API processes share one. */
export interface ObjectStore {
  /** Resolves when the bytes survive the machine's end; replaces what was there. */
  put(key: ObjectKey, bytes: Uint8Array): Promise<void>
  /** Null: there is no such object. */
  get(key: ObjectKey): Promise<Uint8Array | null>
  /** Names of the objects of a difference, in any order. */
  names(difference: DifferenceKey): Promise<string[]>
  /** Deletes an object, where it exists. */
  remove(key: ObjectKey): Promise<void>
  /** Deletes all objects of a difference. */
  delete(difference: DifferenceKey): Promise<void>
  /** Differences of an organization that have objects. */
  differenceIds(organizationId: string): Promise<string[]>
  /** Organizations that have objects, also deleted ones. */
  organizationIds(): Promise<string[]>
}

export interface DifferenceKey {
  organizationId: string
  differenceId: string
}

export interface ObjectKey extends DifferenceKey {
  name: string
}

const idPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
export const isStoredId = (name: string) => idPattern.test(name)
/** An object that is being written: a process that was killed leaves one, which goes with its difference. */
const partSuffix = '.part'

/** An object store as a directory. */
export class DirectoryStore implements ObjectStore {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async put(key: ObjectKey, bytes: Uint8Array): Promise<void> {
    const file = this.#pathOf(key)
    const folder = path.dirname(file)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    // Two processes may write the same object at once: each its own file, and the last one stays.
    const part = `${file}.${randomUUID()}${partSuffix}`
    try {
      const handle = await open(part, 'wx', 0o600)
      try {
        await handle.writeFile(bytes)
        await handle.datasync()
      } finally {
        await handle.close()
      }
      await rename(part, file)
    } catch (error) {
      await rm(part, { force: true })
      throw error
    }
    const handle = await open(folder, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  }

  get(key: ObjectKey): Promise<Uint8Array | null> {
    return unlessAbsent<Uint8Array | null>(() => readFile(this.#pathOf(key)), null)
  }

  async names({ organizationId, differenceId }: DifferenceKey): Promise<string[]> {
    const folder = path.join(this.#directory, organizationId, differenceId)
    const names = await unlessAbsent(() => readdir(folder), [])
    return names.filter((name) => !name.endsWith(partSuffix))
  }

  remove(key: ObjectKey): Promise<void> {
    return rm(this.#pathOf(key), { force: true })
  }

  async delete({ organizationId, differenceId }: DifferenceKey): Promise<void> {
    await rm(path.join(this.#directory, organizationId, differenceId), { recursive: true, force: true })
  }

  async differenceIds(organizationId: string): Promise<string[]> {
    return this.#idsIn(path.join(this.#directory, organizationId))
  }

  async organizationIds(): Promise<string[]> {
    return this.#idsIn(this.#directory)
  }

  /** Only ids: other files of the directory are not ours. */
  async #idsIn(directory: string): Promise<string[]> {
    const names = await unlessAbsent(() => readdir(directory), [])
    return names.filter(isStoredId)
  }

  #pathOf({ organizationId, differenceId, name }: ObjectKey): string {
    return path.join(this.#directory, organizationId, differenceId, name)
  }
}

async function unlessAbsent<T>(work: () => Promise<T>, absent: T): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return absent
    throw error
  }
}
