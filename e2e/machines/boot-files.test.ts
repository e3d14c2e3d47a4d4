import { execFileSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { bootProgram } from '@bootfarm/proto/uplink'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  bootFiles,
  bootProgramsMissing,
  importSets,
  signForSite,
  siteCertificate,
  unpackedPackages,
} from '../lib/images/boot-programs.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

const missing = bootProgramsMissing()
const scratch = scratchDirectory()
const inScratch = (...names: string[]) => path.join(scratch.path, ...names)
const shimPath = 'usr/lib/shim/shimx64.efi.signed'
const grubPath = 'usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed'
const listed = z.array(bootProgram.extend({ isFirst: z.boolean() }))

const list = (directory: string) => {
  const { status, stdout } = bootFiles('list', '--boot-files', directory, '--json')
  expect(status).toBe(0)
  return listed.parse(JSON.parse(stdout))
}

/** Returns the subjects' common names, as Debian's sbverify reads them. */
const signersBySbverify = (file: string) => {
  const sbverify = path.join(unpackedPackages(), 'usr/bin/sbverify')
  const output = execFileSync(sbverify, ['--list', file], { encoding: 'utf8' })
  return [...output.matchAll(/signature certificates:\n - subject: .*?\/CN=([^\n/]+)/g)].map(([, name]) => name)
}

/** Makes a folder with these files of the packages. */
function folderOf(name: string, files: string[]): string {
  const folder = inScratch(name)
  mkdirSync(folder)
  for (const file of files) copyFileSync(path.join(unpackedPackages(), file), path.join(folder, path.basename(file)))
  return folder
}

afterAll(() => scratch.remove())

describe.skipIf(missing)(`bootfarm-edge boot-files${missing ? ` (${missing})` : ''}`, () => {
  test("imports the sets of Debian's packages and names each program", () => {
    const directory = inScratch('sets')
    importSets(directory, ['--set', 'shim-grub', '--from', unpackedPackages()])
    const said = importSets(directory, ['--set', 'pxelinux', '--from', unpackedPackages()])
    expect(said).toContain('restart it')
    importSets(directory, ['--set', 'ipxe'])
    expect(list(directory)).toMatchObject([
      { set: 'ipxe', file: 'undionly.kpxe', kind: 'iPXE', arch: 'bios', isFirst: true, signedBy: [] },
      {
        set: 'ipxe',
        file: 'ipxe.efi',
        kind: 'iPXE',
        arch: 'x64_uefi',
        version: expect.stringMatching(/^1\./),
        isFirst: true,
      },
      { set: 'pxelinux', file: 'pxelinux.0', kind: 'PXELINUX', arch: 'bios', version: '6.04', isFirst: true },
      { set: 'pxelinux', file: 'ldlinux.c32', kind: 'Syslinux module', arch: 'any', isFirst: false },
      {
        set: 'shim-grub',
        file: 'shimx64.efi',
        kind: 'shim',
        arch: 'x64_uefi',
        version: expect.stringMatching(/^\d+\./),
        isFirst: true,
      },
      {
        set: 'shim-grub',
        file: 'grubx64.efi',
        kind: 'GRUB',
        arch: 'x64_uefi',
        version: expect.stringMatching(/^2\./),
        isFirst: false,
      },
    ])
    for (const { file, source } of [
      { file: 'shimx64.efi', source: shimPath },
      { file: 'grubx64.efi', source: grubPath },
    ]) {
      const original = path.join(unpackedPackages(), source)
      const bytes = readFileSync(original)
      expect(list(directory).find((program) => program.file === file)).toMatchObject({
        sizeBytes: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
        signedBy: signersBySbverify(original),
      })
    }
  })

  test("imports a site's own signed program from a folder, and replaces it the next time", () => {
    const directory = inScratch('own')
    const folder = inScratch('own-folder')
    mkdirSync(folder)
    copyFileSync('/usr/lib/ipxe/snponly.efi', path.join(folder, 'snponly.efi'))
    importSets(directory, ['--set', 'site', '--from', folder])
    expect(list(directory)).toMatchObject([{ file: 'snponly.efi', signedBy: [] }])
    signForSite('/usr/lib/ipxe/snponly.efi', path.join(folder, 'snponly.efi'), scratch.path)
    importSets(directory, ['--set', 'site', '--from', folder])
    const { subject } = new X509Certificate(readFileSync(siteCertificate))
    const [program] = list(directory)
    expect(program).toMatchObject({ set: 'site', file: 'snponly.efi', isFirst: true })
    expect(program?.signedBy).toHaveLength(1)
    expect(subject.split('\n').map((part) => part.replace(/^\w+=/, ''))).toContain(program?.signedBy[0])
    expect(readdirSync(directory), 'nothing of the import is left').toEqual(['site'])
    expect(bootFiles('remove', '--boot-files', directory, '--set', 'site').status).toBe(0)
    expect(readdirSync(directory)).toEqual([])
  })

  test('renames what shim loads to the name that shim asks for', () => {
    const directory = inScratch('renamed')
    importSets(directory, ['--set', 'mine', '--from', folderOf('shim-and-grub', [shimPath, grubPath])])
    expect(list(directory)).toMatchObject([
      { file: 'grubx64.efi', isFirst: false },
      { file: 'shimx64.efi', isFirst: true },
    ])
  })

  test('names the package that has a missing file, and the command that installs it', () => {
    const root = inScratch('empty-root')
    mkdirSync(path.join(root, 'usr/lib'), { recursive: true })
    const directory = inScratch('empty')
    const { status, stderr } = bootFiles('import', '--boot-files', directory, '--from', root)
    expect(status).toBe(1)
    expect(stderr).toMatch(/^bootfarm-edge: ipxe is not imported .*apt install ipxe$/m)
    expect(stderr).toMatch(/^bootfarm-edge: shim-grub .*apt install shim-signed grub-efi-amd64-signed$/m)
    expect(stderr).toMatch(/^bootfarm-edge: pxelinux .*apt install pxelinux syslinux-common$/m)
  })

  test('a folder with an unknown, truncated or incomplete file makes no set', () => {
    const directory = inScratch('refused')
    mkdirSync(directory)
    const import_ = (folder: string, ...args: string[]) =>
      bootFiles('import', '--boot-files', directory, '--set', 'x', '--from', folder, ...args)
    const unknown = folderOf('unknown', [shimPath, grubPath])
    writeFileSync(path.join(unknown, 'README'), 'read me')
    expect(import_(unknown).stderr).toMatch(/unknown\/README is no boot program that is known.*--force-arch\.\n$/)
    const cut = folderOf('cut', [grubPath])
    truncateSync(path.join(cut, 'grubnetx64.efi.signed'), 100_000)
    expect(import_(cut).stderr).toMatch(/is a UEFI program that was cut short or damaged/)
    expect(import_(folderOf('half', [shimPath])).stderr).toMatch(/shim loads grubx64\.efi, which is missing/)
    const modules = folderOf('modules', ['usr/lib/syslinux/modules/bios/ldlinux.c32'])
    expect(import_(modules).stderr).toMatch(/has no program that a firmware could load first/)
    expect(import_(inScratch('nowhere')).stderr).toMatch(/nowhere cannot be read/)
    expect(readdirSync(directory)).toEqual([])

    expect(import_(unknown, '--force-arch', 'any').status).toBe(0)
    expect(list(directory).find(({ file }) => file === 'README')).toMatchObject({
      kind: 'program',
      arch: 'any',
    })
  })

  test.for([
    { args: [], says: 'import, list or remove' },
    { args: ['import'], says: '--boot-files is missing' },
    { args: ['import', '--boot-files', 'X', '--set', 'A B'], says: "not 'A B'" },
    {
      args: ['import', '--boot-files', 'X', '--set', 'default'],
      says: 'consists of the files directly in the directory',
    },
    { args: ['import', '--boot-files', 'X', '--set', 'own'], says: 'for own, name a folder with --from' },
    { args: ['import', '--boot-files', 'X', '--from', '/usr/lib/ipxe'], says: '--set is missing' },
    { args: ['import', '--boot-files', 'X', '--force-arch', 'ppc'], says: "not 'ppc'" },
    { args: ['remove', '--boot-files', '/nowhere', '--set', 'x'], says: '/nowhere cannot be read' },
    { args: ['list', '--boot-files', '/nowhere'], says: '/nowhere cannot be read' },
    { args: ['list', '--speed', '9'], says: 'has no option --speed' },
  ])('refuses $args with a sentence', ({ args, says }) => {
    const { status, stdout, stderr } = bootFiles(...args)
    expect(status).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toContain(says)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })

  test('two imports do not overlap, and what a killed one left is removed', () => {
    const directory = inScratch('busy')
    mkdirSync(path.join(directory, '.boot-files-import'), { recursive: true })
    writeFileSync(path.join(directory, '.boot-files-import/half'), 'half')
    const args = ['boot-files', 'import', '--boot-files', directory, '--set', 'ipxe']
    expect(() => execFileSync('flock', [directory, edgeProgram, ...args], { stdio: 'pipe' })).toThrow(
      /Another bootfarm-edge boot-files is running/,
    )
    expect(list(directory)).toEqual([])
    importSets(directory, ['--set', 'ipxe'])
    expect(readdirSync(directory)).toEqual(['ipxe'])
  })

  test('an incomplete set is left out and named, the others stay', () => {
    const directory = inScratch('damaged')
    importSets(directory, ['--set', 'ipxe'])
    cpSync(path.join(directory, 'ipxe'), path.join(directory, 'copied'), { recursive: true })
    importSets(directory, ['--set', 'snponly'])
    truncateSync(path.join(directory, 'snponly/snponly.efi'), 1000)
    mkdirSync(path.join(directory, 'mine'))
    const { status, stdout, stderr } = bootFiles('list', '--boot-files', directory)
    expect(status).toBe(0)
    expect(stdout.match(/^\S+$/gm)).toEqual(['ipxe'])
    expect(stderr).toMatch(/damaged\/snponly has a file that differs from its manifest\.json/)
    expect(stderr).toMatch(/damaged\/copied has a manifest\.json that cannot be read/)
    expect(stderr).toMatch(/damaged\/mine has no manifest\.json/)
    expect(bootFiles('remove', '--boot-files', directory, '--set', 'mine').stderr).toMatch(/is not a set/)
  })
})
