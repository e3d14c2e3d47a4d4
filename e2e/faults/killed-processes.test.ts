import { readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { startScript } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Boot {
  id: string
  startedAt: string
  outcome: string | null
}

const data = required('BOOTFARM_DATA')
let api: ApiClient

beforeAll(async () => {
  api = await ApiClient.signIn(
    required('BOOTFARM_WEB_URL'),
    required('BOOTFARM_DEMO_EMAIL'),
    required('BOOTFARM_DEMO_PASSWORD'),
  )
})

const pidOf = (name: string) => Number(readFileSync(path.join(data, 'run', `${name}.pid`), 'utf8').split(' ')[0])

/** Retries until it is so; refused connections while a process restarts are expected. The test's own limit ends it. */
async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask().catch(() => undefined)
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

async function simulatedBoots(): Promise<Boot[]> {
  const page = await api.query<{ items: Boot[] }>('boot.list', { origin: 'simulated', limit: 100 })
  return page.items
}

async function restarted(name: string, oldPid: number): Promise<void> {
  await eventually(async () => {
    const pid = pidOf(name)
    return pid !== oldPid ? pid : undefined
  })
}

/** Every known boot is still there, and a new one has become ready since. */
async function goesOnAfter(before: Boot[]): Promise<void> {
  const known = new Set(before.map(({ id }) => id))
  const after = await eventually(async () => {
    const boots = await simulatedBoots()
    return boots.some(({ id, outcome }) => !known.has(id) && outcome === 'ready') ? boots : undefined
  })
  const still = new Set(after.map(({ id }) => id))
  // The list is one page of the newest boots: an older boot may have moved to the next page.
  const oldest = after.at(-1)?.startedAt ?? ''
  for (const { id, startedAt } of before) if (startedAt > oldest) expect(still, `boot ${id} was lost`).toContain(id)
}

describe('after kill -9', () => {
  for (const name of ['api', 'edge', 'postgres']) {
    test(`${name} is restarted, nothing is lost, and boots continue`, async () => {
      const before = await eventually(async () => {
        const boots = await simulatedBoots()
        return boots.length > 0 ? boots : undefined
      })
      const pid = pidOf(name)
      process.kill(pid, 'SIGKILL')
      await restarted(name, pid)
      await goesOnAfter(before)
    })
  }

  test('the database server itself is restarted', async () => {
    const before = await eventually(simulatedBoots)
    const postmaster = Number(readFileSync(path.join(data, 'postgres/postmaster.pid'), 'utf8').split('\n')[0])
    process.kill(postmaster, 'SIGKILL')
    await goesOnAfter(before)
  })
})

describe('while the API does not answer', () => {
  test('devices boot, also after a cold start of the edge, and the reports arrive later', async () => {
    const before = await eventually(simulatedBoots)
    const apiPid = pidOf('api')
    process.kill(apiPid, 'SIGSTOP')
    try {
      const edgePid = pidOf('edge')
      process.kill(edgePid, 'SIGKILL')
      await restarted('edge', edgePid)
      const log = path.join(data, 'logs/devices.log')
      const readyBefore = readyCount(log)
      await eventually(async () => (readyCount(log) >= readyBefore + 3 ? true : undefined))
    } finally {
      process.kill(apiPid, 'SIGCONT')
    }
    await goesOnAfter(before)
  })
})

/** Devices print a line when they are ready. */
const readyCount = (log: string) => readFileSync(log, 'utf8').match(/\bready\b/g)?.length ?? 0

describe('a second start', () => {
  test('with the same data directory ends with one sentence and changes nothing', async () => {
    const args = JSON.parse(required('BOOTFARM_START_ARGS')) as string[]
    const second = new RunningProcess(process.execPath, [startScript, ...args])
    expect(await second.ended).toBe(1)
    expect(second.output).toMatch(/already running with the data directory/)
    expect((await simulatedBoots()).length).toBeGreaterThan(0)
  })

  test('with another data directory names the port that is in use', async () => {
    const args = JSON.parse(required('BOOTFARM_START_ARGS')) as string[]
    const second = new RunningProcess(process.execPath, [startScript, ...args, '--data', `${data}-other`])
    expect(await second.ended).toBe(1)
    expect(second.output).toMatch(/port \d+ .*in use/)
  })
})
