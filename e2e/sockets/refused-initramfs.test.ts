import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const release = '6.1.0-53-amd64'
const allRequired = ['nbd', 'overlay', 'af_packet']
const [x86, arm64] = [62, 183]
const missingPackages = (process.env.BOOTFARM_MISSING_PACKAGES ?? '').split(' ')
const noBusybox =
  missingPackages.includes('busybox-static') || !existsSync('/bin/busybox') ? 'not installed: busybox-static' : ''

/**
 * Returns the header of a 64-bit program or module for a processor (System V ABI, chapter 4), and the kernel release of
 * a module.
 */
function elf(machine: number, madeFor = release): Buffer {
  const header = Buffer.alloc(64)
  header.write('\x7fELF')
  header.writeUInt8(2, 4)
  header.writeUInt8(1, 5)
  header.writeUInt16LE(machine, 18)
  return Buffer.concat([header, Buffer.from(`\0vermagic=${madeFor} SMP mod_unload \0`)])
}

/** Makes a root with a kernel's modules; those that a device needs are all the same file. */
function modulesOf(name: string, modules: string[], content = elf(x86)): string {
  const root = path.join(scratch.path, name)
  const folder = path.join(root, 'lib/modules', release)
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'modules.dep'), modules.map((module) => `${module}.ko:\n`).join(''))
  for (const module of modules) writeFileSync(path.join(folder, `${module}.ko`), content)
  return root
}

async function refusal(modules: string, more: string[] = [], wanted = release): Promise<string> {
  const out = path.join(scratch.path, 'initrd.img')
  const build = new RunningProcess(edgeProgram, [
    'initramfs',
    'build',
    '--kernel-release',
    wanted,
    '--modules',
    modules,
    '--out',
    out,
    ...more,
  ])
  expect(await build.ended, build.output).toBe(1)
  expect(existsSync(out), 'nothing is written').toBe(false)
  return build.output.trim().split('\n').at(-1) ?? ''
}

describe('an initramfs that could not work is not built, and one sentence says why', () => {
  test.for([
    ['nbd', 'CONFIG_BLK_DEV_NBD', 'the streamed disk is an nbd device'],
    ['overlay', 'CONFIG_OVERLAY_FS', 'writes are kept in RAM above the read-only disk'],
    ['af_packet', 'CONFIG_PACKET', 'DHCP needs raw packets'],
  ] as const)('the kernel has no %s', async ([module, option, purpose]) => {
    const others = allRequired.filter((name) => name !== module)
    expect(await refusal(modulesOf(`without-${module}`, others))).toBe(
      `bootfarm-edge: kernel ${release} has no ${module} (${option}), neither as a module nor built in: ${purpose}`,
    )
  })

  test('that kernel has no modules', async () => {
    const modules = modulesOf('other-release', allRequired)
    expect(await refusal(modules, [], '6.1.0-51-amd64')).toBe(
      `bootfarm-edge: there are no modules of kernel 6.1.0-51-amd64 in ${modules}; there are those of ${release}`,
    )
  })

  test.skipIf(noBusybox)(`the modules are another kernel’s ${noBusybox}`, async () => {
    const modules = modulesOf('renamed', allRequired, elf(x86, '6.1.0-51-amd64'))
    expect(await refusal(modules)).toBe(
      `bootfarm-edge: nbd.ko is for kernel 6.1.0-51-amd64, not ${release}; name the modules of that one with --modules`,
    )
  })

  test.skipIf(noBusybox)(`the modules are for another processor ${noBusybox}`, async () => {
    const other = process.arch === 'arm64' ? x86 : arm64
    const [own, foreign] = process.arch === 'arm64' ? ['aarch64', 'x86_64'] : ['x86_64', 'aarch64']
    expect(await refusal(modulesOf('foreign', allRequired, elf(other)))).toBe(
      `bootfarm-edge: kernel ${release} is for ${foreign}, but bootfarm-target for ${own}; name a matching one with --target`,
    )
  })

  test.skipIf(noBusybox)(`bootfarm-target is for another processor than busybox ${noBusybox}`, async () => {
    const target = path.join(scratch.path, 'foreign-target')
    writeFileSync(target, elf(process.arch === 'arm64' ? x86 : arm64))
    const [own, foreign] = process.arch === 'arm64' ? ['aarch64', 'x86_64'] : ['x86_64', 'aarch64']
    expect(await refusal(modulesOf('good', allRequired), ['--target', target])).toBe(
      `bootfarm-edge: bootfarm-target is for ${foreign}, but busybox for ${own}; name a matching one with --busybox`,
    )
  })

  test('the release is a path', async () => {
    expect(await refusal(scratch.path, [], '/lib/modules/6.1.0')).toMatch(/^bootfarm-edge: --kernel-release is a name/)
  })
})
