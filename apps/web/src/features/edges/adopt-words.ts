import { formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type EdgeImage = RouterOutputs['edge']['images']['items'][number]

/** As people know it; an edge of an older release says no name. */
export function imageName({ untrusted, versionId }: Pick<EdgeImage, 'untrusted' | 'versionId'>): string {
  return untrusted.name || `Image ${versionId.slice(0, 8)}`
}

export interface Adoption {
  image: Pick<EdgeImage, 'sizeBytes' | 'hasKernel'>
  edgeName: string
  /** Of the site, that have not got it. */
  otherEdges: string[]
  vdiskName: string
  isNewVdisk: boolean
  state: 'test' | 'released'
}

/** What will happen, a sentence each. */
export function adoptionSentences(adoption: Adoption): string[] {
  const { image, edgeName, otherEdges, vdiskName, isNewVdisk, state } = adoption
  const size = image.sizeBytes === null ? 'all of it' : `all of it, a disk of ${formatBytes(image.sizeBytes)},`
  const others = otherEdges.length > 0 ? ` Devices that boot from ${otherEdges.join(', ')} cannot start with it.` : ''
  return [
    isNewVdisk
      ? `The vDisk ${vdiskName} is created, and the image becomes its version 1.`
      : `The image becomes the next version of ${vdiskName}.`,
    `${edgeName} reads ${size} and compares it first. Where it is damaged, no version is made${isNewVdisk ? ', and the new vDisk is empty' : ''}.`,
    `Nothing is copied or written: the image keeps its id, and lies at ${edgeName} alone.${others}`,
    image.hasKernel
      ? 'It boots with the kernel, initramfs and command line that it has.'
      : 'It has no kernel: it boots by itself.',
    state === 'released' ? releasedWords(isNewVdisk) : testWords(isNewVdisk),
    'Who deletes the version later deletes the image at the edge with it.',
  ]
}

function releasedWords(isNewVdisk: boolean): string {
  return isNewVdisk
    ? 'Then it is released. No device boots it before a collection or a device gets the vDisk.'
    : 'Then it is released: production devices boot it at their next boot, unless an override holds.'
}

function testWords(isNewVdisk: boolean): string {
  return isNewVdisk
    ? 'Then it is in test. No device boots it before a collection or a device gets the vDisk.'
    : 'Then it is in test: test devices boot it at their next boot, production devices once it is promoted.'
}
