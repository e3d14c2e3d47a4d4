import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type BootFiles,
  type EdgePorts,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/** Around a block of 512 and of 1468 bytes, and one file with more than 65,535 blocks of 512 bytes. */
const sizes = { block: 512, blocks: 512 * 1468, odd: 2_000_003, small: 1, wrapped: 65_540 * 512 + 7 }
const mac = '02:bf:00:00:0c:01'
const scratch = scratchDirectory()
let files: BootFiles
let ports: EdgePorts
let edge: RunningProcess

interface Client {
  debian: string
  /** Reads `name` into `file`. */
  get(name: string, file: string): [string, string[]]
}

const clients: Record<string, Client> = {
  'tftp-hpa': {
    debian: 'tftp-hpa',
    get: (name, file) => ['tftp', ['-m', 'binary', edgeAddress, String(ports.tftp), '-c', 'get', name, file]],
  },
  atftp: { debian: 'atftp', get: (name, file) => atftp(name, file, ['blksize 1468']) },
  'atftp with windows of 4': {
    debian: 'atftp',
    get: (name, file) => atftp(name, file, ['blksize 1468', 'windowsize 4']),
  },
  'atftp with windows of 16': {
    debian: 'atftp',
    get: (name, file) => atftp(name, file, ['blksize 512', 'windowsize 16']),
  },
  curl: {
    debian: 'curl',
    get: (name, file) => ['curl', ['-sS', '-o', file, `tftp://${edgeAddress}:${ports.tftp}/${name}`]],
  },
  'curl without options': {
    debian: 'curl',
    get: (name, file) => [
      'curl',
      ['-sS', '--tftp-no-options', '-o', file, `tftp://${edgeAddress}:${ports.tftp}/${name}`],
    ],
  },
  busybox: {
    debian: 'busybox-static',
    get: (name, file) => [
      'busybox',
      ['tftp', '-g', '-b', '1432', '-r', name, '-l', file, edgeAddress, String(ports.tftp)],
    ],
  },
}

function atftp(name: string, file: string, options: string[]): [string, string[]] {
  const asked = options.flatMap((option) => ['--option', option])
  return ['atftp', [...asked, '-g', '-r', name, '-l', file, edgeAddress, String(ports.tftp)]]
}

const missing = (process.env.BOOTFARM_MISSING_PACKAGES ?? '').split(' ')

beforeAll(async () => {
  files = makeBootFiles(scratch.path, 4096)
  for (const [name, size] of Object.entries(sizes)) writeFileSync(path.join(files.bootFiles, name), randomBytes(size))
  ports = await edgePorts()
  edge = await startLoopbackEdge(ports, [...serveArguments(files), '--json'])
})

afterAll(async () => {
  await edge.stop()
  scratch.remove()
})

/** Returns a program's output and exit code; a failure is no error here. */
function run(command: string, args: string[]): Promise<{ code: number; said: string }> {
  return new Promise((resolve) => {
    const child = execFile(command, args, { cwd: scratch.path }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, said: `${stdout}${stderr}` }),
    )
  })
}

async function read(client: Client, name: string): Promise<Buffer> {
  const file = path.join(scratch.path, `got-${name.replaceAll('/', '-')}`)
  // A file that an earlier client left must not pass for this one's.
  writeFileSync(file, '')
  const { said } = await run(...client.get(name, file))
  if (!existsSync(file)) throw new Error(said)
  return readFileSync(file)
}

const published = (name: string) => readFileSync(path.join(files.bootFiles, name))

describe.for(Object.entries(clients))('%s', ([, client]) => {
  test.skipIf(missing.includes(client.debian)).for(['block', 'blocks', 'odd', 'small'])(
    'reads the file named %s byte for byte',
    async (name) => {
      expect((await read(client, name)).equals(published(name))).toBe(true)
    },
  )
})

describe('other TFTP clients', () => {
  test.skipIf(missing.includes('atftp'))('continue reading after block 65535', async () => {
    const small: Client = { debian: 'atftp', get: (name, file) => atftp(name, file, ['windowsize 64']) }
    expect((await read(small, 'wrapped')).equals(published('wrapped'))).toBe(true)
  })

  test.skipIf(missing.includes('curl'))(
    'read kernel and initramfs of a boot, which form its loader phase',
    async () => {
      const script = await fetch(`http://${edgeAddress}:${ports.http}/m/${mac}/boot.ipxe`)
      const [, handle] = (await script.text()).match(/\/b\/([0-9a-f]{16})\//) ?? []
      const curl = clients.curl
      if (!curl) throw new Error('no curl among the clients')
      for (const [name, file] of [
        ['kernel', files.kernel],
        ['initrd', files.initrd],
      ] as const) {
        const got = await read(curl, `b/${handle}/${name}`)
        expect([name, got.equals(readFileSync(file))]).toEqual([name, true])
        expect(await read(curl, `b/${'0'.repeat(15)}1/${name}`)).toHaveLength(0)
      }
      await fetch(`http://${edgeAddress}:${ports.http}/b/${handle}/ready`, { method: 'POST' })
      const [line] = await edge.waitFor(new RegExp(`^\\{.*"mac":"${mac}".*"kind":"ready".*$`, 'm'))
      const loader = JSON.parse(line).phases.find(({ name }: { name: string }) => name === 'loader')
      expect(loader.bytesOut).toBeGreaterThan(readFileSync(files.kernel).length + readFileSync(files.initrd).length)
    },
  )

  test.skipIf(missing.includes('tftp-hpa'))('get a reason why they cannot read text or write', async () => {
    const tftp = (mode: string, ...words: string[]) =>
      run('tftp', ['-m', mode, edgeAddress, String(ports.tftp), '-c', ...words])
    expect((await tftp('netascii', 'get', 'undionly.kpxe', 'x')).said).toContain('only mode octet')
    writeFileSync(path.join(scratch.path, 'written'), 'mine')
    expect((await tftp('binary', 'put', 'written', 'a-new-program-of-mine.efi')).said).toContain(
      'this server is read-only',
    )
    expect((await tftp('binary', 'get', '../../disk.raw', 'x')).said).toContain('file not found')
  })

  test('sixteen at once read the same bytes', async () => {
    const { said } = await run(simProgram, [
      'tftp-get',
      '--server',
      edgeAddress,
      '--port',
      String(ports.tftp),
      '--file',
      'odd',
      '--clients',
      '16',
      '--windowsize',
      '16',
    ])
    expect(JSON.parse(said)).toMatchObject({ clients: 16, bytes: 16 * sizes.odd, windowsize: 16 })
  })
})
