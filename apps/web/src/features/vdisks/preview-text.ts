import { countOf, formatBytes } from '../../lib/format-quantity'
import type { VersionPreview } from './version-types'

type Tally = VersionPreview['running'][number]['devices']

/** `2 devices (pc-01, pc-02)`, with the first names of many. */
export function devicesText({ count, names }: Tally): string {
  const more = count > names.length ? ' …' : ''
  return `${countOf(count, 'device')}${names.length > 0 ? ` (${names.join(', ')}${more})` : ''}`
}

/** The effects, a sentence each. */
export function previewSentences(preview: VersionPreview): string[] {
  const {
    action,
    before,
    after,
    changed,
    running,
    changesBoot,
    holders,
    childNumbers,
    edges,
    lacking,
    cancelsPromotionOf,
  } = preview
  const numberOf = (number: number | null) => (number === null ? 'nothing' : `version ${number}`)
  const freed = edges.reduce((sum, { reclaimableBytes }) => sum + reclaimableBytes, 0)
  return [
    before?.versionId === after?.versionId
      ? `Production devices continue to boot ${numberOf(after?.number ?? null)}.`
      : `Production devices boot ${numberOf(after?.number ?? null)} instead of ${numberOf(before?.number ?? null)}.`,
    ...changed.map(
      ({ fromNumber, toNumber, devices }) =>
        `${devicesText(devices)} ${devices.count === 1 ? 'gets' : 'get'} ${numberOf(toNumber)} at the next boot instead of ${numberOf(fromNumber)}.`,
    ),
    ...(changed.length === 0 ? ['No device changes its version at the next boot.'] : []),
    ...running.map(
      ({ number, devices }) =>
        `${devicesText(devices)} ${devices.count === 1 ? 'is' : 'are'} running ${number === null ? 'a deleted version' : `version ${number}`} and ${devices.count === 1 ? 'keeps' : 'keep'} it until the next boot.`,
    ),
    ...(changesBoot ? ['The kernel, initramfs and kernel command line change as well.'] : []),
    ...lackingSentences(lacking),
    ...(cancelsPromotionOf === null
      ? []
      : [`Cancels the promotion of version ${cancelsPromotionOf}, which waits for edges.`]),
    ...(action === 'merge' ? mergeSentences(edges) : []),
    ...(action === 'delete'
      ? [
          edges.length === 0
            ? 'No edge stores this version.'
            : `Frees ${formatBytes(freed)} on ${edges.map(({ edgeName }) => edgeName).join(', ')} when the trash is emptied.`,
          ...(childNumbers.length > 0
            ? [`Versions based on it become independent of it: ${childNumbers.join(', ')}.`]
            : []),
        ]
      : []),
    ...(action === 'delete' || holders.length === 0 ? [] : [`Used by ${holders.join('; ')}.`]),
  ]
}

const lackingNamedMax = 5

function lackingSentences(lacking: VersionPreview['lacking']): string[] {
  if (lacking.length === 0) return []
  const named = lacking.slice(0, lackingNamedMax).map(lackingText)
  const more = lacking.length > named.length ? ' …' : ''
  const verb = lacking.length === 1 ? 'does' : 'do'
  return [
    `${countOf(lacking.length, 'edge')} ${verb} not hold the version yet, and devices do not boot it from ${lacking.length === 1 ? 'it' : 'them'}: ${named.join(', ')}${more}.`,
  ]
}

function lackingText({ edgeName, siteName, state, progressBytes, totalBytes }: VersionPreview['lacking'][number]) {
  if (state === 'damaged') return `${edgeName} in ${siteName} (damaged)`
  if (state === 'lacks') return `${edgeName} in ${siteName}`
  const percent = totalBytes === 0 ? '' : ` ${Math.min(100, Math.floor((progressBytes * 100) / totalBytes))} %`
  return `${edgeName} in ${siteName} (fetching${percent})`
}

function mergeSentences(edges: VersionPreview['edges']): string[] {
  return edges.length === 0
    ? ['No edge stores this version. There is nothing to merge yet.']
    : [
        `Runs in the background on ${edges.map(({ edgeName }) => edgeName).join(', ')}. No data is copied. Old versions remain until you delete them.`,
      ]
}
