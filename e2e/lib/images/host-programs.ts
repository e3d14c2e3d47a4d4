import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import path from 'node:path'

/** Copies programs of this machine into a root directory, with the libraries that they load. */
export function copyPrograms(root: string, programs: readonly string[]): void {
  for (const program of programs) {
    const libraries = execFileSync('ldd', [program], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
    for (const file of [program, ...libraries]) {
      const to = path.join(root, file)
      mkdirSync(path.dirname(to), { recursive: true })
      copyFileSync(file, to)
    }
  }
}
