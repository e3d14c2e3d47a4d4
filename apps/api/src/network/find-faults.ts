import { isBlackHole } from '../rules/device/black-hole.ts'
import {
  crcText,
  delayText,
  dropsText,
  duplexText,
  type FaultText,
  flapText,
  lossText,
  mtuText,
  orderText,
  slowText,
  tftpText,
} from './fault-text.ts'
import { bootsMin, type Link, linkOf, lossToDevice, newestOfDevices, type PathFigures, sum } from './path-figures.ts'
import { type Hits, type Ratio, ratioOf } from './ratio-interval.ts'
import type { MeasuredBoot } from './read-measured-boots.ts'

export const faultKinds = [
  'mtu',
  'loss_to_device',
  'loss_from_device',
  'half_duplex',
  'slow_link',
  'damaged_frames',
  'unstable_link',
  'reordering',
  'delay',
  'tftp',
  'device_drops',
] as const

export interface PathFault extends FaultText {
  kind: (typeof faultKinds)[number]
  /** `notice`: not a fault of the network, or one without harm so far. */
  severity: 'fault' | 'notice'
  /** The boots that show it, the newest first. */
  boots: MeasuredBoot[]
}

/** Below these nobody has to act. */
const lossMin = 0.001
const reorderingMin = 0.01
const delayUsMin = 5_000
const dropsMin = 0.001
const tftpMin = 0.01
/** Devices with damaged frames in as many boots, or so many frames in one. */
const damagedBootsMin = 2
const damagedFramesMin = 10
/** A link comes up once or twice during a boot. */
const changesMax = 5
/** So few devices that lose most of the packets are the cause, and not the segment. */
const culpritsShare = 0.25
const culpritsLoss = 0.8

/** Returns what is certain enough to be told to the network's owners. @param usual the link that most devices have */
export function findFaults(path: PathFigures, usual: Link | null): PathFault[] {
  return [
    ...sizeFaults(path),
    ...(path.boots.length < bootsMin ? [] : lossFaults(path)),
    ...linkFaults(path, usual),
    ...cardFaults(path),
    ...(path.boots.length < bootsMin ? [] : pathFaults(path)),
  ]
}

/** A device decides about its path by itself, so that two boots are enough. */
function sizeFaults({ boots }: PathFigures): PathFault[] {
  const holes = boots.filter(({ network }) => isBlackHole(network))
  const [newest] = holes
  if (!newest || holes.length < Math.min(2, boots.length)) return []
  return [{ kind: 'mtu', severity: 'fault', boots: holes, ...mtuText(newest.network, holes.length, boots.length) }]
}

function lossFaults({ boots, toDevice, fromDevice, meanRun }: PathFigures): PathFault[] {
  const to = { direction: 'to', ratio: toDevice, meanRun, lossOf: lossToDevice } as const
  const from = { direction: 'from', ratio: fromDevice, meanRun: null, lossOf: lossFromDevice } as const
  return [...lossFault('loss_to_device', boots, to), ...lossFault('loss_from_device', boots, from)]
}

interface Loss {
  direction: 'to' | 'from'
  ratio: Ratio | null
  meanRun: number | null
  lossOf: (boot: MeasuredBoot) => Hits
}

/** Of the segment, or of those of its devices that lose packets by themselves. */
function lossFault(
  kind: 'loss_to_device' | 'loss_from_device',
  boots: MeasuredBoot[],
  { direction, ratio, meanRun, lossOf }: Loss,
): PathFault[] {
  if (isAbove(ratio, lossMin)) {
    const { count, boots: losing } = culpritsOf(boots, lossOf)
    return [{ kind, severity: 'fault', boots: losing, ...lossText({ direction, ratio, meanRun, culprits: count }) }]
  }
  const byMac = Map.groupBy(boots, ({ mac }) => mac)
  const losing = [...byMac.values()].filter(
    (own) => own.length >= bootsMin && isAbove(ratioOf(own.map(lossOf)), lossMin),
  )
  const together = ratioOf(losing.flat().map(lossOf))
  if (!together) return []
  const text = lossText({ direction, ratio: together, meanRun: null, culprits: 0, devices: losing.length })
  return [{ kind, severity: 'fault', boots: losing.flat().toSorted((a, b) => b.startedMs - a.startedMs), ...text }]
}

function isAbove(ratio: Ratio | null, least: number): ratio is Ratio {
  return ratio !== null && ratio.low > least
}

const lossFromDevice = ({ network: { fromDevice } }: MeasuredBoot) => {
  return { of: fromDevice?.packets ?? 0, hits: fromDevice?.lost ?? 0 }
}

interface Culprits {
  /** 0: many devices lose them. */
  count: number
  boots: MeasuredBoot[]
}

/** Returns the boots that lose packets: those of the few devices that lose most of them, if there are some. */
function culpritsOf(boots: MeasuredBoot[], lossOf: Loss['lossOf']): Culprits {
  const byMac = new Map<string, number>()
  for (const boot of boots) byMac.set(boot.mac, (byMac.get(boot.mac) ?? 0) + lossOf(boot).hits)
  const most = [...byMac].sort((a, b) => b[1] - a[1]).slice(0, Math.floor(byMac.size * culpritsShare))
  const all = sum([...byMac.values()])
  if (most.length === 0 || sum(most.map(([, hits]) => hits)) < culpritsLoss * all)
    return { count: 0, boots: boots.filter((boot) => lossOf(boot).hits > 0) }
  const macs = new Set(most.filter(([, hits]) => hits > 0).map(([mac]) => mac))
  return { count: macs.size, boots: boots.filter((boot) => macs.has(boot.mac) && lossOf(boot).hits > 0) }
}

function linkFaults({ boots }: PathFigures, usual: Link | null): PathFault[] {
  const newest = newestOfDevices(boots)
  const faults: PathFault[] = []
  const half = newest.filter((boot) => linkOf(boot).duplex === 'half')
  if (half.length > 0)
    faults.push({
      kind: 'half_duplex',
      severity: 'fault',
      boots: half,
      ...duplexText(half.length, half.map(linkOf), usual),
    })
  const slow = newest.filter((boot) => {
    const { linkMbit, duplex } = linkOf(boot)
    return duplex !== 'half' && linkMbit !== null && usual?.linkMbit && linkMbit < usual.linkMbit
  })
  if (slow.length > 0 && usual)
    faults.push({
      kind: 'slow_link',
      severity: 'fault',
      boots: slow,
      ...slowText(slow.length, slow.map(linkOf), usual),
    })
  return faults
}

function cardFaults({ boots }: PathFigures): PathFault[] {
  const faults: PathFault[] = []
  const damaged = repeated(boots, ({ network }) => network.crcErrors ?? 0)
  if (damaged.length > 0) {
    const frames = sum(damaged.map(({ network }) => network.crcErrors ?? 0))
    faults.push({ kind: 'damaged_frames', severity: 'fault', boots: damaged, ...crcText(devicesOf(damaged), frames) })
  }
  const unstable = boots.filter(({ network }) => (network.carrierChanges ?? 0) > changesMax)
  if (unstable.length > 0)
    faults.push({ kind: 'unstable_link', severity: 'fault', boots: unstable, ...flapText(devicesOf(unstable)) })
  return faults
}

/** The boots of devices that count something in more than one boot, or much of it in one. */
function repeated(boots: MeasuredBoot[], countOf: (boot: MeasuredBoot) => number): MeasuredBoot[] {
  const counting = boots.filter((boot) => countOf(boot) > 0)
  return counting.filter(({ mac }) => {
    const own = counting.filter((boot) => boot.mac === mac)
    return own.length >= damagedBootsMin || own.some((boot) => countOf(boot) >= damagedFramesMin)
  })
}

function pathFaults({ boots, reordering, rtt, tftp }: PathFigures): PathFault[] {
  const faults: PathFault[] = []
  if (isAbove(reordering, reorderingMin))
    faults.push({
      kind: 'reordering',
      severity: 'fault',
      boots: boots.filter(({ network }) => (network.order?.late ?? 0) > 0),
      ...orderText(reordering, Math.max(...boots.map(({ network }) => network.order?.distance ?? 0))),
    })
  if (rtt && rtt.p95UsLow > delayUsMin)
    faults.push({
      kind: 'delay',
      severity: 'fault',
      boots: boots.filter(({ network }) => (network.rtt?.p95Us ?? 0) > delayUsMin),
      ...delayText(rtt),
    })
  const again = tftp.find((blocks) => isAbove(blocks, tftpMin))
  if (again)
    faults.push({
      kind: 'tftp',
      severity: 'fault',
      boots: boots.filter(({ network }) => network.tftp?.some((blocks) => blocks.again > 0)),
      ...tftpText(again, tftp.at(-1) ?? again),
    })
  const dropping = boots.filter(({ network: { socketDrops = 0, toDevice } }) => {
    return toDevice && socketDrops > dropsMin * toDevice.packets
  })
  if (2 * dropping.length > boots.length)
    faults.push({ kind: 'device_drops', severity: 'notice', boots: dropping, ...dropsText(devicesOf(dropping)) })
  return faults
}

function devicesOf(boots: MeasuredBoot[]): number {
  return new Set(boots.map(({ mac }) => mac)).size
}
