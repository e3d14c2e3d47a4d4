import { expect, test } from 'vitest'
import { validLanguage } from './load-plot.ts'

test.each([
  ['en-US@posix', 'en-US'],
  ['de_DE.UTF-8', 'de-DE'],
  ['C', 'en'],
  ['', 'en'],
  ['pt-BR', 'pt-BR'],
])('a browser whose language is %s formats for %s', (language, expected) => {
  expect(validLanguage(language)).toBe(expected)
  expect(() => new Intl.NumberFormat(validLanguage(language))).not.toThrow()
})
