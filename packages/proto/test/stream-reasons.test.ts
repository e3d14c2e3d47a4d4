import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const textOf = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

test('STREAM.md lists each reason by which an edge counts a packet of the stream', () => {
  const enumText = textOf('../../../edge/streamer-zig/src/base/ignored.zig')
  const counted = [...enumText.matchAll(/^ {4}stream_(\w+),$/gm)].map(([, name]) => name)
  const [, table = ''] = textOf('../STREAM.md').split('| reason `stream_...` | what |')
  const rows = table.split('\n\n')[0]?.split('\n') ?? []
  const told = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name))
  expect(counted.length).toBeGreaterThan(10)
  expect(told.toSorted()).toEqual(counted.toSorted())
})
