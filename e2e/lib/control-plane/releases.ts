import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { edgeProgram } from '../lab/programs.ts'

const script = path.join(import.meta.dirname, '../../../scripts/release/repository.mjs')

/** The version of the built program. */
export const installedVersion = '0.1.0'

/** A repository of releases with its keys beside it, made by the release script. */
export class ReleaseRepository {
  readonly directory: string
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    this.directory = path.join(folder, 'repository')
    this.#run('root', '--root', this.#at('root-1.pem'), '--root', this.#at('root-2.pem'), '--threshold', '2')
  }

  /** For an API that serves it. */
  get settings(): Record<string, string> {
    return { BOOTFARM_EDGE_UPDATES: this.directory, BOOTFARM_TIMESTAMP_KEY: this.#at('timestamp.pem') }
  }

  add(...programs: string[]): void {
    this.#run('add', ...programs)
  }

  /** Makes a program that differs from the built one in these texts, each replaced by one of the same length. */
  programWith(texts: Record<string, string>): string {
    let bytes = readFileSync(edgeProgram).toString('latin1')
    for (const [from, to] of Object.entries(texts)) {
      if (to.length !== from.length || !bytes.includes(from))
        throw new Error(`${from} cannot be replaced by ${to} in the edge's program`)
      bytes = bytes.replaceAll(from, to)
    }
    const file = this.#at(`program-${Object.values(texts).join('-').replaceAll('/', '_')}`)
    writeFileSync(file, Buffer.from(bytes, 'latin1'))
    return file
  }

  #at(name: string): string {
    return path.join(this.#folder, name)
  }

  #run(command: 'root' | 'add', ...words: string[]): void {
    const keys = ['targets', 'snapshot', 'timestamp'].flatMap((role) => [`--${role}`, this.#at(`${role}.pem`)])
    execFileSync(process.execPath, [script, command, '--repository', this.directory, ...keys, ...words])
  }
}
