import { bytesOf, type RecordedBoot } from './recorded-boot.ts'

/** Above this use of the link by others, a boot no longer shows what it takes by itself. */
const othersShareMax = 0.25
/** A storm from which the sharing of a link can be learned. */
const stormBootsMin = 5
const stormShareMin = 0.3
/** Boots of all storms together: a fit replays each some 35 times. */
const stormBootsMax = 250
const coldShareMax = 0.2

const startUs = ({ startedAtMs }: RecordedBoot) => startedAtMs * 1000
const endUs = (boot: RecordedBoot) => startUs(boot) + boot.totalUs

/** Whether others left a boot its edge's link. `boots` are all that are known of the site, this one included. */
export function isAlone(boot: RecordedBoot, boots: RecordedBoot[]): boolean {
  let bytes = 0
  for (const other of boots) {
    if (other === boot || other.edgeId !== boot.edgeId) continue
    const overlapUs = Math.min(endUs(boot), endUs(other)) - Math.max(startUs(boot), startUs(other))
    if (overlapUs > 0) bytes += (bytesOf(other) * overlapUs) / other.totalUs
  }
  return bytes <= othersShareMax * boot.linkBytesPerUs * boot.totalUs
}

/** Returns boots that followed each other without a pause at one edge and used its link, the largest group first. */
export function findStorms(boots: RecordedBoot[]): RecordedBoot[][] {
  const groups = [...Map.groupBy(boots, ({ edgeId }) => edgeId).values()].flatMap(connected)
  const storms = groups.filter(
    (group) =>
      group.length >= stormBootsMin &&
      useOf(group) >= stormShareMin * linkOf(group) &&
      group.filter(({ isCold }) => isCold).length <= coldShareMax * group.length,
  )
  let left = stormBootsMax
  return storms
    .toSorted((a, b) => b.length - a.length)
    .filter(({ length }) => {
      const fits = length <= left
      if (fits) left -= length
      return fits
    })
}

function connected(boots: RecordedBoot[]): RecordedBoot[][] {
  const groups: RecordedBoot[][] = []
  let untilUs = Number.NEGATIVE_INFINITY
  for (const boot of boots.toSorted((a, b) => a.startedAtMs - b.startedAtMs)) {
    if (startUs(boot) >= untilUs) groups.push([])
    groups.at(-1)?.push(boot)
    untilUs = Math.max(untilUs, endUs(boot))
  }
  return groups
}

/** Of one edge: the same for all of them. */
export const linkOf = (group: RecordedBoot[]): number => group[0]?.linkBytesPerUs ?? 0

/** Bytes per µs, on average. */
function useOf(group: RecordedBoot[]): number {
  const fromUs = Math.min(...group.map(startUs))
  const untilUs = Math.max(...group.map(endUs))
  return group.reduce((sum, boot) => sum + bytesOf(boot), 0) / (untilUs - fromUs)
}

/** The most bytes per µs that a group was sent in about a second. */
export function peakOf(group: RecordedBoot[]): number {
  const fromUs = Math.min(...group.map(startUs))
  const widthUs = Math.max(windowUs, ...group.map((boot) => boot.widthUs))
  const sent = new Map<number, number>()
  for (const boot of group)
    for (const [index, bytes] of boot.bytes.entries()) {
      const stepUs = startUs(boot) - fromUs + index * boot.widthUs
      spread(sent, { fromUs: stepUs / widthUs, untilUs: (stepUs + boot.widthUs) / widthUs, bytes })
    }
  return Math.max(0, ...sent.values()) / widthUs
}
const windowUs = 1_000_000

/** A step's bytes count in the windows that it touches, in proportion; its ends are in units of windows. */
function spread(sent: Map<number, number>, step: { fromUs: number; untilUs: number; bytes: number }): void {
  const { fromUs, untilUs, bytes } = step
  for (let window = Math.floor(fromUs); window < untilUs; window += 1) {
    const part = (Math.min(untilUs, window + 1) - Math.max(fromUs, window)) / (untilUs - fromUs)
    sent.set(window, (sent.get(window) ?? 0) + bytes * part)
  }
}
