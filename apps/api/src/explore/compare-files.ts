import type { FilesRead } from '@bootfarm/proto/uplink'

/** Which files two sets of boots wait for: pure. */

type ReadFile = Pick<FilesRead['files'][number], 'name' | 'kind' | 'bytes' | 'storageUs'>

/** Means over all boots of a set that have a list of files; a boot whose list lacks the file counts with 0. */
export interface FileOfSet {
  /** Boots that list it. */
  boots: number
  bytes: number
  storageUs: number
}

export interface ComparedFile {
  name: string
  kind: ReadFile['kind']
  base: FileOfSet
  set: FileOfSet
}

/** By what a boot waits longer for than in the baseline, the largest difference first. */
export function compareFiles(base: ReadFile[][], set: ReadFile[][]): ComparedFile[] {
  const files = new Map<string, ComparedFile>()
  const none = () => ({ boots: 0, bytes: 0, storageUs: 0 })
  for (const side of ['base', 'set'] as const)
    for (const list of side === 'base' ? base : set)
      for (const { name, kind, bytes, storageUs } of list) {
        const key = `${kind} ${name}`
        const file = files.get(key) ?? { name, kind, base: none(), set: none() }
        file[side].boots += 1
        file[side].bytes += bytes
        file[side].storageUs += storageUs
        files.set(key, file)
      }
  return [...files.values()]
    .map((file) => ({ ...file, base: meanOf(file.base, base.length), set: meanOf(file.set, set.length) }))
    .sort((a, b) => grownUs(b) - grownUs(a))
}

const grownUs = ({ base, set }: ComparedFile) => set.storageUs - base.storageUs

function meanOf({ boots, bytes, storageUs }: FileOfSet, count: number): FileOfSet {
  const lists = Math.max(1, count)
  return { boots, bytes: Math.round(bytes / lists), storageUs: Math.round(storageUs / lists) }
}
