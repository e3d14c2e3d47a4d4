import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../../lib/fail.mjs'
import { Segment } from '../../lib/lab/segment.mjs'
import { ensureKernel } from '../../lib/machines/kernel.mjs'
import { ensureSystemRoot } from '../../lib/machines/system-root.mjs'
import { requirePackages } from '../../lib/system-packages.mjs'
import { buildEdge, ensureZig } from '../../lib/toolchain.mjs'

/**
 * Builds and fetches what a benchmark boots; throws what is missing.
 * @param {string} bench
 * @param {Parameters<typeof requirePackages>[1]} packages
 * @returns {Promise<import('../../lib/machines/system-root.mjs').SystemRoot>} a Debian
 */
export async function requireMachines(bench, packages) {
  if (process.getuid() !== 0) throw new UserError('this benchmark makes network namespaces and so needs root.')
  await requirePackages(`npm run bench -- ${bench}`, packages)
  await buildEdge(await ensureZig())
  const kernelMissing = await ensureKernel('virtual')
  if (kernelMissing) throw new UserError(`there is no kernel to boot: ${kernelMissing}.`)
  const root = await ensureSystemRoot()
  if ('missing' in root) throw new UserError(`there is no Debian to boot: ${root.missing}.`)
  return root
}

/**
 * Runs `work` with a directory and a network segment, which go with it.
 * @param {(place: { scratch: string, segment: Segment }) => Promise<void>} work
 */
export async function onSegment(work) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  // dnsmasq reads boot programs as its own user.
  chmodSync(scratch, 0o755)
  const segment = new Segment('bench', { machines: 1 })
  try {
    await work({ scratch, segment })
  } finally {
    segment.remove()
    rmSync(scratch, { recursive: true, force: true })
  }
}
