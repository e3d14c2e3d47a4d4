import { expect, test } from 'vitest'
import { tftpBlocksOf } from './tftp-blocks.ts'

test('blocks of TFTP are counted by their size, and other transfers are not', () => {
  const file = { name: 'kernel', startUs: 0, durationUs: 1 }
  expect(tftpBlocksOf()).toBeUndefined()
  expect(tftpBlocksOf([{ ...file, protocol: 'http', bytes: 9 }])).toBeUndefined()
  expect(tftpBlocksOf([{ ...file, protocol: 'tftp', bytes: 9 }])).toBeUndefined()
  expect(
    tftpBlocksOf([
      { ...file, protocol: 'tftp', bytes: 1_468 * 100, blockSize: 1_468, retransmitted: 7 },
      { ...file, protocol: 'tftp', bytes: 10, blockSize: 1_468, retransmitted: 9 },
      { ...file, protocol: 'tftp', bytes: 1_000, blockSize: 512 },
    ]),
  ).toEqual([
    { blockSize: 1_468, blocks: 102, again: 8 },
    { blockSize: 512, blocks: 2, again: 0 },
  ])
})
