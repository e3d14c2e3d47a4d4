import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { expectOwnStepsInsidePhases } from '../lib/assert/own-steps.ts'
import { expectOwners, type OwnersOfBoot } from '../lib/assert/owners-of-boot.ts'
import { expectPhasesAsSeen } from '../lib/assert/phases-as-seen.ts'
import type { Firmware } from '../lib/device/machine.ts'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { x64Platform } from '../lib/device/machine-platform.ts'
import { SlowFiles, slowFilesMissing } from '../lib/edge/slow-files.ts'
import { bootProgramsMissing, importSets, unpackedPackages } from '../lib/images/boot-programs.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

// Many boots of emulated machines, in turns of one situation each: what the edge reports of a boot is what a recorder
// on the switch saw and what the machine's own clock says, and each part of it has an owner.

const script = `
echo "BLOB $(md5sum /blob)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`

interface Situation {
  name: string
  firmware: Firmware
  /** Options of the network's DHCP server. */
  dhcp?: string[]
  /** Of what the edge sends. */
  lostPercent?: number
  /** How much longer each call of the edge takes that may wait for a disk. */
  fileDelayMs?: number
  /** The firmware checks signatures: it starts shim, then GRUB, and the edge is the only DHCP server. */
  isSecure?: boolean
}

const situations: Situation[] = [
  { name: 'BIOS', firmware: 'bios' },
  { name: 'UEFI PXE', firmware: 'uefi' },
  { name: 'UEFI HTTP boot', firmware: 'uefi-http' },
  { name: 'slow DHCP', firmware: 'bios', dhcp: ['--dhcp-reply-delay=2'] },
  { name: 'loss', firmware: 'bios', lostPercent: 1 },
  { name: 'slow disk', firmware: 'bios', fileDelayMs: 5 },
  { name: 'shim and GRUB', firmware: 'uefi-secure-microsoft', isSecure: true },
]

/** Of all situations together. */
const bootCount = Number(process.env.BOOTFARM_BOOT_PATHS ?? 200)
/** The share of a situation's instants that the edge and the recorder place within this time of each other. */
const closeUs = 1000
const closeShareMin = 0.95

const missing = machinesMissing() ?? bootProgramsMissing() ?? slowFilesMissing()
const scratch = scratchDirectory()
const sites: MachineSite[] = []
const lines: string[] = []

afterAll(async () => {
  console.log(
    [
      'situation: boots, instants, median, p95 and longest difference in µs, within 1 ms, highest inferred share, ' +
        'longest part in µs that nobody saw or reported',
      ...lines,
    ].join('\n'),
  )
  for (const site of sites) await site.remove()
  scratch.remove()
})

function siteOf({ isSecure, dhcp, lostPercent }: Situation): MachineSite {
  const x64 = x64Platform()
  if (!x64) throw new Error('no kernel for virtual machines')
  const makeSets = (directory: string) => importSets(directory, ['--set', 'shim-grub', '--from', unpackedPackages()])
  const platform = isSecure ? { ...x64, bootPrograms: [], makeSets } : x64
  const name = `paths${'abcdefg'[sites.length]}`
  const site = new MachineSite(name, { script, blobSize: 4 << 20 }, { platform, dhcpServer: false })
  sites.push(site)
  if (!isSecure) site.startDhcpServer(dhcp)
  if (lostPercent) site.segment.loseFromEdge(lostPercent)
  return site
}

interface SeenBoot extends OwnersOfBoot {
  /** Between the edge's and the recorder's times. */
  differencesUs: number[]
}

async function boot(site: MachineSite, firmware: Firmware, edge: Edge, known: Set<string>): Promise<SeenBoot> {
  const machine = await site.powerOn(firmware)
  const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
  expect(sum, 'the root disk has the bytes of the image').toBe(site.disk.blobSum)
  await machine.waitFor(/^ACKNOWLEDGED/m)
  await machine.ended
  const report = await finishedBoot(edge, ({ bootId }) => !known.has(bootId))
  known.add(report.bootId)
  expect(report.outcome).toMatchObject({ kind: 'ready' })
  expectOwnStepsInsidePhases(report)
  const differencesUs = expectPhasesAsSeen(report, await site.packets(), site.segment.edgeIp)
  return { ...expectOwners(report), differencesUs }
}
type Edge = Parameters<typeof finishedBoot>[0]

describe.skipIf(missing)(`what is told of boots${missing ? ` (${missing})` : ''}`, () => {
  test.for(situations.map((situation, index) => ({ ...situation, index })))(
    '$name',
    { timeout: 3_600_000 },
    async (situation) => {
      const { name, firmware, isSecure, fileDelayMs, index } = situation
      const count = Math.floor((bootCount + index) / situations.length)
      const site = siteOf(situation)
      const edge = await site.startEdge(isSecure ? 'server' : 'proxy')
      const record = path.join(scratch.path, 'calls')
      const slowed = fileDelayMs ? await SlowFiles.of(edge, fileDelayMs, record) : undefined
      const known = new Set<string>()
      const boots: SeenBoot[] = []
      for (let done = 0; done < count; done++) boots.push(await boot(site, firmware, edge, known))
      await slowed?.end()
      await edge.stop()
      const differences = boots.flatMap(({ differencesUs }) => differencesUs).sort((a, b) => a - b)
      const at = (part: number) => Math.round(differences[Math.floor((differences.length - 1) * part)] ?? Number.NaN)
      const close = differences.filter((us) => us <= closeUs).length / differences.length
      const inferred = Math.max(...boots.map(({ inferredShare }) => inferredShare))
      const unexplainedUs = Math.max(...boots.map(({ longestUnexplainedUs }) => longestUnexplainedUs))
      const shares = [close, inferred].map((share) => `${(share * 100).toFixed(1)} %`)
      const figures = [count, differences.length, at(0.5), at(0.95), at(1), ...shares, unexplainedUs]
      lines.push(`${name}: ${figures.join(', ')}`)
      expect(known.size).toBe(count)
      expect(close, name).toBeGreaterThanOrEqual(closeShareMin)
    },
  )
})
