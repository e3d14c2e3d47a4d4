import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { versionIdOf } from '../lib/enrolled-edge.ts'
import { markedInitramfs } from '../lib/loader-files.ts'
import { findMachineKernel, machinesMissing } from '../lib/machine-kernel.ts'
import { finishedBoot, MachineSite, type SiteVersion } from '../lib/machine-site.ts'
import type { RunningProcess } from '../lib/running-process.ts'

const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

interface BadInput {
  name: string
  version: SiteVersion
  /** The line on the machine's console, whole. */
  line: string
  outcome: { phase: string; cause: string; text: string }
}

const release = findMachineKernel()?.release ?? ''

/** The machine of port i gets the i-th. */
const inputs: BadInput[] = [
  {
    name: 'an initramfs for another kernel',
    version: {},
    line: `bootfarm: kernel ${release}, initramfs for 6.1.0-1-amd64`,
    outcome: {
      phase: 'loader',
      cause: 'kernel_mismatch',
      text: `kernel ${release}, initramfs for 6.1.0-1-amd64`,
    },
  },
]

describe.skipIf(missing)(`a machine that is given${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('badinput', '', 1 << 20, inputs.length)
    const [otherKernel] = inputs
    if (otherKernel) {
      const initrd = markedInitramfs('6.1.0-1-amd64', 'x86_64', Buffer.alloc(4096))
      otherKernel.version.initrd = site.file('other-initrd', initrd)
    }
    edge = await site.startEnrolledEdge(inputs.map(({ version }) => version))
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
