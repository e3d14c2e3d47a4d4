import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { toolchain } from '../paths.mjs'
import { say } from '../progress.mjs'
import { capture } from '../run.mjs'

/**
 * Debian's packages of boot programs and of the tool that signs them: unpacked only, since installing shim and GRUB
 * changes how a machine starts.
 */
const packages = ['shim-signed', 'grub-efi-amd64-signed', 'pxelinux', 'syslinux-common', 'sbsigntool']
const unpacked = path.join(toolchain, 'boot-programs')

/**
 * Fetches boot programs into .toolchain/boot-programs, without installing them.
 * @returns {Promise<string | undefined>} why they are missing
 */
export async function ensureBootPrograms() {
  if (process.arch !== 'x64') return 'boot programs are tested on x86-64 only'
  if (findBootPrograms()) return undefined
  say(`Fetching boot programs: ${packages.join(', ')}`)
  if (!(await fetchPackages())) return undefined
  // The lists may be older than the packages, or missing.
  await capture('apt-get', ['update', '-q']).catch(() => undefined)
  return fetchPackages()
}

/**
 * Returns the root in which they lie, as `dpkg-deb -x` unpacks them.
 * @returns {string | undefined}
 */
export function findBootPrograms() {
  return existsSync(unpacked) ? unpacked : undefined
}

/** @returns {Promise<string | undefined>} what went wrong */
async function fetchPackages() {
  const part = `${unpacked}.part`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part, { recursive: true })
  const steps = [
    ['apt-get', ['download', '-q', '-o', 'APT::Sandbox::User=root', ...packages]],
    ['sh', ['-c', 'for deb in *.deb; do dpkg-deb -x "$deb" . || exit; done; rm *.deb']],
  ]
  for (const [program, args] of steps) {
    const { code, output } = await capture(program, args, { cwd: part }).catch((error) => ({
      code: 1,
      output: error.message,
    }))
    if (code !== 0) return `boot programs cannot be fetched: ${output.slice(-500)}`
  }
  renameSync(part, unpacked)
  return undefined
}
