import { expect, test } from 'vitest'
import { readAheadText } from './read-ahead-text'

const mib = 2 ** 20

test('reading ahead is told in one line, and why there was none', () => {
  const readAhead = { hadProfile: true, askedBytes: 182 * mib, usedBytes: 171 * mib, waitedReads: 402 }
  expect(readAheadText(readAhead)).toBe('182\u00a0MiB read, 171\u00a0MiB used (93\u00a0%), 402 on-demand reads')
  const none = { ...readAhead, askedBytes: 0, usedBytes: 0, waitedReads: 1 }
  expect(readAheadText(none)).toBe('unused (profile available); 1 on-demand read')
  expect(readAheadText({ ...none, hadProfile: false })).toBe('unused (no boot profile yet); 1 on-demand read')
  expect(readAheadText(null)).toBeNull()
})
