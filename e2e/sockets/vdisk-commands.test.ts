import { createHash, randomUUID } from 'node:crypto'
import {
  closeSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { versionIdOf, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { makeExt, preparedFiles } from '../lib/images/image-files.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

interface Line {
  kernel?: { sha256: string } | null
  initrd?: { sha256: string } | null
  commandLine?: string
  version?: string
  import?: string
  parent?: string | null
  number?: number
  sizeBytes?: number
  problem?: string
  manifest?: { root: string; counter: number }
  freedBytes?: number
  differentBytes?: number
  problems?: number
}

async function vdisk(args: string[], exit = 0): Promise<{ output: string; lines: Line[] }> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args])
  expect(await running.ended, running.output).toBe(exit)
  return { output: running.output, lines: running.jsonLines<Line>() }
}

async function newStore(name: string): Promise<string> {
  const store = path.join(scratch.path, name)
  await vdisk(['init', '--store', store])
  return store
}

async function imported(args: string[]): Promise<Line & { version: string }> {
  const { lines } = await vdisk(['import', ...args, '--no-boot-files', '--json'])
  const last = lines.at(-1)
  if (!last?.version) throw new Error('no version was printed')
  return { ...last, version: last.version }
}

const release = '6.1.0-1-simulated'

/** A disk with a system that was prepared for an edge. */
function makeSystem(name: string): string {
  const files = {
    ...preparedFiles,
    [`boot/vmlinuz-${release}`]: x86Kernel(release, patterned(30_001)),
    [`boot/initrd.img-${release}`]: patterned(20_003),
  }
  return makeExt(scratch.path, name, files, ['-t', 'ext4'])
}

/** 24 MiB with holes between. */
function makeImage(name: string): string {
  const file = path.join(scratch.path, name)
  const fd = openSync(file, 'w+')
  ftruncateSync(fd, 24 << 20)
  for (const at of [0, 5 << 20, 23 << 20]) writeSync(fd, patterned(1 << 20), 0, 1 << 20, at)
  closeSync(fd)
  return file
}

function digest(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

describe('an empty disk', () => {
  const make = async (store: string, args: string[]) =>
    (await vdisk(['import', '--store', store, '--name', 'Empty', '--json', ...args])).lines.at(-1)

  test('takes no space, and boots with the kernel of another version', async () => {
    const store = await newStore('empty')
    const system = (await vdisk(['import', makeSystem('system'), '--store', store, '--name', 'System', '--json'])).lines
    const donor = system.at(-1)
    expect(donor?.kernel).toMatchObject({ sha256: expect.anything() })
    const from = ['--boot-files-of', donor?.version ?? '']
    const made = await make(store, ['--empty', '64G', ...from, '--cmdline', 'bootfarm.capture=auto'])
    expect(made).toMatchObject({
      sizeBytes: 64 * 2 ** 30,
      kernel: donor?.kernel,
      initrd: donor?.initrd,
      commandLine: 'bootfarm.capture=auto',
      parent: null,
    })
    expect(await make(store, ['--empty', '1024', ...from])).toMatchObject({
      sizeBytes: 1024,
      commandLine: donor?.commandLine,
    })
    expect((await vdisk(['verify', '--store', store, '--json'])).lines.at(-1)?.problems).toBe(0)
    // What it boots with is kept when the other version goes.
    await vdisk(['delete', '--store', store, '--version', donor?.version ?? ''])
    await vdisk(['gc', '--store', store])
    expect((await vdisk(['verify', '--store', store, '--json'])).lines.at(-1)?.problems).toBe(0)
    const out = path.join(scratch.path, 'empty.out')
    await vdisk(['export', out, '--store', store, '--version', made?.version ?? ''])
    expect(statSync(out)).toMatchObject({ size: 64 * 2 ** 30, blocks: expect.toSatisfy((count) => count < 128) })
  })

  test('is refused without a size or a kernel, and with an image beside it', async () => {
    const store = await newStore('refused-empty')
    const refused = async (...args: string[]) =>
      (await vdisk(['import', '--store', store, '--name', 'x', ...args], 1)).output
    for (const size of ['0', '1000', '65T', 'all'])
      expect(await refused('--empty', size, '--no-boot-files')).toMatch(
        /--empty is a number of bytes, a multiple of 512/,
      )
    expect(await refused('--empty', '1G')).toMatch(/no kernel on an empty disk: give --boot-files-of ID/)
    expect(await refused('--empty', '1G', makeImage('beside.raw'))).toMatch(/takes no FILE/)
    expect(await refused('--empty', '1G', '--boot-files-of', randomUUID())).toMatch(/There is no version/)
    expect(await refused('--empty', '1G', '--boot-files-of', randomUUID(), '--no-boot-files')).toMatch(/excludes/)
    const plain = await imported([makeImage('plain.raw'), '--store', store, '--name', 'Plain'])
    expect(await refused('--empty', '1G', '--boot-files-of', plain.version)).toMatch(/has no kernel/)
  })
})

describe('versions in a store', () => {
  test('an image comes out unchanged, its update shares what is equal, and a merge is a base of the same bytes', async () => {
    const store = await newStore('whole')
    const image = makeImage('whole.raw')
    const base = await imported([image, '--store', store, '--name', 'Lab'])
    expect(base).toMatchObject({ number: 1, parent: null, sizeBytes: 24 << 20 })
    const out = path.join(scratch.path, 'whole.out')
    await vdisk(['export', out, '--store', store, '--version', base.version])
    expect(digest(out)).toBe(digest(image))
    expect(statSync(out).blocks).toBeLessThan((8 << 20) / 512)
    expect((await vdisk(['export', out, '--store', store, '--version', base.version], 1)).output).toMatch(
      /already exists; --force/,
    )

    const changed = readFileSync(image)
    changed.writeUInt8(changed.readUInt8(6 << 20) ^ 1, 6 << 20)
    writeFileSync(image, changed)
    const update = await imported([image, '--store', store, '--parent', base.version])
    expect(update).toMatchObject({ number: 2, parent: base.version })
    const ids = ['--from', base.version, '--version', update.version]
    expect((await vdisk(['diff', '--store', store, ...ids, '--json'])).lines).toMatchObject([{ differentBytes: 4096 }])
    const merged = (await vdisk(['merge', '--store', store, '--version', update.version, '--json'])).lines[0]
    expect(merged?.parent).toBeNull()
    expect(merged?.manifest?.root).toBe(update.manifest?.root)
    await vdisk(['delete', '--store', store, '--version', base.version])
    await vdisk(['delete', '--store', store, '--version', update.version])
    expect((await vdisk(['gc', '--store', store, '--json'])).lines.at(-1)?.freedBytes).toBeGreaterThan(0)
    await vdisk(['export', out, '--store', store, '--version', merged?.version ?? '', '--force'])
    expect(digest(out)).toBe(digest(image))
    expect((await vdisk(['verify', '--store', store, '--json'])).lines.at(-1)?.problems).toBe(0)
  })

  test('what the control plane offers is deleted with --force alone, and older versions as ever', async () => {
    const data = path.join(scratch.path, 'enrolled')
    const store = path.join(data, 'store')
    const image = makeImage('offered.raw')
    const disk = { sizeBytes: 24 << 20, kernelPath: null, initrdPath: null, commandLine: '' }
    const [offered, old] = [versionIdOf(0), randomUUID()]
    const vdiskId = randomUUID()
    const versions = [offered, old].map((id, index) => ({ id, number: 4 - index, diskPath: `versions/${id}`, ...disk }))
    writeEnrolledEdge(data, [], [], [], undefined, {
      vdisks: [{ id: vdiskId, name: 'Lab', defaultVersionId: offered, versions }],
    })
    await vdisk(['init', '--store', store])
    for (const id of [offered, old])
      await imported([image, '--store', store, '--vdisk', vdiskId, '--version', id, '--name', 'Lab'])
    const remove = ['delete', '--store', store, '--version']
    const refused = await vdisk([...remove, offered], 1)
    expect(refused.output).toMatch(
      /Version 4 of "Lab" is the default.*--force: boots of this one then fail with version_missing/,
    )
    const elsewhere = path.join(scratch.path, 'elsewhere')
    renameSync(store, elsewhere)
    const moved = ['delete', '--store', elsewhere, '--version', offered, '--data', data]
    expect((await vdisk(moved, 1)).output).toContain('Version 4 of "Lab"')
    renameSync(elsewhere, store)
    await vdisk([...remove, old])
    expect((await vdisk([...remove, offered, '--force'])).output).toContain('Boots of it fail with version_missing')
    expect((await vdisk(['list', '--store', store, '--json'])).lines).toEqual([])
  })

  test('damage is found, named, and never exported', async () => {
    const store = await newStore('damaged')
    const { version } = await imported([makeImage('damaged.raw'), '--store', store, '--name', 'Lab'])
    const extent = path.join(store, 'extents/000001')
    const data = readFileSync(extent)
    // Behind a packed unit there are zeros, which nobody reads.
    const at = data.findIndex((byte, index) => index >= data.length / 2 && byte !== 0)
    data[at] = (data[at] ?? 0) ^ 1
    writeFileSync(extent, data)
    const { output } = await vdisk(['verify', '--store', store], 1)
    const [, byte] = /at byte (\d+): a block is damaged/.exec(output) ?? []
    expect(byte, output).toBeDefined()
    const out = path.join(scratch.path, 'damaged.out')
    expect((await vdisk(['export', out, '--store', store, '--version', version], 1)).output).toMatch(
      new RegExp(`The version is damaged at byte ${byte}`),
    )
    rmSync(`${out}.part`)
    // An edge whose job this is repairs the place that a line names.
    const packing = await vdisk(['pack', out, '--store', store, '--version', version, '--json'], 1)
    expect(packing.lines).toContainEqual({ version, atByte: Number(byte), problem: 'a block is damaged' })
    const manifest = path.join(store, `versions/${version}.manifest`)
    writeFileSync(manifest, readFileSync(manifest).fill(7, 50, 60))
    expect((await vdisk(['list', '--store', store], 1)).output).toMatch(/its manifest is damaged/)
  })
})

describe('a command that cannot be done says why in one sentence', () => {
  test('a directory that is no store, a file that is no image, a version that does not exist', async () => {
    const store = await newStore('refused')
    const image = makeImage('refused.raw')
    const odd = path.join(scratch.path, 'odd.raw')
    writeFileSync(odd, Buffer.alloc(1000))
    const absent = '6d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff'
    for (const [args, sentence] of [
      [['list', '--store', scratch.path], /is not a store of vDisks; create one/],
      [
        ['import', image, '--store', path.join(scratch.path, 'absent'), '--name', 'x'],
        /does not exist; create a store with bootfarm-edge vdisk init --store/,
      ],
      [['init', '--store', store], /There is already a store in/],
      [['init', '--store', scratch.path], /contains other files/],
      [['import', odd, '--store', store, '--name', 'x', '--no-boot-files'], /not a multiple of 512 bytes\. --pad/],
      [['import', '/dev/null', '--store', store, '--name', 'x'], /neither a file, a block device nor a stream/],
      [['import', image, '--store', store], /needs --name NAME/],
      [
        ['import', image, '--store', store, '--name', 'x'],
        /boot files of the disk cannot be used: .*Give --kernel, --initrd and --cmdline, or add/,
      ],
      [['import', image, '--store', store, '--name', 'x', '--no-boot-files', '--cmdline', 'q'], /excludes/],
      [
        ['import', '../odd.raw', '--in-store', '--store', store, '--name', 'x', '--no-boot-files'],
        /leads out of the store directory/,
      ],
      [
        ['import', 'extents/000001', '--in-store', '--store', store, '--name', 'x', '--no-boot-files'],
        /is one of the store's own files/,
      ],
      [['seal', '--store', store, '--version', absent, '--parent', absent], /There is no version/],
      [['delete', '--store', store, '--version', absent], /There is no version/],
      [['import', image, '--store', store, '--parent', absent], /There is no version/],
      [['import', '--store', store, '--resume', absent], /The import .* is not in this store/],
      [['show', '--store', store, '--version', absent], /There is no version/],
    ] as const) {
      const { output } = await vdisk([...args], 1)
      expect(output).toMatch(sentence)
      expect(output.trim().split('\n')).toHaveLength(1)
    }
    expect((await vdisk(['list', '--store', store, '--json'])).lines).toEqual([])
    await vdisk(['delete', '--store', store, '--version', absent, '--again'])
  })
})

test('a repeated command takes effect once, and one that is not done says so in JSON too', async () => {
  const store = await newStore('again')
  const image = makeImage('again.raw')
  const ids = { version: randomUUID(), vdisk: randomUUID(), into: randomUUID() }
  const begun = ['import', image, '--store', store, '--version', ids.version, '--vdisk', ids.vdisk]
  const first = await vdisk([...begun, '--no-boot-files', '--again', '--json'])
  const second = await vdisk([...begun, '--no-boot-files', '--again', '--json'])
  expect(second.lines).toEqual(first.lines.slice(-1))
  const refused = await vdisk([...begun, '--no-boot-files', '--json'], 1)
  expect(refused.output).toMatch(/^\{"error":"The version .* already exists/m)
  const merge = ['merge', '--store', store, '--version', ids.version, '--into', ids.into, '--again', '--json']
  expect((await vdisk(merge)).lines).toEqual((await vdisk(merge)).lines)
  // Files beside the imports are not imports.
  writeFileSync(path.join(store, 'imports/linux.raw'), 'x')
  await vdisk(['gc', '--store', store])
  const { lines } = await vdisk(['list', '--sizes', '--store', store, '--json'])
  expect(lines).toHaveLength(2)
  expect(lines[0]).toMatchObject({ ownBytes: 0, sharedBytes: expect.any(Number) })
})
