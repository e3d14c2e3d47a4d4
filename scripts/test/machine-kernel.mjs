import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { toolchain } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { capture } from '../lib/run.mjs'

/** Debian's kernel for virtual machines: nbd, overlay and virtio_net as modules, ext4 built in. */
const metapackage = 'linux-image-cloud-amd64'
const kernels = path.join(toolchain, 'kernels')

/**
 * Fetches the kernel that the tests' virtual machines boot into .toolchain/kernels/RELEASE, without installing it.
 * @returns {Promise<string | undefined>} why there is none
 */
export async function ensureMachineKernel() {
  if (process.arch !== 'x64') return 'machines are emulated on x86-64 only'
  if (findKernel()) return undefined
  say("Fetching a kernel for the tests' virtual machines")
  const problem = await fetchKernel()
  if (!problem) return undefined
  // The lists may be older than the package, or not be there.
  await capture('apt-get', ['update', '-q']).catch(() => undefined)
  return fetchKernel()
}

/** @returns {Promise<string | undefined>} what went wrong */
async function fetchKernel() {
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

/** The release of a kernel that is there whole. */
function findKernel() {
  if (!existsSync(kernels)) return undefined
  return readdirSync(kernels).find((release) =>
    existsSync(path.join(kernels, release, 'boot', `vmlinuz-${release}`)),
  )
}
