import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { machinesMissing, mediaPackages } from '../lib/device/machine-kernel.ts'
import { buildBootMedium, refusedBootMedium } from '../lib/images/boot-medium.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const missing = machinesMissing(mediaPackages)
const scratch = scratchDirectory()
const inScratch = (name: string) => path.join(scratch.path, name)
const discSector = 2048
const diskSector = 512

afterAll(() => scratch.remove())

describe.skipIf(missing)(`bootfarm-edge boot-media build${missing ? ` (${missing})` : ''}`, () => {
  test("makes what the system's own tools accept as a disc and an EFI system partition", () => {
    const image = buildBootMedium(inScratch('boot.iso'), ['10.0.0.1', '10.0.0.2:8080'])
    const described = isoinfo('-d', '-i', image)
    expect(described).toContain('Volume id: BOOTFARM')
    expect(described).toContain('Boot media 0 (No Emulation Boot)')
    const script = isoinfo('-i', image, '-x', '/ISOLINUX/BOOTFARM.IPX;1')
    expect(script).toMatch(/^#!ipxe\n/)
    expect(script).toMatch(/10\.0\.0\.1:6980 10\.0\.0\.2:8080\n/)

    const bytes = readFileSync(image)
    expect(bytes.length % discSector).toBe(0)
    // The second entry of the partition table.
    const [begin, count] = [bytes.readUInt32LE(462 + 8), bytes.readUInt32LE(462 + 12)]
    expect(bytes[462 + 4], 'type EFI system partition').toBe(0xef)
    const partition = inScratch('efi.img')
    writeFileSync(partition, bytes.subarray(begin * diskSector, (begin + count) * diskSector))
    const checked = execFileSync('fsck.fat', ['-n', '-v', partition], { encoding: 'utf8' })
    expect(checked).toContain('2 FATs, 16 bit entries')
    expect(checked).toMatch(/efi\.img: 6 files,/)
  })

  test('makes the same bytes from the same files', () => {
    const [first, second] = ['first.iso', 'second.iso'].map((name) =>
      readFileSync(buildBootMedium(inScratch(name), ['10.0.0.1'])),
    )
    expect(first?.equals(second ?? Buffer.alloc(0))).toBe(true)
  })

  test.for([
    { args: ['--out', 'X'], says: '--edge is missing' },
    { args: ['--edge', '10.0.0.1'], says: '--out is missing' },
    { args: ['--edge', 'edge.example', '--out', 'X'], says: '--edge edge.example is neither' },
    { args: ['--edge', '10.0.0.1:0', '--out', 'X'], says: '--edge 10.0.0.1:0 is neither' },
    { args: ['--edge', '255.255.255.255', '--out', 'X'], says: 'is not the address of a machine' },
    {
      args: ['--edge', '10.0.0.1', '--out', 'X', '--address', '10.0.0.9'],
      says: 'neither dhcp nor IP/PREFIX',
    },
    {
      args: ['--edge', '10.0.0.1', '--out', 'X', '--address', '10.0.0.9/24,10.0.1.1'],
      says: 'the gateway is not in',
    },
    { args: ['--edge', '10.0.0.1', '--out', 'X', '--speed', '9'], says: 'has no option --speed' },
  ])('refuses $args', ({ args, says }) => {
    const { code, said } = refusedBootMedium(args.map((word) => (word === 'X' ? inScratch('no.iso') : word)))
    expect(code).toBe(1)
    expect(said).toContain(says)
    expect(said.trim().split('\n')).toHaveLength(1)
  })

  test('names the package of a missing or wrong file, and leaves nothing behind', () => {
    const folder = inScratch('ipxe')
    mkdirSync(folder)
    const into = inScratch('out')
    mkdirSync(into)
    const args = ['--edge', '10.0.0.1', '--out', path.join(into, 'boot.iso'), '--ipxe', folder]
    expect(refusedBootMedium(args)).toMatchObject({
      code: 1,
      said: expect.stringContaining('install the Debian package ipxe, or name a folder with --ipxe'),
    })
    copyFileSync('/usr/lib/ipxe/ipxe.lkrn', path.join(folder, 'ipxe.lkrn'))
    copyFileSync('/usr/lib/ipxe/ipxe.lkrn', path.join(folder, 'ipxe.efi'))
    expect(refusedBootMedium(args).said).toContain('ipxe.efi is not a UEFI program for x86-64')
    expect(readdirSync(into)).toEqual([])
  })

  test('keeps the previous image when the new one cannot be made', () => {
    const image = inScratch('kept.iso')
    writeFileSync(image, 'the one before')
    expect(refusedBootMedium(['--edge', '10.0.0.1', '--out', image, '--syslinux', scratch.path])).toMatchObject({
      code: 1,
      said: expect.stringContaining('install the Debian package isolinux'),
    })
    expect(readFileSync(image, 'utf8')).toBe('the one before')
    const nowhere = refusedBootMedium(['--edge', '10.0.0.1', '--out', inScratch('no/folder/boot.iso')])
    expect(nowhere.said).toMatch(/boot\.iso cannot be written/)
  })
})

function isoinfo(...args: string[]): string {
  return execFileSync('isoinfo', args, { encoding: 'utf8' })
}
