import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/machine-site.ts'
import type { RunningProcess } from '../lib/running-process.ts'

const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a machine whose disk cannot be used${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('disk', '', 1 << 20)
    site.cutDisk(1 << 20)
    edge = await site.startEdge()
  })

  afterAll(async () => {
    await site.remove()
  })

  test('says so in one line on its console and in the report of its boot', async () => {
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^bootfarm: no file system on \/dev\/nbd0 could be mounted/m)
    const report = await finishedBoot(edge)
    expect(report.outcome).toEqual({
      kind: 'failed',
      phase: 'stage2',
      cause: 'root_not_found',
      text: 'no file system on /dev/nbd0 could be mounted',
    })
  })
})
