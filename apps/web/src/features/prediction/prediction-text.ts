import { countOf, formatDuration } from '../../lib/format-quantity.ts'
import type { RouterOutputs } from '../../lib/trpc'

export type Prediction = RouterOutputs['prediction']['run']
type OfVersion = Prediction['version']
type Storm = NonNullable<OfVersion['storm']>
type Range = Storm['lastUs']

const space = '\u00a0'
const secondUs = 1_000_000
/** As the API asks for: fewer boots say too little about a version. */
const bootsMin = 5

const percent = (share: number) => `${Math.round(share * 100)}${space}%`

/** In seconds for two minutes, so that people compare them; a predicted time has no more digits than it deserves. */
const secondsBelowUs = 120 * secondUs

function time(us: number): string {
  if (us < secondUs) return formatDuration(us)
  return us < secondsBelowUs ? `${secondsOf(us)}${space}s` : formatDuration(Math.round(us / secondUs) * secondUs)
}

function secondsOf(us: number): string {
  const seconds = us / secondUs
  return seconds < 9.95 ? seconds.toFixed(1) : seconds.toFixed(0)
}

function withRange({ value, low, high }: Range): string {
  const isShort = low >= secondUs && high < secondsBelowUs
  return `${time(value)} (${isShort ? secondsOf(low) : time(low)} to ${time(high)})`
}

/** The answer in one sentence; where there is none, why, and what to do. */
export function predictionHeadline(prediction: Prediction): string {
  const { version, current } = prediction
  if (!version.storm) return `No prediction for version ${version.number}: ${unknownText(prediction, version)}`
  const before = current?.storm ? ` in place of ${time(current.storm.lastUs.value)} with version ${current.number}` : ''
  const devices = countOf(prediction.devices, 'device')
  const need = prediction.devices === 1 ? 'needs' : 'need'
  return `With version ${version.number}, ${devices} ${need} ${withRange(version.storm.lastUs)}${before} until ${prediction.devices === 1 ? 'it' : 'the last one'} is ready.`
}

/** Further sentences below it. */
export function predictionFacts({ devices, current, version: { storm }, ...prediction }: Prediction): string[] {
  if (!storm) return []
  return [
    ...(devices > 1
      ? [
          `Half of them are ready within ${withRange(storm.p50Us)} of their start, 19 of 20 within ${withRange(storm.p95Us)}.`,
        ]
      : []),
    `${prediction.edges === 1 ? 'The edge’s link' : 'The busiest link of an edge'} is at ${percent(storm.linkShare)}. ${limitTexts[storm.limitedBy]}`,
    ...(current && !current.storm
      ? [`There is no prediction for version ${current.number}, the current one: ${unknownText(prediction, current)}`]
      : []),
  ]
}

const limitTexts: Record<Storm['limitedBy'], string> = {
  link: 'What limits them is the link.',
  processor: 'What limits them is the edge’s processors.',
  storage: 'What limits them is the edge’s disk.',
  device: 'What limits them is the devices’ own time.',
}

/** What it rests on. */
export function predictionBasis(prediction: Prediction): string[] {
  const { version, current, edges, stormBoots, isProcessorKnown } = prediction
  const boots = [version, ...(current ? [current] : [])].map(
    ({ bootCount, number }) => `${countOf(bootCount, 'boot')} of version ${number}`,
  )
  return [
    ...(version.storm ? [partsText(version.storm)] : []),
    `Replayed are ${boots.join(' and ')} that had the site’s link nearly to themselves.`,
    stormBoots > 0
      ? `How devices share the link is known from ${countOf(stormBoots, 'boot')} of storms at this site.`
      : 'The site has recorded no storm of this vDisk: how devices share the link is assumed, and the range is wide.',
    ...(prediction.linkMbps === null
      ? []
      : [`${linkText(prediction.linkMbps, edges)}${prediction.isLinkGiven ? ', as you entered' : ''}.`]),
    ...(isProcessorKnown
      ? []
      : ['What the edges’ processors carry is not known: they have not been busy enough to tell.']),
    'Nine of ten storms are expected within the range. Other traffic on the link is not part of it.',
  ]
}

function partsText({ parts: { aloneUs, sharedUs, storageUs } }: Storm): string {
  const waits = [
    ...(sharedUs >= secondUs / 20 ? [`${time(sharedUs)} because others use the link or the edge`] : []),
    ...(storageUs >= secondUs / 20 ? [`${time(storageUs)} for the edge’s disk`] : []),
  ]
  const all = time(aloneUs + sharedUs + storageUs)
  return waits.length > 0
    ? `The mean boot takes ${all}: ${time(aloneUs)} by itself, and it waits ${waits.join(' and ')}.`
    : `The mean boot takes ${all}, as it does without others.`
}

function linkText(mbps: number, edges: number): string {
  const speed = mbps >= 1000 ? `${mbps / 1000}${space}Gbit/s` : `${mbps}${space}Mbit/s`
  return edges === 1
    ? `The edge’s link has ${speed}`
    : `The devices are spread evenly over ${edges} edges, whose links have ${speed} or more`
}

function unknownText(
  { siteName, reads }: Pick<Prediction, 'siteName' | 'reads'>,
  { unknownBecause, bootCount }: OfVersion,
): string {
  switch (unknownBecause) {
    case 'no_edge':
      return `${siteName} has no edge that takes boots.`
    case 'link_unknown':
      return `no edge of ${siteName} reports the speed of its link. Enter it.`
    case 'no_devices':
      return `no device of ${siteName} boots this vDisk. Enter a number of devices.`
    case 'few_warm_boots':
      return `its boots at ${siteName} had to wait for the edge’s disk. Boot it ${bootsMin} times from the edge’s memory.`
    case 'no_cold_boots':
      return `none of its boots at ${siteName} had to wait for the edge’s disk. Choose ${reads === 'cold' ? '“in the edges’ memory”' : 'another case'}, or boot a device right after the edge has started.`
    case 'few_boots':
    case null:
      return `it has ${countOf(bootCount, 'boot')} at ${siteName} without others, and ${bootsMin} are needed. Boot it on a test device.`
  }
}
