import { expect, test } from 'vitest'
import { parseConsoleLine, readableConsoleText } from './console-text.ts'

test.each([
  ['SGR colours', '\x1b[1;32mOK\x1b[0m started', 'OK started'],
  ['cursor movement and clearing', '\x1b[2J\x1b[01;01HSeaBIOS', 'SeaBIOS'],
  ['a window title, which ends with BEL', '\x1b]0;root@pc\x07login:', 'login:'],
  ['a string that ends with ST', '\x1bP+q544e\x1b\\text', 'text'],
  ['a charset switch', '\x1b(Btext', 'text'],
  ['a sequence in C1', '\x9b31mred', 'red'],
  ['a sequence that is cut', 'text\x1b[3', 'text'],
  ['control characters', 'a\x00b\x07c\x7fd\x85e', 'abcde'],
  ['what turns text around', 'user\u202etxt.exe', 'usertxt.exe'],
  ['a line’s own end', 'text\r', 'text'],
  ['progress on one line', '10%\r\r 50%\r100%', '100%'],
  ['tabs', 'a\tb', 'a    b'],
  ['a boot token', 'Command line: bootfarm.token=abc123 ro', 'Command line: bootfarm.token=… ro'],
  ['markup, which stays as it is', '<script>', '<script>'],
])('%s', (_what, raw, text) => {
  expect(readableConsoleText(raw)).toBe(text)
})

test('a line of any length is short', () => {
  expect(readableConsoleText('x'.repeat(100_000))).toHaveLength(1001)
})

test('only a time, a space and text is a line', () => {
  expect(parseConsoleLine('1790000000000 [    0.000000] Linux')).toEqual({
    atUnixMs: 1_790_000_000_000,
    text: '[    0.000000] Linux',
  })
  expect(parseConsoleLine('1790000000000 ')).toMatchObject({ text: '' })
  for (const line of ['', 'Linux', '1790000000000', ' 1 x', '-5 x', '1e3 x', '9999999999999999 x'])
    expect(parseConsoleLine(line)).toBeNull()
})
