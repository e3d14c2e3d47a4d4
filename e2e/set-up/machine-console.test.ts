import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ConsoleLines } from '../../scripts/lib/machines/console-lines.mjs'
import { wakes } from '../../scripts/lib/machines/magic-packet.mjs'
import { ConsoleFile } from '../../scripts/machine-keeper/console-file.mjs'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

/** Feeds text piece by piece, flushes, and returns the lines. */
function linesOf(...pieces: (string | Buffer)[]): string[] {
  const lines: string[] = []
  const console = new ConsoleLines((line) => lines.push(line))
  pieces.forEach((piece, index) => {
    console.write(Buffer.from(piece), index)
  })
  console.flush()
  return lines
}

describe("a serial console's bytes become lines", () => {
  test('of plain text, however it is split into pieces', () => {
    const whole = 'one\r\ntwo\n\n\u001b[1;32mgreen\u001b[0m — é\r\n'
    expect(linesOf(whole)).toEqual(['one', 'two', 'green — é'])
    const bytes = [...Buffer.from(whole)].map((byte) => Buffer.of(byte))
    expect(linesOf(...bytes)).toEqual(['one', 'two', 'green — é'])
  })

  test('with a progress display in its last state', () => {
    expect(linesOf('loading 1%\rloading 99%\rloading ok\r\n')).toEqual(['loading ok'])
    expect(linesOf('kernel... 5%\b\b10%\n')).toEqual(['kernel... 10%'])
  })

  test('a cursor jump ends a line', () => {
    expect(linesOf('\u001b[2J\u001b[01;01Htop\u001b[10;20Hmiddle')).toEqual(['top', 'middle'])
  })

  test('strings for the terminal itself, and control characters, are removed', () => {
    expect(linesOf('\u001b]3008;start=1\u001b\\a\u001b]0;title\u0007b\u001b(Bc\u0000\u009fd\n')).toEqual(['abcd'])
  })

  test('a truncated escape sequence swallows no text and no line feed', () => {
    expect(linesOf('unit\u001b…Description\none\u001b\ntwo\n')).toEqual(['unit…Description', 'one', 'two'])
  })

  test('with the time of their first character', () => {
    const seen: [string, number][] = []
    const console = new ConsoleLines((line, atMs) => seen.push([line, atMs]))
    console.write(Buffer.from('slow '), 5)
    console.write(Buffer.from('line\nnext'), 9)
    console.flush()
    expect(seen).toEqual([
      ['slow line', 5],
      ['next', 9],
    ])
  })

  test('of bounded length', () => {
    expect(linesOf('x'.repeat(2500)).map((line) => line.length)).toEqual([1000, 1000, 500])
    expect(linesOf(`\u001b[${'1'.repeat(5000)}text\n`).join('').length).toBeLessThan(5000)
  })
})

describe("a machine's console file", () => {
  const mac = '52:54:00:78:00:00'
  const file = path.join(scratch.path, '52-54-00-78-00-00.log')

  test('has a time before each line, and records a prompt soon after it came', async () => {
    const console = new ConsoleFile(scratch.path, mac)
    console.write(Buffer.from('Debian\r\nlogin: '))
    await expect.poll(() => readFileSync(file, 'utf8')).toMatch(/^\d{13} Debian\n\d{13} login:\n$/)
  })

  test('stays below a size, with one older part', () => {
    const console = new ConsoleFile(scratch.path, mac)
    const line = `${'x'.repeat(990)}\n`
    for (let index = 0; index < 9000; index++) console.write(Buffer.from(line))
    expect(readFileSync(file).length).toBeLessThan(4.1 * 2 ** 20)
    expect(readFileSync(`${file}.1`).length).toBeLessThan(4.1 * 2 ** 20)
    expect(existsSync(`${file}.2`)).toBe(false)
  })
})

test('a magic packet wakes the machine that it names, wherever the pattern stands', () => {
  const address = Buffer.from('525400780000', 'hex')
  const packet = Buffer.concat([Buffer.alloc(6, 0xff), ...Array.from({ length: 16 }, () => address)])
  expect(wakes(packet, '52:54:00:78:00:00')).toBe(true)
  expect(wakes(Buffer.concat([Buffer.from('begin'), packet, Buffer.alloc(6)]), '52:54:00:78:00:00')).toBe(true)
  expect(wakes(packet, '52:54:00:78:00:01')).toBe(false)
  expect(wakes(packet.subarray(1), '52:54:00:78:00:00')).toBe(false)
})
