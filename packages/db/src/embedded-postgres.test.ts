import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import { freePort, makeReachableFolder } from '../test/test-postgres.ts'
import { createDb } from './client.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres, stopLeftover } from './embedded-postgres.ts'
import { listen } from './notification-listener.ts'

const cli = fileURLToPath(new URL('./cli.ts', import.meta.url))
const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
})

function makeFolder(): string {
  const folder = makeReachableFolder()
  cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function start(dir: string, port: number): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dir, port })
  cleanUps.push(() => server.stop())
  return server
}

async function query<T>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows as T[]
  } finally {
    await client.end()
  }
}

/** False also for a zombie: a process that ended and whose new parent has not looked yet. */
function isRunning(pid: number): boolean {
  const file = `/proc/${pid}/stat`
  return existsSync(file) && !/\) Z /.test(readFileSync(file, 'utf8'))
}

describe('embedded PostgreSQL', () => {
  test('keeps its data over a stop and a start, and shows nobody its secret', async () => {
    const dir = path.join(makeFolder(), 'cluster')
    const port = await freePort()
    const first = await start(dir, port)
    await query(first.url('postgres'), 'create table kept as select 42 as answer')
    await first.stop()
    const second = await start(dir, port)
    expect(await query(second.url('postgres'), 'select answer from kept')).toEqual([{ answer: 42 }])
    expect(statSync(`${dir}.secret`).mode & 0o777).toBe(0o600)
    expect(await query(second.url('postgres'), 'show listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }])
    const withoutPassword = second.url('postgres').replace(/:[^:@/]+@/, ':wrong@')
    await expect(query(withoutPassword, 'select 1')).rejects.toThrow(/password authentication failed/)
  })

  test('works in a folder that only its owner may enter', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-private-'))
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
    const dir = path.join(folder, 'cluster')
    const server = await start(dir, await freePort())
    // Run by root, the cluster stands outside, behind a link.
    const outside = realpathSync(dir)
    await server.stop()
    cleanUps.push(() => rmSync(outside, { recursive: true, force: true }))
    expect(existsSync(path.join(dir, 'PG_VERSION'))).toBe(true)
  })

  test('is started again after kill -9, and clients go on with what they had written', async () => {
    const server = await start(path.join(makeFolder(), 'cluster'), await freePort())
    const url = server.url('postgres')
    const db = createDb(url)
    cleanUps.push(() => db.$disconnect())
    await db.$executeRaw`create table kept as select 42 as answer`
    const listener = await listen(url, 'channel')
    cleanUps.push(() => listener.close())
    const reconnected = new Promise<void>((resolve) => {
      listener.subscribe('anything', resolve)
    })
    const pid = server.pid
    process.kill(pid, 'SIGKILL')
    await reconnected
    expect(server.pid).not.toBe(pid)
    expect(await db.$queryRaw`select answer from kept`).toEqual([{ answer: 42 }])
  })

  test('names the port that is taken, and leaves nothing running', async () => {
    const blocker = net.createServer().listen(0, '127.0.0.1')
    await once(blocker, 'listening')
    cleanUps.push(() => blocker.close())
    const { port } = blocker.address() as net.AddressInfo
    const dir = path.join(makeFolder(), 'cluster')
    await expect(startEmbeddedPostgres({ dir, port })).rejects.toThrow(`Port ${port} on 127.0.0.1 is in use`)
    await start(dir, await freePort())
  })

  test('has one supervisor for a directory', async () => {
    const dir = path.join(makeFolder(), 'cluster')
    await start(dir, await freePort())
    await expect(startEmbeddedPostgres({ dir, port: await freePort() })).rejects.toThrow(
      /in the hands of another process/,
    )
  })

  test('a postmaster.pid whose pid is now another program is cleared away, the program untouched', async () => {
    const dir = path.join(makeFolder(), 'cluster')
    const port = await freePort()
    const first = await start(dir, port)
    await first.stop()
    const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    await once(bystander, 'spawn')
    cleanUps.push(() => bystander.kill())
    writeFileSync(path.join(dir, 'postmaster.pid'), `${bystander.pid}\n${dir}\n`)
    const second = await start(dir, port)
    expect(await query(second.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }])
    expect(bystander.exitCode).toBeNull()
  })

  test('a directory that holds something else is left alone', async () => {
    const folder = makeFolder()
    await expect(startEmbeddedPostgres({ dir: folder, port: await freePort() })).rejects.toThrow(
      /is not a PostgreSQL directory/,
    )
  })
})

describe('the command line', () => {
  async function startCli(dir: string, port: number) {
    const child = spawn(process.execPath, [cli, 'postgres', '--dir', dir, '--port', String(port)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    cleanUps.push(() => child.kill('SIGKILL'))
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const facts = JSON.parse(line.toString()) as { pid: number; urlFile: string }
    return { child, ...facts, url: readFileSync(facts.urlFile, 'utf8').trim() }
  }

  test('SIGTERM ends the server and then the program', async () => {
    const dir = path.join(makeFolder(), 'cluster')
    const { child, pid, urlFile } = await startCli(dir, await freePort())
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
    expect(isRunning(pid)).toBe(false)
    expect(existsSync(urlFile)).toBe(false)
  })

  test('a server that outlived its killed supervisor is taken over by the next start', async () => {
    const dir = path.join(makeFolder(), 'cluster')
    const port = await freePort()
    const first = await startCli(dir, port)
    await query(first.url.replace(/bootfarm$/, 'postgres'), 'create table kept as select 42 as answer')
    first.child.kill('SIGKILL')
    await once(first.child, 'exit')
    expect(isRunning(first.pid)).toBe(true)
    const second = await startCli(dir, port)
    expect(isRunning(first.pid)).toBe(false)
    expect(await query(second.url.replace(/bootfarm$/, 'postgres'), 'select answer from kept')).toEqual([
      { answer: 42 },
    ])
    second.child.kill('SIGTERM')
    await once(second.child, 'exit')
  })

  test('`stop` ends a server whose supervisor was killed', async () => {
    const dir = path.join(makeFolder(), 'cluster')
    const { child, pid } = await startCli(dir, await freePort())
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await stopLeftover(dir)).toBe(true)
    expect(isRunning(pid)).toBe(false)
    expect(await stopLeftover(dir)).toBe(false)
  })
})
