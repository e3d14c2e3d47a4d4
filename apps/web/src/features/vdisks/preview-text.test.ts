import { expect, test } from 'vitest'
import { devicesText, previewSentences } from './preview-text'
import type { VersionPreview } from './version-types'

const preview: VersionPreview = {
  action: 'promote',
  refusals: [],
  holders: [],
  childNumbers: [],
  edges: [],
  cancelsPromotionOf: null,
  lacking: [],
  running: [],
  changed: [],
  before: { versionId: 'a', number: 1 },
  after: { versionId: 'b', number: 2 },
  changesBoot: false,
}
const edge = { edgeId: 'e', edgeName: 'edge-1', siteName: 'Hall', ownBytes: 1, sharedBytes: 2 }

test('many devices are named by the first of them', () => {
  expect(devicesText({ count: 1, names: ['pc-01'] })).toBe('1 device (pc-01)')
  expect(devicesText({ count: 9, names: ['a', 'b', 'c'] })).toBe('9 devices (a, b, c …)')
})

test('a promotion says who gets what, and who keeps what is run', () => {
  const devices = { count: 2, names: ['a', 'b'] }
  expect(
    previewSentences({
      ...preview,
      changed: [{ fromNumber: 1, toNumber: 2, devices }],
      running: [{ versionId: 'a', number: 1, devices: { count: 1, names: ['a'] } }],
      changesBoot: true,
    }),
  ).toEqual([
    'Production devices boot version 2 instead of version 1.',
    '2 devices (a, b) get version 2 at the next boot instead of version 1.',
    '1 device (a) is running version 1 and keeps it until the next boot.',
    'The kernel, initramfs and kernel command line change as well.',
  ])
})

test('a deletion says what becomes free, and that nobody changes', () => {
  const sentences = previewSentences({
    ...preview,
    action: 'delete',
    after: preview.before,
    childNumbers: [3],
    edges: [{ ...edge, reclaimableBytes: 2048 }],
  })
  expect(sentences).toEqual([
    'Production devices continue to boot version 1.',
    'No device changes its version at the next boot.',
    'Frees 2.00\u00a0KiB on edge-1 when the trash is emptied.',
    'Versions based on it become independent of it: 3.',
  ])
})

test('edges that lack the version are named with where their copies are', () => {
  const lacking = ['edge-1', 'edge-2', 'edge-3'].map((edgeName, index) => ({
    edgeId: edgeName,
    edgeName,
    siteName: 'Berlin',
    state: (['lacks', 'fetching', 'damaged'] as const)[index] ?? ('lacks' as const),
    progressBytes: 1,
    totalBytes: 2,
  }))
  expect(previewSentences({ ...preview, lacking })).toContain(
    '3 edges do not hold the version yet, and devices do not boot it from them: edge-1 in Berlin, edge-2 in Berlin (fetching 50 %), edge-3 in Berlin (damaged).',
  )
  expect(previewSentences({ ...preview, cancelsPromotionOf: 3 })).toContain(
    'Cancels the promotion of version 3, which waits for edges.',
  )
  expect(previewSentences({ ...preview, lacking: lacking.slice(0, 1) })).toContain(
    '1 edge does not hold the version yet, and devices do not boot it from it: edge-1 in Berlin.',
  )
})
