import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { redocly, spectral } from './linters.ts'
import { writeDocument } from './tools.ts'

const document = writeDocument()
afterAll(document.remove)

test('Redocly has nothing to say about the document', async () => {
  const { code, output } = await redocly(document.file)
  expect([code, output]).toEqual([0, expect.not.stringMatching(/warning|error/i)])
})

test('Spectral has nothing to say about the document', async () => {
  const { code, output } = await spectral(document.file)
  expect([code, output]).toEqual([0, expect.stringContaining('No results')])
})

test('both find a parameter without a place', async () => {
  const broken = JSON.parse(readFileSync(document.file, 'utf8')) as { paths: Record<string, { get: object }> }
  Object.assign(broken.paths['/session']?.get ?? {}, { parameters: [{ name: 'x' }] })
  const file = path.join(document.folder, 'broken.json')
  writeFileSync(file, JSON.stringify(broken))
  const [one, other] = await Promise.all([redocly(file), spectral(file)])
  expect([one.code, other.code]).toEqual([1, 1])
})
