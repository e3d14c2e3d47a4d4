import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const mib = 1 << 20

interface Line {
  version?: string
  number?: number
  manifest?: { root: string; counter: number }
  packed?: { sizeBytes: number; pieceSize: number; listSha256: string; changedBytes: number }
  writtenBytes?: number
}

function inScratch(name: string): string {
  return path.join(scratch.path, name)
}

const [here, there] = [inScratch('here'), inScratch('there')]

async function vdisk(args: string[], exit = 0): Promise<{ output: string; last: Line }> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args, '--json'])
  expect(await running.ended, running.output).toBe(exit)
  return { output: running.output, last: running.jsonLines<Line>().at(-1) ?? {} }
}

async function refused(args: string[], sentence: RegExp): Promise<void> {
  expect((await vdisk(args, 1)).output).toMatch(sentence)
}

async function exportOf(store: string, version: string): Promise<string> {
  const file = inScratch(`${path.basename(store)}-${version}.raw`)
  await vdisk(['export', file, '--store', store, '--version', version, '--force'])
  return file
}

async function expectSame(version: string): Promise<void> {
  execFileSync('cmp', [await exportOf(here, version), await exportOf(there, version)])
}

let first: Line & { version: string }
let second: Line & { version: string }

/** 5 MiB and a sector of data, and 1 MiB of zeros; then zeros over data, data over zeros, and a changed last sector. */
beforeAll(async () => {
  for (const store of [here, there]) await vdisk(['init', '--store', store])
  const image = Buffer.concat([patterned(3 * mib), Buffer.alloc(mib), patterned(2 * mib + 512)])
  const disk = inScratch('disk.raw')
  writeFileSync(disk, image)
  const kernel = ['--no-boot-files']
  const made = await vdisk(['import', disk, '--store', here, '--name', 'Lab', '--note', 'the first', ...kernel])
  first = made.last as typeof first
  image.fill(0, mib, 2 * mib)
  image.write('changed', 3 * mib + 8192)
  image.write('changed', image.length - 7)
  writeFileSync(disk, image)
  const update = await vdisk(['import', disk, '--store', here, '--parent', first.version, ...kernel])
  second = update.last as typeof second
})

test('a version that is packed in one store is the same in another, over nothing and over its parent', async () => {
  const [whole, change] = [inScratch('whole'), inScratch('change')]
  const packedWhole = (await vdisk(['pack', whole, '--store', here, '--version', first.version])).last.packed
  const over = ['--version', second.version, '--base', first.version]
  const packed = (await vdisk(['pack', change, '--store', here, ...over])).last.packed
  expect(packed?.changedBytes).toBe(2 * 4096)
  expect(packed?.sizeBytes).toBe(statSync(change).size)
  expect(statSync(change).size).toBeLessThan(20_000)
  // The list is what whoever moves the file checks its pieces by.
  const bytes = readFileSync(whole)
  const digests: Buffer[] = []
  for (let at = 0; at < bytes.length; at += packedWhole?.pieceSize ?? 0)
    digests.push(
      createHash('sha256')
        .update(bytes.subarray(at, at + 4 * mib))
        .digest(),
    )
  const list = readFileSync(`${whole}.pieces`)
  expect(list.equals(Buffer.concat(digests))).toBe(true)
  expect(packedWhole?.listSha256).toBe(createHash('sha256').update(list).digest('hex'))
  await refused(['pack', change, '--store', here, ...over], /already exists; --force overwrites it/)

  await refused(['import', change, '--store', there], /is not in the store .*take that version first/)
  await vdisk(['import', whole, '--store', there])
  await refused(['import', change, '--store', there, '--number', '9'], /--number 9 contradicts .* has 2/)
  await refused(['import', change, '--store', there, '--no-boot-files'], /do not go with/)
  await refused(['import', change, '--store', there, '--root', 'ab'.repeat(32)], /not the demanded abab/)
  const root = Buffer.from(second.manifest?.root ?? '', 'base64').toString('hex')
  const taken = (await vdisk(['import', change, '--store', there, '--root', root])).last
  expect(taken).toEqual(second)
  for (const made of [first, second]) await expectSame(made.version)
  await vdisk(['verify', '--store', there])
  await refused(['import', change, '--store', there], /already exists; a version never changes/)
})

test('a damaged file, one of another organization and a damaged version are refused by name', async () => {
  const whole = inScratch('whole-again')
  await vdisk(['pack', whole, '--store', here, '--version', first.version])
  const store = inScratch('refuses')
  await vdisk(['init', '--store', store, '--organization', '0d1b7a44-6b7e-4a53-8d6f-0f6f6c1d2a11'])
  const bytes = readFileSync(whole)
  const damaged = inScratch('damaged')
  bytes[bytes.length - 4096] = (bytes.at(-4096) ?? 0) ^ 1
  writeFileSync(damaged, bytes)
  await refused(['import', damaged, '--store', store], /damaged.*\(byte \d+\)/)
  writeFileSync(damaged, bytes.subarray(0, 100_000))
  await refused(['import', damaged, '--store', store], /ends too early/)

  const [own, other] = [inScratch('own'), inScratch('own.packed')]
  await vdisk(['init', '--store', own, '--organization', '7f6c9c52-2b0f-4d9e-9a41-51c2f0c1b922'])
  const small = inScratch('small.raw')
  writeFileSync(small, patterned(mib))
  const { last } = await vdisk(['import', small, '--store', own, '--name', 'Own', '--no-boot-files'])
  const version = last.version ?? ''
  await vdisk(['pack', other, '--store', own, '--version', version])
  await refused(['import', other, '--store', store], /is of the organization 7f6c9c52.* belongs to 0d1b7a44/)
  expect((await vdisk(['list', '--store', store])).output).toBe('')

  const extent = path.join(own, 'extents/000001')
  const data = readFileSync(extent)
  // Behind a packed unit there are zeros, which nobody reads.
  const at = data.findIndex((byte, index) => index >= data.length / 2 && byte !== 0)
  data[at] = (data[at] ?? 0) ^ 1
  writeFileSync(extent, data)
  await refused(['pack', inScratch('never'), '--store', own, '--version', version], /damaged at byte \d+/)
  for (const suffix of ['', '.part', '.pieces']) expect(existsSync(inScratch(`never${suffix}`))).toBe(false)
})

test('pack and import that are killed at any moment are repeated, and end the same', async () => {
  const file = inScratch('killed')
  const packing = ['pack', file, '--store', here, '--version', first.version, '--again']
  for (let round = 0; round < 3; round += 1) {
    const running = new RunningProcess(edgeProgram, ['vdisk', ...packing, '--json'])
    await running.waitFor(/"progress"|"packed"/)
    running.kill('SIGKILL')
    await running.ended
  }
  await vdisk(packing)
  const untouched = inScratch('untouched')
  await vdisk(['pack', untouched, '--store', here, '--version', first.version])
  for (const suffix of ['', '.pieces']) execFileSync('cmp', [`${file}${suffix}`, `${untouched}${suffix}`])
  expect(existsSync(`${file}.part`)).toBe(false)

  const store = inScratch('killed-store')
  await vdisk(['init', '--store', store])
  copyFileSync(untouched, file)
  const taking = ['import', file, '--store', store, '--version', first.version, '--again']
  for (let round = 0; round < 3; round += 1) {
    const running = new RunningProcess(edgeProgram, ['vdisk', ...taking, '--json'])
    await running.waitFor(/"import"|"version"/)
    running.kill('SIGKILL')
    await running.ended
  }
  expect((await vdisk(taking)).last).toEqual(first)
  await vdisk(['verify', '--store', store])
  execFileSync('cmp', [await exportOf(here, first.version), await exportOf(store, first.version)])
})
