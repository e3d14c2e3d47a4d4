import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const mounted: string[] = []
const loops: string[] = []
afterAll(() => {
  for (const loop of loops) spawnSync('losetup', ['-d', loop])
  for (const at of mounted) spawnSync('umount', ['-l', at])
  scratch.remove()
})

const mib = 1 << 20
/** Nothing in it is shared or left out. */
const image = path.join(scratch.path, 'disk.raw')
writeFileSync(image, randomBytes(48 * mib))
const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

function said(command: string, args: string[]): { problem: string | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (status === 0) return { problem: null, output: stdout.trim() }
  return { problem: error?.message ?? stderr.trim(), output: '' }
}

/** Makes a small file system; gives the reason where this user may not mount. */
function mountSmall(name: string, sizeMib: number): { at: string; missing: string | null } {
  const at = path.join(scratch.path, name)
  mkdirSync(at)
  const { problem } = said('mount', ['-t', 'tmpfs', '-o', `size=${sizeMib}m,mode=755`, 'tmpfs', at])
  if (problem === null) mounted.push(at)
  return { at, missing: problem && `a file system cannot be mounted: ${problem}` }
}
const small = mountSmall('small', 24)
const shut = mountSmall('shut', 96)
const attached = said('losetup', ['-r', '-f', '--show', image])
if (attached.problem === null) loops.push(attached.output)
const noLoop = attached.problem && `there is no loop device: ${attached.problem}`

interface Line {
  version?: string
  import?: string
  error?: string
}

async function vdisk(store: string, args: string[], exit = 0): Promise<Line[]> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args, '--store', store, '--json'])
  expect(await running.ended, running.output).toBe(exit)
  return running.jsonLines<Line>()
}

async function expectExport(store: string, version: string): Promise<void> {
  const out = path.join(scratch.path, `${version}.out`)
  await vdisk(store, ['export', out, '--version', version])
  expect(digest(out)).toBe(digest(image))
}

const title = (missing: string | null) => (missing ? ` (${missing})` : '')
const begun = [image, '--name', 'Lab', '--no-boot-files']

describe.skipIf(small.missing)(`a store whose disk is full${title(small.missing)}`, () => {
  const store = path.join(small.at, 'store')

  test('reports it, ends jobs that cannot continue, and continues the others once there is space', async () => {
    await vdisk(store, ['init'])
    const version = '6d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff'
    const again = await vdisk(store, ['import', ...begun, '--again', '--version', version], 1)
    expect(again.at(-1)?.error).toMatch(/The disk of the store .* is full, .* and import the image again\.$/)
    // Programs that retry leave nothing half done.
    expect(await vdisk(store, ['list'])).toEqual([])
    await vdisk(store, ['gc'])
    const lines = await vdisk(store, ['import', ...begun], 1)
    expect(lines.at(-1)?.error).toMatch(/is full\. Free some space and continue with --resume/)
    const id = lines[0]?.import ?? ''
    expect(await vdisk(store, ['list'])).toMatchObject([{ import: id }])
    expect(said('mount', ['-o', 'remount,size=160m', small.at]).problem).toBeNull()
    await vdisk(store, ['import', '--resume', id])
    await expectExport(store, id)
    expect((await vdisk(store, ['verify'])).at(-1)).toMatchObject({ problems: 0 })
  })

  test('without space for the first checkpoint nothing is started, and no resume is offered', async () => {
    const before = await vdisk(store, ['list'])
    const filler = path.join(small.at, 'filler')
    expect(said('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k']).problem).toContain('No space left on device')
    const lines = await vdisk(store, ['import', ...begun], 1)
    expect(lines).toHaveLength(1)
    expect(lines[0]?.error).toMatch(/is full, and nothing of the import is kept\. .* and import the image again\.$/)
    expect(await vdisk(store, ['list'])).toEqual(before)
    rmSync(filler)
    await vdisk(store, ['import', ...begun])
  })
})

describe.skipIf(shut.missing)(`a store on a file system that is read-only${title(shut.missing)}`, () => {
  const store = path.join(shut.at, 'store')

  test('can be read, and every change is refused by name', async () => {
    await vdisk(store, ['init'])
    const version = (await vdisk(store, ['import', ...begun])).at(-1)?.version ?? ''
    expect(said('mount', ['-o', 'remount,ro', shut.at]).problem).toBeNull()
    for (const args of [
      ['import', ...begun],
      ['merge', '--version', version],
      ['gc'],
      ['delete', '--version', version],
    ])
      expect((await vdisk(store, args, 1)).at(-1)?.error).toMatch(/read-only/)
    expect(await vdisk(store, ['list'])).toMatchObject([{ version }])
    expect((await vdisk(store, ['verify'])).at(-1)).toMatchObject({ problems: 0 })
    await expectExport(store, version)
  })
})

describe.skipIf(noLoop)(`a block device${title(noLoop)}`, () => {
  test('is imported as a file is', async () => {
    const store = path.join(scratch.path, 'of-device')
    await vdisk(store, ['init'])
    const device = loops[0] ?? ''
    const lines = await vdisk(store, ['import', device, '--name', 'Lab', '--no-boot-files'])
    await expectExport(store, lines.at(-1)?.version ?? '')
    const parent = ['--parent', lines.at(-1)?.version ?? '', '--no-boot-files']
    const update = (await vdisk(store, ['import', device, ...parent])).at(-1)?.version ?? ''
    const ids = ['--from', lines.at(-1)?.version ?? '', '--version', update]
    expect(await vdisk(store, ['diff', ...ids])).toMatchObject([{ differentBytes: 0 }])
  })
})
