/**
 * Keeps in this browser what the API does not know of an unfinished upload: which file it was, and the import that
 * follows it. Without it, an upload continues all the same, and its import is begun by hand.
 */

const prefix = 'bootfarm.upload.'
/** An upload expires seven days after its last piece. */
const keptMs = 8 * 86_400_000

export interface RememberedUpload<Import = unknown> {
  /** Of the file: another one of the same name and size is another file. */
  lastModified: number
  /** The import's input, but for the upload itself. */
  import: Import
  /** Why it stopped, in a sentence; null: the page was left. */
  stopped: string | null
}

type Keeper = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>

export function rememberUpload(storage: Keeper | null, id: string, upload: RememberedUpload, nowMs: number): void {
  if (!storage) return
  try {
    forgetOld(storage, nowMs)
    storage.setItem(prefix + id, JSON.stringify(Object.assign({ atMs: nowMs }, upload)))
  } catch {
    // A full or forbidden storage costs the convenience alone.
  }
}

export function recallUpload<Import>(
  storage: Keeper | null,
  id: string,
  parseImport: (value: unknown) => Import | null,
): RememberedUpload<Import> | null {
  const value = parsed(storage?.getItem(prefix + id) ?? null)
  const lastModified = fieldOf(value, 'lastModified')
  const following = parseImport(fieldOf(value, 'import'))
  const stopped = fieldOf(value, 'stopped')
  if (typeof lastModified !== 'number' || following === null) return null
  return { lastModified, import: following, stopped: typeof stopped === 'string' ? stopped : null }
}

export function forgetUpload(storage: Keeper | null, id: string): void {
  storage?.removeItem(prefix + id)
}

/** Null where the browser has none, or forbids it. */
export function browserStorage(): Storage | null {
  try {
    return typeof window === 'undefined' ? null : window.localStorage
  } catch {
    return null
  }
}

/** Returns why this is not the file of the upload; null: as far as one can see, it is. */
export function otherFileProblem(
  file: { name: string; size: number; lastModified: number },
  upload: { name: string; sizeBytes: number },
  remembered: Pick<RememberedUpload, 'lastModified'> | null,
): string | null {
  if (file.name !== upload.name) return `This is ${file.name}. Choose ${upload.name}, or discard this upload.`
  if (file.size !== upload.sizeBytes)
    return `${file.name} has ${file.size} bytes, and the upload began with ${upload.sizeBytes}. Discard this upload, and import the file again.`
  if (remembered && remembered.lastModified !== file.lastModified)
    return `${file.name} was changed after the upload began. Discard this upload, and import the file again.`
  return null
}

function forgetOld(storage: Keeper, nowMs: number): void {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? '')
  for (const key of keys.filter((one) => one.startsWith(prefix))) {
    const atMs = fieldOf(parsed(storage.getItem(key)), 'atMs')
    if (typeof atMs !== 'number' || nowMs - atMs > keptMs) storage.removeItem(key)
  }
}

function parsed(text: string | null): unknown {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
