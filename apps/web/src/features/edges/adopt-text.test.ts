import { expect, test } from 'vitest'
import { formatBytes } from '../../lib/format-quantity'
import { type Adoption, adoptionSentences, imageName } from './adopt-text'

const adoption: Adoption = {
  image: { sizeBytes: 2 ** 30, hasKernel: true },
  edgeName: 'edge-1',
  otherEdges: [],
  vdiskName: 'Linux',
  isNewVdisk: false,
  state: 'test',
}

test('an image without a name is known by the begin of its id', () => {
  const versionId = '0190c0de-0000-7000-8000-000000000000'
  expect(imageName({ versionId, untrusted: { name: 'Lab' } })).toBe('Lab')
  expect(imageName({ versionId, untrusted: { name: '' } })).toBe('Image 0190c0de')
})

test('what an adoption does is said before it is done', () => {
  const usual = adoptionSentences(adoption).join(' ')
  expect(usual).toContain('The image becomes the next version of Linux.')
  expect(usual).toContain(`edge-1 first reads and verifies the whole image (a disk of ${formatBytes(2 ** 30)}).`)
  expect(usual).toContain('Test devices boot it from their next boot')
  expect(usual).not.toContain('cannot start')
  const released = adoptionSentences({ ...adoption, state: 'released', otherEdges: ['edge-2'] }).join(' ')
  expect(released).toContain('Production devices boot it from their next boot unless an override is set')
  expect(released).toContain('Devices that boot from edge-2 cannot use it.')
})

test('a new vDisk has no devices yet, and stays empty where the image is damaged', () => {
  const image = { sizeBytes: null, hasKernel: false }
  const said = adoptionSentences({ ...adoption, image, isNewVdisk: true }).join(' ')
  expect(said).toContain('This creates the vDisk Linux. The image becomes version 1.')
  expect(said).toContain(
    'edge-1 first reads and verifies the whole image. If the image is damaged, no version is created and the new vDisk stays empty.',
  )
  expect(said).toContain('It has no kernel and boots from the disk’s own boot loader.')
  expect(said).toContain('No device boots it until the vDisk is assigned to a collection or a device.')
})
