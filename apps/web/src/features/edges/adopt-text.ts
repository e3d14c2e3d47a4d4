import { formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type EdgeImage = RouterOutputs['edge']['images']['items'][number]

/** The name for people; an edge of an older release sends none. */
export function imageName({ untrusted, versionId }: Pick<EdgeImage, 'untrusted' | 'versionId'>): string {
  return untrusted.name || `Image ${versionId.slice(0, 8)}`
}

export interface Adoption {
  image: Pick<EdgeImage, 'sizeBytes' | 'hasKernel'>
  edgeName: string
  /** The other edges of the site. */
  otherEdges: string[]
  vdiskName: string
  isNewVdisk: boolean
  state: 'test' | 'released'
}

/** The effects, a sentence each. */
export function adoptionSentences(adoption: Adoption): string[] {
  const { image, edgeName, otherEdges, vdiskName, isNewVdisk, state } = adoption
  const size =
    image.sizeBytes === null ? 'the whole image' : `the whole image (a disk of ${formatBytes(image.sizeBytes)})`
  const others = otherEdges.length > 0 ? ` Devices that boot from ${otherEdges.join(', ')} cannot use it.` : ''
  return [
    isNewVdisk
      ? `This creates the vDisk ${vdiskName}. The image becomes version 1.`
      : `The image becomes the next version of ${vdiskName}.`,
    `${edgeName} first reads and verifies ${size}. If the image is damaged, no version is created${isNewVdisk ? ' and the new vDisk stays empty' : ''}.`,
    `No data is copied or written. The image keeps its ID and is stored on ${edgeName} only.${others}`,
    image.hasKernel
      ? 'It boots with its own kernel, initramfs and kernel command line.'
      : 'It has no kernel and boots from the disk’s own boot loader.',
    state === 'released' ? releasedText(isNewVdisk) : testWords(isNewVdisk),
    'Deleting the version later also deletes the image on the edge.',
  ]
}

function releasedText(isNewVdisk: boolean): string {
  return isNewVdisk
    ? 'The version is released. No device boots it until the vDisk is assigned to a collection or a device.'
    : 'The version is released. Production devices boot it from their next boot unless an override is set.'
}

function testWords(isNewVdisk: boolean): string {
  return isNewVdisk
    ? 'The version is in test. No device boots it until the vDisk is assigned to a collection or a device.'
    : 'The version is in test. Test devices boot it from their next boot, production devices after it is promoted.'
}
