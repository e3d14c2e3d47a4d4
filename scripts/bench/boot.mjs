import os from 'node:os'
import { UserError } from '../lib/fail.mjs'
import { findKernel } from '../lib/machines/kernel.mjs'
import { say, step } from '../lib/progress.mjs'
import { machinePackages } from '../lib/system-packages.mjs'
import { bootOnce } from './boot/boot-once.mjs'
import { startEdge, startReference } from './boot/chains.mjs'
import { makeBusyboxDisk, makeInitramfs, makeReferenceInitramfs, makeSystemDisk } from './boot/guests.mjs'
import { onSegment, requireMachines } from './boot/machines.mjs'
import { asMarkdown } from './boot/table.mjs'
import { keepResult } from './results.mjs'

const packages = [
  ...machinePackages,
  { paths: ['/usr/sbin/nbdkit', '/usr/bin/nbdkit'], debian: 'nbdkit' },
  { paths: ['/usr/sbin/nbd-client', '/sbin/nbd-client'], debian: 'nbd-client' },
]

/**
 * Boots each kind of machine with Bootfarm and with nbdkit, in turns, and prints medians, extremes and ratios.
 * @param {{ rounds: number, write: boolean, only: string }} options
 */
export async function benchBoot({ rounds, write, only }) {
  const root = await requireMachines('boot', packages)
  await onSegment(async ({ scratch, segment }) => {
    const allCases = await step('Making disks and initramfs', () => makeCases(scratch, root, segment.edgeIp))
    const cases = allCases.filter(({ name }) => name.includes(only))
    if (cases.length === 0)
      throw new UserError(`no machine is named ${only}: ${allCases.map(({ name }) => name).join('; ')}.`)
    const loadBefore = os.loadavg()[0]
    const boots = []
    for (let round = 0; round < rounds; round++) {
      for (const { name, firmware, memoryMib, contenders } of cases) {
        // The first one has the colder machine.
        const turns = round % 2 === 0 ? contenders : contenders.toReversed()
        for (const contender of turns) {
          const boot = await bootOnce(scratch, segment, { firmware, memoryMib, ...contender })
          boots.push({ case: name, by: contender.by, ...boot })
          say(`${name} by ${contender.by}: ${(boot.readyMs / 1000).toFixed(1)} s`)
        }
      }
    }
    const result = { date: new Date().toISOString(), rounds, processors: os.cpus().length, loadBefore, boots }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keepResult('boot-times', result, asMarkdown(result))
  })
}

/** All contenders of a case have the same guest, kernel and disk; each has its own initramfs. */
async function makeCases(scratch, root, serverIp) {
  const kernel = findKernel('virtual')
  const busybox = { disk: makeBusyboxDisk(scratch), vmlinuz: kernel.vmlinuz }
  const system = { disk: makeSystemDisk(scratch, root), vmlinuz: root.vmlinuz }
  const initrd = makeInitramfs(scratch, kernel)
  const reference = makeReferenceInitramfs(scratch, kernel, serverIp)
  const both = (served) => [
    { by: 'bootfarm', start: startEdge, served: { ...served, initrd } },
    { by: 'nbdkit', start: startReference, served: { ...served, initrd: reference } },
  ]
  const prepared = { by: 'bootfarm, prepared', start: startEdge, served: { ...system, initrd: root.initrd } }
  return [
    { name: 'BIOS, busybox', firmware: 'bios', memoryMib: 256, contenders: both(busybox) },
    { name: 'UEFI, busybox', firmware: 'uefi', memoryMib: 256, contenders: both(busybox) },
    { name: 'BIOS, systemd', firmware: 'bios', memoryMib: 512, contenders: [...both(system), prepared] },
  ]
}
