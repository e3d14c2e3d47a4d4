import { countOf, formatBytes } from '../../lib/format-quantity'
import type { VersionPreview } from './version-types'

type Tally = VersionPreview['running'][number]['devices']

/** `2 devices (pc-01, pc-02)`, with the first names of many. */
export function devicesText({ count, names }: Tally): string {
  const more = count > names.length ? ' …' : ''
  return `${countOf(count, 'device')}${names.length > 0 ? ` (${names.join(', ')}${more})` : ''}`
}

/** What will happen, a sentence each. */
export function previewSentences(preview: VersionPreview): string[] {
  const { action, before, after, changed, running, changesBoot, holders, childNumbers, edges } = preview
  const numberOf = (number: number | null) => (number === null ? 'nothing' : `version ${number}`)
  const freed = edges.reduce((sum, { reclaimableBytes }) => sum + reclaimableBytes, 0)
  return [
    before?.versionId === after?.versionId
      ? `Production devices go on booting ${numberOf(after?.number ?? null)}.`
      : `Production devices boot ${numberOf(after?.number ?? null)} in place of ${numberOf(before?.number ?? null)}.`,
    ...changed.map(
      ({ fromNumber, toNumber, devices }) =>
        `${devicesText(devices)} ${devices.count === 1 ? 'gets' : 'get'} ${numberOf(toNumber)} at the next boot, in place of ${numberOf(fromNumber)}.`,
    ),
    ...(changed.length === 0 ? ['No device gets another version at its next boot.'] : []),
    ...running.map(
      ({ number, devices }) =>
        `${devicesText(devices)} ${devices.count === 1 ? 'runs' : 'run'} ${number === null ? 'a version that is gone' : `version ${number}`} now and ${devices.count === 1 ? 'keeps' : 'keep'} it until the next boot.`,
    ),
    ...(changesBoot ? ['Kernel, initramfs and command line change with it.'] : []),
    ...(action === 'merge' ? mergeSentences(edges) : []),
    ...(action === 'delete'
      ? [
          edges.length === 0
            ? 'No edge’s store holds anything of it.'
            : `${formatBytes(freed)} become free in the stores of ${edges.map(({ edgeName }) => edgeName).join(', ')} when the trash is emptied.`,
          ...(childNumbers.length > 0 ? [`Versions made from it need it no more: ${childNumbers.join(', ')}.`] : []),
        ]
      : []),
    ...(action === 'delete' || holders.length === 0 ? [] : [`It is used by ${holders.join('; ')}.`]),
  ]
}

function mergeSentences(edges: VersionPreview['edges']): string[] {
  return edges.length === 0
    ? ['No edge’s store holds it: there is nothing to merge yet.']
    : [
        `Done by the stores of ${edges.map(({ edgeName }) => edgeName).join(', ')} in the background. No data is copied, and old versions stay until they are deleted.`,
      ]
}
