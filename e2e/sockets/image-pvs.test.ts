import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { type Change, writeVhdDifference, writeVhdxDifference } from '../lib/images/difference-images.ts'
import { type PvsVersion, writePvsManifest, writePvsSideFiles } from '../lib/images/pvs-store.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const missing = existsSync('/usr/bin/qemu-img') ? undefined : 'not installed: qemu-utils'
const mib = 1 << 20
const diskSize = 40 * mib
const disk = path.join(scratch.path, 'disk.raw')

const changes = (seed: number): Change[] => [
  { at: 2 * mib, bytes: Buffer.alloc(mib, seed) },
  { at: 17 * mib - 512 * seed, bytes: Buffer.alloc(1024 * seed, seed) },
]

interface Listed {
  version: string
  vdisk: string
  name: string
  note?: string
  number: number
  parent: string | null
  ownBytes: number
}

/** A store of our own in a new directory. */
class OurStore {
  readonly path: string

  constructor(name: string) {
    this.path = path.join(scratch.path, name)
    execFileSync(edgeProgram, ['vdisk', 'init', '--store', this.path])
  }

  run(...args: string[]): string {
    return execFileSync(edgeProgram, ['vdisk', ...args, '--store', this.path], { encoding: 'utf8' })
  }

  import(from: string, ...args: string[]): string {
    return this.run('import-pvs', from, '--no-boot-files', ...args)
  }

  refusal(from: string, ...args: string[]): { said: string; error: string } {
    const all = ['vdisk', 'import-pvs', from, '--no-boot-files', ...args, '--store', this.path]
    const { status, stderr, stdout } = spawnSync(edgeProgram, all, { encoding: 'utf8' })
    expect(status, stderr).toBe(1)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(this.versions()).toEqual([])
    return { said: stdout, error: stderr }
  }

  versions(): Listed[] {
    const lines = this.run('list', '--sizes', '--json').trim().split('\n')
    const found: Listed[] = lines.filter((line) => line !== '').map((line) => JSON.parse(line))
    return found.sort((a, b) => a.number - b.number)
  }

  digest(version: string): string {
    const out = path.join(scratch.path, 'out.raw')
    this.run('export', out, '--force', '--version', version)
    return createHash('sha256').update(readFileSync(out)).digest('hex')
  }

  /** Of the disk that QEMU reads in an export. */
  digestOfVhdx(version: string): string {
    const [image, out] = ['out.vhdx', 'out.raw'].map((name) => path.join(scratch.path, name)) as [string, string]
    this.run('export', image, '--force', '--format', 'vhdx', '--version', version)
    execFileSync('qemu-img', ['convert', '-f', 'vhdx', '-O', 'raw', image, out])
    // A directory with it has a vDisk.
    rmSync(image)
    return createHash('sha256').update(readFileSync(out)).digest('hex')
  }
}

function changed(...seeds: number[]): string {
  const bytes = Buffer.from(readFileSync(disk))
  for (const seed of seeds) for (const change of changes(seed)) change.bytes.copy(bytes, change.at)
  return createHash('sha256').update(bytes).digest('hex')
}

/** A PVS store with a base and two differences. */
function makePvs(name: string, kind: 'vhd' | 'vhdx'): { directory: string; file: (name: string) => string } {
  const directory = path.join(scratch.path, name)
  mkdirSync(directory)
  const file = (member: string) => path.join(directory, member)
  const base = file(`lab.${kind}`)
  const format = kind === 'vhd' ? ['-O', 'vpc', '-o', 'force_size=on'] : ['-O', 'vhdx']
  execFileSync('qemu-img', ['convert', '-f', 'raw', ...format, disk, base])
  const add = (to: string, from: string, seed: number) =>
    kind === 'vhd'
      ? writeVhdDifference(to, from, seed, changes(seed))
      : writeVhdxDifference(to, from, diskSize, seed, changes(seed))
  add(file(`lab.1.a${kind}`), base, 1)
  add(file(`lab.2.a${kind}`), file(`lab.1.a${kind}`), 2)
  writePvsSideFiles(directory, 'lab')
  return { directory, file }
}

function versionsOf(directory: string): PvsVersion[] {
  return ['lab.vhdx', 'lab.1.avhdx', 'lab.2.avhdx'].map((file, number) => ({
    number,
    file,
    description: ['', 'Office & drivers', 'Sommer-Update <ä>'][number] ?? '',
    access: number === 2 ? 1 : 0,
    size: existsSync(path.join(directory, file)) ? statSync(path.join(directory, file)).size : 0,
  }))
}

beforeAll(() => {
  const fd = openSync(disk, 'w')
  ftruncateSync(fd, diskSize)
  for (const at of [0, 3 * mib, 33 * mib]) writeSync(fd, patterned(mib), 0, mib, at)
  closeSync(fd)
})

describe.skipIf(missing)(`a PVS store becomes a vDisk with its versions${missing ? ` (${missing})` : ''}`, () => {
  test('by its manifest: numbers, descriptions and their order, each version with its differences alone', () => {
    const { directory, file } = makePvs('vhdx', 'vhdx')
    // As the console writes it: the newest first.
    writePvsManifest(file('lab.xml'), versionsOf(directory).reverse())
    const store = new OurStore('by-manifest')
    const said = store.import(directory)
    expect(said).toContain('vDisk lab, 3 versions by its manifest lab.xml:')
    expect(said).toContain('  version 1: lab.1.avhdx, 40.0 MiB, production: Office & drivers\n')
    expect(said).toContain('  version 2: lab.2.avhdx, 40.0 MiB, maintenance: Sommer-Update <ä>\n')
    const [base, first, second, ...others] = store.versions()
    expect(others).toEqual([])
    expect([base?.number, first?.number, second?.number]).toEqual([1, 2, 3])
    expect([base?.note, first?.note, second?.note]).toEqual([undefined, 'Office & drivers', 'Sommer-Update <ä>'])
    expect([base?.parent, first?.parent, second?.parent]).toEqual([null, base?.version, first?.version])
    expect(new Set([base, first, second].map((version) => `${version?.vdisk} ${version?.name}`)).size).toBe(1)
    expect(base?.name).toBe('lab')
    expect(store.digest(base?.version ?? '')).toBe(changed())
    expect(store.digest(first?.version ?? '')).toBe(changed(1))
    expect(store.digest(second?.version ?? '')).toBe(changed(1, 2))
    // Equal blocks of the change, and nodes above them.
    expect(second?.ownBytes).toBeLessThan(2 * mib)
    expect(store.run('show', '--version', second?.version ?? '')).toContain('note          Sommer-Update <ä>')
    // Everything is there already: the same command changes nothing, and a new version is added.
    store.import(file('lab.xml'))
    expect(store.versions()).toHaveLength(3)
    writeVhdxDifference(file('lab.3.avhdx'), file('lab.2.avhdx'), diskSize, 3, changes(3))
    writePvsManifest(file('lab.xml'), [...versionsOf(directory), { number: 3, file: 'lab.3.avhdx' }])
    store.import(directory)
    const third = store.versions()[3]
    expect(third).toMatchObject({ number: 4, parent: second?.version, vdisk: base?.vdisk })
    expect(store.digest(third?.version ?? '')).toBe(changed(1, 2, 3))
    // Each version leaves as one VHDX, without the chain that it came in.
    expect(store.digestOfVhdx(base?.version ?? '')).toBe(changed())
    expect(store.digestOfVhdx(third?.version ?? '')).toBe(changed(1, 2, 3))
  })

  test('by the names of its files, with a base that was merged, beside another vDisk', () => {
    const { directory, file } = makePvs('vhd', 'vhd')
    const merged = path.join(scratch.path, 'merged.raw')
    const bytes = Buffer.from(readFileSync(disk))
    for (const seed of [1, 2]) for (const change of changes(seed)) change.bytes.copy(bytes, change.at)
    writeFileSync(merged, bytes)
    execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'vpc', '-o', 'force_size=on', merged, file('lab.3.vhd')])
    const store = new OurStore('by-names')
    expect(store.import(directory)).toContain('vDisk lab, 4 versions by the names of its files (no manifest):')
    const versions = store.versions()
    expect(versions.map(({ number }) => number)).toEqual([1, 2, 3, 4])
    expect(versions.map(({ version }) => store.digest(version))).toEqual([
      changed(),
      changed(1),
      changed(1, 2),
      changed(1, 2),
    ])
    // The merged base has no block that the version before it has not.
    expect(versions[3]).toMatchObject({ parent: versions[2]?.version, ownBytes: 0 })
    copyFileSync(file('lab.vhd'), file('office.vhd'))
    const second = new OurStore('one-of-two')
    expect(second.refusal(directory).error).toMatch(/has 2 vDisks \((lab, office|office, lab)\): name one with --disk/)
    second.import(directory, '--disk', 'office', '--name', 'Office')
    expect(second.versions()).toMatchObject([{ name: 'Office', number: 1, parent: null }])
  })

  test('--list shows what would be imported, and imports nothing', () => {
    const { directory } = makePvs('listed', 'vhdx')
    const store = new OurStore('listed-store')
    const said = store.import(directory, '--list', '--json')
    const lines = said
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).pvs)
    expect(lines).toMatchObject([
      { version: 0, file: 'lab.vhdx', parent: null, sizeBytes: diskSize, problem: null },
      { version: 1, file: 'lab.1.avhdx', parent: 0 },
      { version: 2, file: 'lab.2.avhdx', parent: 1 },
    ])
    expect(store.versions()).toEqual([])
  })
})

describe.skipIf(missing)('what does not belong together is refused by name, and nothing is imported', () => {
  let pvs: ReturnType<typeof makePvs>
  let store: OurStore
  let count = 0

  function fresh(): void {
    count += 1
    pvs = makePvs(`refused-${count}`, 'vhdx')
    store = new OurStore(`refusing-${count}`)
  }

  test('a member that is missing', () => {
    fresh()
    const versions = versionsOf(pvs.directory)
    writePvsManifest(pvs.file('lab.xml'), versions)
    renameSync(pvs.file('lab.1.avhdx'), path.join(scratch.path, 'away'))
    const { said, error } = store.refusal(pvs.directory)
    expect(error).toMatch(
      /Nothing was imported: lab\.1\.avhdx is not there.*the manifest names it.*and 1 more are refused/,
    )
    expect(said).toContain('  version 2: lab.2.avhdx is refused: it is a difference, and its parent is not in the same')
    expect(said).not.toContain('--parents')
  })

  test('a member of another state, one that is cut, and one that is no disk', () => {
    fresh()
    writeVhdxDifference(pvs.file('lab.1.avhdx'), pvs.file('lab.vhdx'), diskSize, 9, changes(1))
    expect(store.refusal(pvs.directory).error).toMatch(/lab\.2\.avhdx is a difference to another state of its parent/)
    fresh()
    writePvsManifest(pvs.file('lab.xml'), versionsOf(pvs.directory))
    truncateSync(pvs.file('lab.2.avhdx'), 4 * mib)
    expect(store.refusal(pvs.directory).error).toMatch(
      /lab\.2\.avhdx has 4194304 bytes, and the manifest says \d+\. Copy/,
    )
    fresh()
    writeFileSync(pvs.file('lab.2.avhdx'), Buffer.alloc(mib))
    expect(store.refusal(pvs.directory).error).toMatch(/lab\.2\.avhdx is not a VHD or VHDX image/)
  })

  test('a version that is there twice, or belongs to a later one', () => {
    fresh()
    copyFileSync(pvs.file('lab.vhdx'), pvs.file('lab.2.vhdx'))
    expect(store.refusal(pvs.directory).error).toMatch(/lab\.2\.vhdx is version 2 a second time: lab\.2\.avhdx is/)
    fresh()
    const [base, first, second] = versionsOf(pvs.directory)
    if (!base || !first || !second) throw new Error('three versions')
    writePvsManifest(pvs.file('lab.xml'), [base, { ...second, number: 1 }, { ...first, number: 2 }])
    expect(store.refusal(pvs.directory).error).toMatch(
      /lab\.2\.avhdx is a difference to lab\.1\.avhdx, which is not an earlier version/,
    )
    writePvsManifest(pvs.file('lab.xml'), [base, second])
    expect(store.refusal(pvs.directory).said).toContain('lab.1.avhdx is left out: the manifest does not name it')
  })

  test('a manifest that names files elsewhere, or is none', () => {
    fresh()
    const [base] = versionsOf(pvs.directory)
    if (!base) throw new Error('a version')
    for (const name of ['../away', '/etc/shadow', 'C:\\windows\\x.vhdx', '..']) {
      writePvsManifest(pvs.file('lab.xml'), [base, { number: 1, file: name }])
      expect(store.refusal(pvs.directory).error).toMatch(
        /lab\.xml names a file outside of its directory.*behind version 0/,
      )
    }
    writeFileSync(
      pvs.file('lab.xml'),
      '<!DOCTYPE a [<!ENTITY b SYSTEM "/etc/passwd">]><versionManifest>&b;</versionManifest>',
    )
    expect(store.refusal(pvs.file('lab.xml')).error).toMatch(/lab\.xml has a document type, which no manifest has/)
    writeFileSync(pvs.file('lab.xml'), '<html></html>')
    expect(store.refusal(pvs.directory).error).toMatch(/lab\.xml is not a manifest of Citrix Provisioning/)
    expect(store.refusal(pvs.file('lab.vhdx')).error).toMatch(/is neither a directory nor a manifest/)
    expect(store.refusal(scratch.path).error).toMatch(/has no vDisk/)
  })
})
