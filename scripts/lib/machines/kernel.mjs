import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { toolchain } from '../paths.mjs'
import { say } from '../progress.mjs'
import { capture } from '../run.mjs'

/** Debian's kernels; both have nbd and overlay as modules and ext4 built in or as a module. */
const metapackages = {
  /** For virtual machines: virtio_net and little else. */
  virtual: 'linux-image-cloud-amd64',
  /** With the drivers of real network cards; four times as large. */
  full: 'linux-image-amd64',
}
const kernels = path.join(toolchain, 'kernels')

/**
 * Fetches a kernel into .toolchain/kernels/RELEASE, without installing it.
 * @param {keyof typeof metapackages} kind
 * @returns {Promise<string | undefined>} why there is none
 */
export async function ensureKernel(kind) {
  if (process.arch !== 'x64') return 'machines are emulated on x86-64 only'
  if (findKernel(kind)) return undefined
  say(`Fetching the kernel of ${metapackages[kind]} for machines`)
  const problem = await fetchKernel(metapackages[kind])
  if (!problem) return undefined
  // The lists may be older than the package, or missing.
  await capture('apt-get', ['update', '-q']).catch(() => undefined)
  return fetchKernel(metapackages[kind])
}

/**
 * Finds a complete kernel; `modules` is the root directory of its modules.
 * @param {keyof typeof metapackages} kind
 * @returns {{ release: string, vmlinuz: string, modules: string } | undefined}
 */
export function findKernel(kind) {
  if (!existsSync(kernels)) return undefined
  const isVirtual = (release) => release.includes('-cloud-')
  return readdirSync(kernels)
    .filter((release) => isVirtual(release) === (kind === 'virtual'))
    .map((release) => {
      const modules = path.join(kernels, release)
      return { release, vmlinuz: path.join(modules, 'boot', `vmlinuz-${release}`), modules }
    })
    .find(({ vmlinuz }) => existsSync(vmlinuz))
}

/**
 * @param {string} metapackage
 * @returns {Promise<string | undefined>} what went wrong
 */
async function fetchKernel(metapackage) {
  const { output } = await capture('apt-cache', ['depends', metapackage]).catch(() => ({ output: '' }))
  const name = output.match(/Depends: (linux-image-\S+)/)?.[1]
  if (!name) return `apt knows no ${metapackage}`
  const release = name.replace('linux-image-', '')
  const unpacked = path.join(kernels, `${release}.part`)
  rmSync(unpacked, { recursive: true, force: true })
  mkdirSync(unpacked, { recursive: true })
  const steps = [
    ['apt-get', ['download', '-q', name]],
    ['sh', ['-c', `dpkg-deb -x ${name}_*.deb . && rm ${name}_*.deb`]],
    ['depmod', ['-b', unpacked, release]],
  ]
  for (const [program, args] of steps) {
    const { code, output: reason } = await capture(program, args, { cwd: unpacked })
    if (code !== 0) return `${program} failed: ${reason.slice(-500)}`
  }
  rmSync(path.join(kernels, release), { recursive: true, force: true })
  renameSync(unpacked, path.join(kernels, release))
  return undefined
}
