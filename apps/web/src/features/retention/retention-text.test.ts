import { expect, test } from 'vitest'
import { formOf, previewSentences, readForm, retentionSentence } from './retention-text'

test('a retention is one sentence or two', () => {
  expect(retentionSentence({ revision: 1, keptReleases: null, trashDays: 7 })).toBe(
    'All versions stay until somebody deletes them.',
  )
  expect(retentionSentence({ revision: 1, keptReleases: 3, trashDays: 1 })).toBe(
    'The last 3 released versions stay, and so does every version in use. Older ones are deleted, and can be restored from the trash for 1 day.',
  )
  expect(retentionSentence({ revision: 1, keptReleases: 1, trashDays: 0 })).toBe(
    'The version released last stays, and so does every version in use. Older ones are deleted, and cannot be restored.',
  )
})

test('a form is read as it was written, and a wrong number is named', () => {
  const retention = { revision: 4, keptReleases: 3, trashDays: 2 }
  expect(readForm(formOf(retention))).toEqual({ keptReleases: 3, trashDays: 2 })
  expect(readForm(formOf({ revision: 4, keptReleases: null, trashDays: 7 }))).toEqual({
    keptReleases: null,
    trashDays: 7,
  })
  for (const keptReleases of ['', '0', '1001', 'three', '2.5'])
    expect(readForm({ choice: 'last', keptReleases, trashDays: '7' })).toEqual({
      problem: 'Enter how many versions stay: 1 to 1000.',
    })
  for (const trashDays of ['', '31', '-1'])
    expect(readForm({ choice: 'last', keptReleases: '2', trashDays })).toEqual({ problem: 'Enter 0 to 30 days.' })
})

test('a preview says what goes, what becomes free, and why the rest stays', () => {
  const version = (number: number, text: string | null) => ({
    versionId: `v${number}`,
    number,
    releasedAt: null,
    goes: text === null,
    reasons: text === null ? [] : [{ kind: 'used' as const, text }],
  })
  const edge = { edgeId: 'e', edgeName: 'edge-1', siteName: 'Berlin', versionCount: 2, reclaimableBytes: 3 << 20 }
  expect(
    previewSentences({
      versions: [version(4, 'Devices boot it by default.'), version(2, null), version(1, null)],
      waitingCount: 5,
      edges: [edge],
    }),
  ).toEqual([
    'Deletes 2 versions now: 2, 1.',
    'Checks 5 more versions in later runs.',
    expect.stringMatching(/^Frees at least 3\.00\sMiB at edge-1 \(Berlin\), once they have left the trash\.$/),
    'Version 4 stays. Devices boot it by default.',
  ])
  expect(previewSentences({ versions: [], waitingCount: 0, edges: [] })).toEqual(['Deletes no version now.'])
})
