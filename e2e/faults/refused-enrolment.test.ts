import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { freePorts } from '../../scripts/lib/free-ports.mjs'
import { required } from '../lib/control-plane/api-client.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

/** Ends with exit code 1 and one sentence; the data directory is not that of an enrolled edge afterwards. */
async function refused(url: string, token: string, data = path.join(scratch.path, 'edge')): Promise<string> {
  const enrol = new RunningProcess(edgeProgram, ['enrol', '--url', url, '--token', token, '--data', data])
  expect(await enrol.ended, enrol.output).toBe(1)
  expect(enrol.output.trim().split('\n'), enrol.output).toHaveLength(1)
  return enrol.output
}

describe('an edge that cannot enrol reports the reason', () => {
  test('the join token is wrong', async () => {
    expect(await refused(required('BOOTFARM_API_URL'), 'no-such-token')).toMatch(/join token/i)
    expect(existsSync(path.join(scratch.path, 'edge/identity.json'))).toBe(false)
  })

  test('nothing answers at the address', async () => {
    const [port = 0] = await freePorts(1)
    expect(await refused(`http://127.0.0.1:${port}`, 'any-token')).toMatch(new RegExp(`127\\.0\\.0\\.1:${port}`))
  })

  test('it is enrolled already, and remains so', async () => {
    const data = path.join(required('BOOTFARM_DATA'), 'edge')
    const identity = readFileSync(path.join(data, 'identity.json'))
    await refused(required('BOOTFARM_API_URL'), 'any-token', data)
    expect(readFileSync(path.join(data, 'identity.json'))).toEqual(identity)
  })
})
