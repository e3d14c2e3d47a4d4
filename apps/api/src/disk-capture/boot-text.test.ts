import { expect, test } from 'vitest'
import { captureProblemOf } from './boot-text.ts'

const problemOf = (text: string | null) => captureProblemOf('guest_reported_failure', text)

test('the size of the disk and the names of several are read from the text of a failed boot', () => {
  expect(problemOf('no_capture: sda has 256060514304 bytes, the version 1048576')).toEqual({
    kind: 'size',
    sizeBytes: 256_060_514_304,
  })
  expect(problemOf('no_capture: name one of 2 disks: vda nvme0n1')).toEqual({
    kind: 'several',
    disks: ['vda', 'nvme0n1'],
  })
})

test('what no next boot mends is final, with the device’s words; everything else may pass', () => {
  for (const text of [
    'no_capture: sda cannot be read (error 5)',
    'no_capture: sda has 1000 bytes, the version 1048576',
    'no_capture: sda has 999999999999999 bytes, the version 1',
    'no_capture: name one of 2 disks: ../etc $(reboot)',
    'no_capture: name one of 2 disks:',
  ])
    expect(problemOf(text)).toEqual({ kind: 'final', reason: expect.stringContaining(text.slice(12)) })
  expect(captureProblemOf('root_not_found', 'nothing on nbd0')).toMatchObject({ kind: 'final' })
  for (const text of [null, '', 'no_network: no address', 'x no_capture: y'])
    expect(problemOf(text)).toEqual({ kind: 'passing' })
})
