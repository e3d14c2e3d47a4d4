import { describe, expect, test } from 'vitest'
import { type WriteCache, writeCacheForecast, writeCacheMeaning, writeCacheRemedy } from './write-cache-meaning'

const cache = (changes: Partial<WriteCache> = {}): WriteCache => ({
  class: 'edge',
  state: 'ok',
  fullInSeconds: null,
  usedBytes: 1,
  sizeBytes: 100,
  percent: 1,
  level: 'ok',
  ...changes,
})

describe('what a write cache means', () => {
  test('is said from 80 % on, and whenever it stands still', () => {
    expect(writeCacheMeaning(cache())).toBeNull()
    expect(writeCacheMeaning(cache({ level: 'warning', percent: 81 }))?.sentence).toBe('The write cache is 81 % full.')
    expect(writeCacheMeaning(cache({ state: 'stopped' }))?.sentence).toMatch(/disk is stopped/)
    expect(writeCacheMeaning(cache({ state: 'read_only' }))?.sentence).toMatch(/disk is read-only/)
    expect(writeCacheMeaning(cache({ state: 'lost' }))?.meaning).toMatch(/Restart the device/)
  })

  test('promises that a restart empties only what it empties', () => {
    const full = { level: 'full', percent: 100 } as const
    expect(writeCacheMeaning(cache(full))?.meaning).toMatch(/restart the device\. A restart empties the cache/)
    expect(writeCacheMeaning(cache({ ...full, class: 'edge_persistent' }))?.meaning).toMatch(
      /A restart does not empty it/,
    )
    expect(writeCacheRemedy(cache({ class: 'device_ram' }))).toMatch(/add RAM/)
    expect(writeCacheRemedy(cache())).not.toMatch(/add RAM/)
    expect(writeCacheRemedy(cache({ state: 'lost' }))).toBeNull()
  })

  test('and what helps are said once each', () => {
    const kept = cache({ level: 'full', percent: 100, class: 'edge_persistent', state: 'stopped' })
    const said = `${writeCacheMeaning(kept)?.meaning} ${writeCacheRemedy(kept)}`
    expect(said.match(/raise the write cache limit/g)).toHaveLength(1)
    expect(said).toMatch(/A restart does not empty it\. Permanent fix: .*from the next boot/)
  })

  test.each([
    [null, null],
    [0, null],
    [20, 'less than a minute'],
    [600, 'in 10 min'],
    [7200, 'in 2 h'],
    [5 * 86_400, 'in 5 days'],
  ])('full in %s s is said as %s', (fullInSeconds, words) => {
    const said = writeCacheForecast(cache({ fullInSeconds }))
    if (words === null) expect(said).toBeNull()
    else expect(said).toContain(words)
  })
})
