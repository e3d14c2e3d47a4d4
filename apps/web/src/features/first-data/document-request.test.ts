import { expect, test } from 'vitest'
import { isDocumentRequest } from './document-request.ts'

const of = (headers: Record<string, string>) => isDocumentRequest(new Headers(headers))

test('a page that is opened is told from one that Next requests, with and without Fetch Metadata', () => {
  const opened = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
  expect(of({ 'sec-fetch-dest': 'document', accept: opened })).toBe(true)
  expect(of({ accept: opened })).toBe(true)
  expect(of({ 'sec-fetch-dest': 'empty', accept: '*/*' })).toBe(false)
  expect(of({ 'sec-fetch-dest': 'empty', accept: opened })).toBe(false)
  expect(of({ accept: '*/*' })).toBe(false)
  expect(of({})).toBe(false)
})
