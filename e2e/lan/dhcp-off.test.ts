import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { startMachine } from '../lib/device/machine.ts'
import { buildInitramfs, findMachineKernel, machinesMissing } from '../lib/device/machine-kernel.ts'
import { makeMachineDisk } from '../lib/images/machine-disk.ts'
import { finishedBoot } from '../lib/lab/machine-site.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'
import { Segment } from '../lib/lab/segment.ts'

const guide = path.resolve(import.meta.dirname, '../../docs/guides/firmware-and-dhcp.md')
const guideIp = '192.168.1.10'
const missing = machinesMissing()
const scratch = scratchDirectory()
let segment: Segment
let edge: RunningProcess
const running: RunningProcess[] = []
const seen = new Set<string>()

describe.skipIf(missing)(
  `dnsmasq configured as the guide says, with an edge without DHCP${missing ? ` (${missing})` : ''}`,
  () => {
    beforeAll(async () => {
      segment = new Segment('dhcpoff', { machines: 1 })
      const { command, args } = segment.dhcpServer()
      const server = new RunningProcess(command, [...args, ...guideOptions(segment.edgeIp)])
      const disk = makeMachineDisk(scratch.path, 'bootfarm-target ready busybox && echo "ACKNOWLEDGED"', 1 << 20)
      const kernel = findMachineKernel()
      if (!kernel) throw new Error('no kernel for virtual machines')
      const initrd = path.join(scratch.path, 'initrd.img')
      buildInitramfs({ kernel }, initrd)
      const programs = path.join(scratch.path, 'boot-programs')
      mkdirSync(programs)
      for (const name of ['undionly.kpxe', 'snponly.efi'])
        copyFileSync(path.join('/usr/lib/ipxe', name), path.join(programs, name))
      edge = segment.startOnEdge(edgeProgram, [
        'serve',
        '--json',
        '--listen',
        segment.edgeIp,
        '--dhcp',
        'off',
        '--boot-files',
        programs,
        '--vdisk',
        disk.image,
        '--kernel',
        kernel.vmlinuz,
        '--initrd',
        initrd,
        '--cmdline',
        'console=ttyS0 quiet panic=-1 no_timer_check',
      ])
      running.push(server, edge)
      await edge.waitFor(/^.+$/m)
    })

    afterAll(async () => {
      for (const process of running.reverse()) await process.stop()
      segment?.remove()
      scratch.remove()
    })

    test.for(['bios', 'uefi'] as const)('boots a machine with %s', async (firmware) => {
      const machine = startMachine({ segment, port: 0, firmware, directory: scratch.path })
      running.push(machine)
      onTestFailed(() => {
        for (const { output } of running) process.stderr.write(`${output.slice(-3000)}\n`)
      })
      await machine.waitFor(/^ACKNOWLEDGED/m)
      await machine.ended
      const report = await finishedBoot(edge, ({ id }) => !seen.has(id))
      seen.add(report.id)
      expect(report.outcome).toEqual({ kind: 'ready' })
    })
  },
)

/** The lines of the guide's dnsmasq.conf as options, with this edge's address. */
function guideOptions(edgeIp: string): string[] {
  const lines = readFileSync(guide, 'utf8').match(/^ {4}dhcp-.*$/gm) ?? []
  expect(lines).toHaveLength(6)
  return lines.map((line) => `--${line.trim().replaceAll(guideIp, edgeIp)}`)
}
