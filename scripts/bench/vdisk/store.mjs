import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { storeBenchProgram } from '../../lib/paths.mjs'
import { lastJson, runToEnd } from './run.mjs'

const extents = 25_000_000
export const differenceMib = 2700
const chain = { mib: 1024, versions: 32, reads: 20_000 }

/** Runs `store-bench`; returns its result. */
export async function bench(args) {
  return lastJson(await runToEnd(storeBenchProgram, args))
}

/** Merges a difference of 2.7 GB, and one of 25 million scattered blocks; opens the result with a cold page cache. */
export async function measureLarge(directory, rounds) {
  const measured = { difference: [], scattered: [] }
  for (let round = 0; round < rounds; round++) {
    for (const [name, args] of [
      ['difference', ['difference', '--mib', String(differenceMib)]],
      ['scattered', ['large', '--extents', String(extents)]],
    ]) {
      const store = path.join(directory, 'store')
      mkdirSync(store)
      measured[name].push(await bench([args[0], store, ...args.slice(1)]))
      rmSync(store, { recursive: true })
    }
  }
  return { extents, differenceMib, ...measured }
}

/** Random reads of 32 KiB; the program runs its own rounds over one store. */
export async function measureReads(directory, rounds) {
  const numbers = Object.entries(chain).flatMap(([name, value]) => [`--${name}`, String(value)])
  return bench(['reads', directory, ...numbers, '--rounds', String(rounds)])
}
