import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

interface Line {
  version?: string
  import?: string
}

async function vdisk(args: string[]): Promise<Line[]> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args])
  expect(await running.ended, running.output).toBe(0)
  return running.jsonLines<Line>()
}

/** Text that differs from block to block. */
function imageOf(size: number): string {
  let text = ''
  for (let index = 0; text.length < size; index += 1) text += `${index} `.padEnd(64, 'bootfarm')
  return text.slice(0, size)
}

test('an import that is interrupted at ten moments, by kill -9 or politely, resumes and equals the image', async () => {
  const store = path.join(scratch.path, 'store')
  await vdisk(['init', '--store', store])
  const image = imageOf(6 << 20)
  const other = path.join(scratch.path, 'other.raw')
  writeFileSync(other, imageOf(1 << 20))
  const [first] = (
    await vdisk(['import', other, '--store', store, '--name', 'Other', '--no-boot-files', '--json'])
  ).slice(-1)

  let seed = 20261121
  let id = ''
  for (let round = 0; round < 10; round += 1) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
    // More than the first piece of one MiB, and less than the image.
    const fed = (1 << 20) + (seed % (image.length - (1 << 20)))
    const begun = id === '' ? ['--name', 'Lab', '--no-boot-files'] : ['--resume', id]
    const args = ['vdisk', 'import', '-', '--store', store, ...begun, '--json']
    const running = new RunningProcess(edgeProgram, args, {}, 'pipe')
    await running.waitFor(/"import":"/)
    id = running.jsonLines<Line>()[0]?.import ?? ''
    running.write(image.slice(0, fed))
    await running.waitFor(/"progress"/)
    running.kill(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
    expect(await running.ended, running.output).toBe(round % 2 === 0 ? 'SIGKILL' : 3)
    const listed = await vdisk(['list', '--store', store, '--json'])
    expect(listed.map((line) => line.version ?? line.import)).toEqual([first?.version, id])
  }

  const last = new RunningProcess(edgeProgram, ['vdisk', 'import', '-', '--store', store, '--resume', id], {}, 'pipe')
  last.end(image)
  expect(await last.ended, last.output).toBe(0)
  const exported = new RunningProcess('sh', [
    '-c',
    '"$0" vdisk export - --store "$1" --version "$2" | sha256sum',
    edgeProgram,
    store,
    id,
  ])
  expect(await exported.ended, exported.output).toBe(0)
  expect(exported.output.split(' ')[0]).toBe(createHash('sha256').update(image).digest('hex'))
  await vdisk(['verify', '--store', store])
  await vdisk(['gc', '--store', store])
  await vdisk(['verify', '--store', store])
})

test('while an image is read others change the store; the same import belongs to one process, and its end waits for the holder of the store', async () => {
  const store = path.join(scratch.path, 'shared')
  await vdisk(['init', '--store', store])
  const other = path.join(scratch.path, 'large.raw')
  // Bytes that do not shrink: collecting them takes a while.
  writeFileSync(other, randomBytes(24 << 20))
  await vdisk(['import', other, '--store', store, '--name', 'Other', '--no-boot-files'])
  const args = ['vdisk', 'import', '-', '--store', store, '--name', 'Lab', '--no-boot-files', '--json']
  const running = new RunningProcess(edgeProgram, args, {}, 'pipe')
  await running.waitFor(/"import":"/)
  const id = running.jsonLines<Line>()[0]?.import ?? ''
  const image = imageOf(4 << 20)
  running.write(image.slice(0, 2 << 20))
  await running.waitFor(/"progress"/)
  await vdisk(['gc', '--store', store])
  for (const words of [
    ['import', '-', '--resume', id],
    ['import', '--abandon', id],
    ['delete', '--version', id],
  ]) {
    const second = new RunningProcess(edgeProgram, ['vdisk', ...words, '--store', store])
    expect(await second.ended, second.output).toBe(4)
    expect(second.output).toMatch(/The import .* is running in another process; wait until it ends/)
  }

  const collecting = new RunningProcess(edgeProgram, ['vdisk', 'gc', '--store', store, '--rate-mib', '1', '--json'])
  await collecting.waitFor(/"progress"/)
  const refused = new RunningProcess(edgeProgram, ['vdisk', 'gc', '--store', store])
  expect(await refused.ended).toBe(4)
  const who = `is being changed by \`vdisk gc\` \\(process ${collecting.pid} on `
  expect(refused.output).toMatch(new RegExp(who))
  running.end(image.slice(2 << 20))
  await running.waitFor(
    new RegExp(`The image was read; the version is made when other processes release the store.*${who}`),
  )
  collecting.kill('SIGTERM')
  expect(await collecting.ended).toBe(3)
  expect(await running.ended, running.output).toBe(0)
  await vdisk(['gc', '--store', store])
  const exported = path.join(scratch.path, 'shared.raw')
  await vdisk(['export', exported, '--store', store, '--version', id])
  expect(readFileSync(exported, 'utf8') === image).toBe(true)
})

test('a command waits for a store that changes for a moment, as when an edge starts', async () => {
  const store = path.join(scratch.path, 'moment')
  await vdisk(['init', '--store', store])
  const changer = new RunningProcess('flock', [path.join(store, 'lock'), 'sh', '-c', 'echo held; exec sleep 1'])
  await changer.waitFor(/held/)
  await vdisk(['gc', '--store', store])
  expect(await changer.ended).toBe(0)
})

test('an interrupted import is kept, and can be given up; its image must say what it boots with', async () => {
  const store = path.join(scratch.path, 'locked')
  await vdisk(['init', '--store', store])
  const args = ['vdisk', 'import', '-', '--store', store, '--name', 'Lab', '--no-boot-files', '--json']
  const running = new RunningProcess(edgeProgram, args, {}, 'pipe')
  await running.waitFor(/"import":"/)
  running.kill('SIGTERM')
  expect(await running.ended).toBe(3)
  const unsaid = new RunningProcess(
    edgeProgram,
    ['vdisk', 'import', '-', '--store', store, '--name', 'Lab'],
    {},
    'pipe',
  )
  expect(await unsaid.ended).toBe(1)
  expect(unsaid.output).toMatch(/Standard input is read once, .* give --kernel/)
  await vdisk(['gc', '--store', store])
  const id = running.jsonLines<Line>()[0]?.import ?? ''
  await vdisk(['import', '--store', store, '--abandon', id])
  await vdisk(['gc', '--store', store])
})
