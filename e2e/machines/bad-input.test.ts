import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { versionIdOf } from '../lib/enrolled-edge.ts'
import { markedInitramfs } from '../lib/loader-files.ts'
import { findMachineKernel, machinesMissing } from '../lib/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/machine-site.ts'
import type { RunningProcess } from '../lib/running-process.ts'

const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

interface BadInput {
  name: string
  /** The line on the machine's console, whole. */
  line: string
  outcome: { phase: string; cause: string; text: string }
}

const release = findMachineKernel()?.release ?? ''

/** The machine of port i gets the i-th. */
const inputs: BadInput[] = [
  {
    name: 'an initramfs for another kernel',
    line: `bootfarm: kernel ${release}, initramfs for 6.1.0-1-amd64`,
    outcome: {
      phase: 'loader',
      cause: 'kernel_mismatch',
      text: `kernel ${release}, initramfs for 6.1.0-1-amd64`,
    },
  },
  {
    name: 'a disk that is smaller than its file system',
    line: `bootfarm: ext4 needs ${17 << 20} bytes, ${1 << 20} are there`,
    outcome: {
      phase: 'loader',
      cause: 'disk_truncated',
      text: `ext4 needs ${17 << 20} bytes, ${1 << 20} are there`,
    },
  },
  {
    name: 'a disk without a file system',
    line: 'bootfarm: no file system on /dev/nbd0 could be mounted',
    outcome: {
      phase: 'stage2',
      cause: 'root_not_found',
      text: 'no file system on /dev/nbd0 could be mounted',
    },
  },
]

describe.skipIf(missing)(`a machine that is given${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('badinput', '', 1 << 20, inputs.length)
    const initrd = markedInitramfs('6.1.0-1-amd64', 'x86_64', Buffer.alloc(4096))
    edge = await site.startEnrolledEdge([
      { initrd: site.file('other-initrd', initrd) },
      { disk: site.file('cut-disk', readFileSync(site.disk.image).subarray(0, 1 << 20)) },
      { disk: site.file('no-file-system', Buffer.alloc(1 << 20, 'x')) },
    ])
  })

  afterAll(async () => {
    await site.remove()
  })

  test.for(inputs.map((input, port) => ({ ...input, port })))('$name says so in one line', async (input) => {
    const machine = await site.powerOn('bios', input.port)
    await machine.waitFor(new RegExp(`^${escaped(input.line)}\\r?$`, 'm'))
    const boot = await finishedBoot(edge, ({ versionId }) => versionId === versionIdOf(input.port))
    expect(boot.outcome).toEqual({ kind: 'failed', ...input.outcome })
    await machine.stop()
  })
})

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
