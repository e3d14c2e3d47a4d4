import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { say } from '../lib/progress.mjs'
import { requirePackages } from '../lib/system-packages.mjs'
import { buildEdge, buildStoreBench, ensureZig } from '../lib/toolchain.mjs'
import { casesNamed } from './cases.mjs'
import { keepResult } from './results.mjs'
import { measureFormats } from './vdisk/formats.mjs'
import { measureImports } from './vdisk/imports.mjs'
import { measureLarge, measureReads } from './vdisk/store.mjs'
import { asMarkdown } from './vdisk/table.mjs'
import { measureWrites } from './vdisk/writes.mjs'

const packages = [
  { paths: ['/usr/bin/qemu-nbd'], debian: 'qemu-utils' },
  { paths: ['/usr/bin/qemu-img'], debian: 'qemu-utils' },
]

/** Parts that `--only` can measure alone. */
const parts = {
  merge: measureLarge,
  reads: measureReads,
  imports: measureImports,
  formats: measureFormats,
  writes: measureWrites,
}

/**
 * Measures the vDisk store beside raw files and qcow2, and prints medians and ratios.
 * @param {{ rounds: number, write: boolean, only: string }} options
 */
export async function benchVdisk({ rounds, write, only }) {
  if (process.getuid() !== 0) throw new UserError('this benchmark empties the page cache and so needs root.')
  const names = casesNamed('vdisk', Object.keys(parts), only)
  const chosen = names.map((name) => [name, parts[name]])
  await requirePackages('npm run bench -- vdisk', packages)
  const zig = await ensureZig()
  await buildEdge(zig)
  await buildStoreBench(zig)

  // On the disk of the temporary directory, which must not be memory.
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  try {
    const loadBefore = os.loadavg()[0]
    const result = { date: new Date().toISOString(), rounds, processors: os.cpus().length, loadBefore }
    for (const [name, measure] of chosen) {
      const directory = path.join(scratch, name)
      mkdirSync(directory)
      result[name] = await measure(directory, rounds)
      rmSync(directory, { recursive: true })
      say(`${name}: measured`)
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keepResult('vdisk-bench', result, asMarkdown(result))
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
