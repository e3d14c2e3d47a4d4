import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { edgeSource, toolchain } from '../paths.mjs'
import { say } from '../progress.mjs'
import { capture } from '../run.mjs'
import { zigJobs } from '../toolchain.mjs'

/** Debian's packages for arm64, unpacked but never installed, since this machine has another architecture. */
const unpacked = path.join(toolchain, 'arm64')
const kernelMetapackage = 'linux-image-cloud-arm64'
const otherPackages = ['grub-efi-arm64-signed', 'busybox-static']
const target = path.join(edgeSource, 'zig-out/arm64/bin/bootfarm-target')

/**
 * Prepares what an emulated arm64 machine boots: a kernel, GRUB, busybox and our own program for it.
 * @param {string} zig the compiler
 * @returns {Promise<string | undefined>} why it is missing
 */
export async function ensureArm64(zig) {
  if (process.arch !== 'x64') return 'machines are emulated on x86-64 only'
  const args = ['build', zigJobs, '-Darch=aarch64', '--prefix', 'zig-out/arm64']
  const built = await capture(zig, args, { cwd: edgeSource })
  if (built.code !== 0) return `the programs for arm64 could not be built: ${built.output.slice(-500)}`
  if (findArm64()) return undefined
  say('Fetching a kernel and GRUB for arm64 machines')
  return fetchPackages().catch((error) => error.message)
}

/**
 * @returns {{ kernel: { release: string, vmlinuz: string, modules: string }, grub: string, busybox: string, target:
 *   string } | undefined}
 */
export function findArm64() {
  const modules = path.join(unpacked, 'lib/modules')
  const [release] = existsSync(modules) ? readdirSync(modules) : []
  if (!release || !existsSync(target)) return undefined
  return {
    kernel: { release, vmlinuz: path.join(unpacked, `boot/vmlinuz-${release}`), modules: unpacked },
    grub: path.join(unpacked, 'usr/lib/grub/arm64-efi-signed'),
    busybox: path.join(unpacked, 'bin/busybox'),
    target,
  }
}

/** Uses separate package lists, so that the system's apt learns nothing of another architecture. */
async function fetchPackages() {
  const part = `${unpacked}.part`
  rmSync(part, { recursive: true, force: true })
  const lists = path.join(part, 'apt')
  for (const folder of ['lists/partial', 'archives/partial']) mkdirSync(path.join(lists, folder), { recursive: true })
  const options = [
    '-q',
    '-o',
    'APT::Architecture=arm64',
    '-o',
    'APT::Architectures=arm64',
    '-o',
    `Dir::State=${lists}`,
    '-o',
    `Dir::Cache=${lists}`,
    '-o',
    'Dir::State::status=/dev/null',
    '-o',
    'APT::Sandbox::User=root',
  ]
  const apt = (program, ...args) => capture(program, [...options, ...args], { cwd: part })
  const { output } = await apt('apt-get', 'update').then(() => apt('apt-cache', 'depends', kernelMetapackage))
  const kernel = output.match(/Depends: (linux-image-\S+)/)?.[1]
  if (!kernel) return `apt knows no ${kernelMetapackage}`
  const steps = [
    () => apt('apt-get', 'download', kernel, ...otherPackages),
    () =>
      capture('sh', ['-c', 'for deb in *.deb; do dpkg-deb -x "$deb" . || exit; done; rm *.deb'], {
        cwd: part,
      }),
    () => capture('depmod', ['-b', part, kernel.replace('linux-image-', '')]),
  ]
  for (const step of steps) {
    const { code, output: reason } = await step()
    if (code !== 0) return `packages of arm64 cannot be fetched: ${reason.slice(-500)}`
  }
  rmSync(lists, { recursive: true })
  rmSync(unpacked, { recursive: true, force: true })
  renameSync(part, unpacked)
  return undefined
}
