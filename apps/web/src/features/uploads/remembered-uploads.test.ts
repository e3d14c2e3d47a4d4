import { expect, test } from 'vitest'
import { forgetUpload, otherFileProblem, recallUpload, rememberUpload } from './remembered-uploads'

/** The part of the browser's storage that is used; Node's needs a file. */
class MemoryStorage {
  readonly #items = new Map<string, string>()
  get length() {
    return this.#items.size
  }
  key = (index: number) => [...this.#items.keys()][index] ?? null
  getItem = (key: string) => this.#items.get(key) ?? null
  setItem = (key: string, value: string) => void this.#items.set(key, value)
  removeItem = (key: string) => void this.#items.delete(key)
}

const dayMs = 86_400_000
const asText = (value: unknown) => (typeof value === 'string' ? value : null)
const upload = { lastModified: 5, import: 'edge-1', stopped: null }

test('an upload is remembered until it is forgotten or has expired', () => {
  const storage = new MemoryStorage()
  storage.setItem('theme', 'dark')
  rememberUpload(storage, 'a', upload, 0)
  expect(recallUpload(storage, 'a', asText)).toEqual(upload)
  rememberUpload(storage, 'b', { ...upload, stopped: 'Your session ended.' }, 9 * dayMs)
  expect(recallUpload(storage, 'a', asText)).toBe(null)
  expect(recallUpload(storage, 'b', asText)?.stopped).toBe('Your session ended.')
  forgetUpload(storage, 'b')
  expect(recallUpload(storage, 'b', asText)).toBe(null)
  expect(storage.getItem('theme')).toBe('dark')
})

test('what is no such record, or of another release, is no upload', () => {
  const storage = new MemoryStorage()
  for (const text of ['', '{', '7', 'null', '{"lastModified":"5","import":"x"}', '{"lastModified":5,"import":7}']) {
    storage.setItem('bootfarm.upload.a', text)
    expect(recallUpload(storage, 'a', asText)).toBe(null)
  }
  rememberUpload(storage, 'b', upload, 0)
  expect(storage.getItem('bootfarm.upload.a')).toBe(null)
  expect(recallUpload(null, 'b', asText)).toBe(null)
})

test('an upload continues only with a file of its name, its size and its time', () => {
  const file = { name: 'linux.raw', size: 7, lastModified: 5 }
  const begun = { name: 'linux.raw', sizeBytes: 7 }
  expect(otherFileProblem(file, begun, upload)).toBe(null)
  expect(otherFileProblem({ ...file, lastModified: 6 }, begun, null)).toBe(null)
  expect(otherFileProblem({ ...file, lastModified: 6 }, begun, upload)).toContain('was changed after the upload began')
  expect(otherFileProblem({ ...file, size: 8 }, begun, upload)).toContain('has 8 bytes')
  expect(otherFileProblem({ ...file, name: 'a.raw' }, begun, upload)).toContain('Choose linux.raw')
})
