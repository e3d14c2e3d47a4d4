import { bootCauses, bootCauseText } from '@bootfarm/proto/boot-phases'
import { expect, test } from 'vitest'
import { remedyActions, rollBackVersion } from './remedy-actions.ts'

const version = (number: number, access: string | null, ...allowedSteps: string[]) => ({
  id: String(number),
  number,
  access,
  allowedSteps,
})

test('a roll-back goes to the newest released version before the one that failed', () => {
  const older = [version(1, null, 'revert'), version(2, null, 'revert', 'merge'), version(3, 'test', 'promote')]
  const versions = [...older, version(4, 'default', 'override'), version(5, null, 'revert')]
  expect(rollBackVersion(versions, 4)?.number).toBe(2)
  expect(rollBackVersion(versions.toReversed(), 4)?.number).toBe(2)
  expect(rollBackVersion([version(1, 'default')], 1)).toBeNull()
  expect(rollBackVersion(versions, null)).toBeNull()
})

test('a version that devices do not get any more needs no roll-back', () => {
  const versions = [version(1, 'default', 'override'), version(2, null, 'revert')]
  expect(rollBackVersion(versions, 2)).toBeNull()
  expect(rollBackVersion([version(1, null, 'revert'), version(2, 'override'), version(3, 'default')], 2)).toBeNull()
})

test('a remedy that names a page or a roll-back has the button that leads there', () => {
  const words = {
    open_device: /the device's page/,
    open_vdisk: /the vDisk's page/,
    open_edge: /the edge's page/i,
    roll_back: /roll(s|ed)? (the vDisk |it )?back/i,
    assign_vdisk: /assign the device/i,
  } as const
  for (const cause of bootCauses)
    for (const [action, word] of Object.entries(words))
      if (word.test(bootCauseText(cause).remedy))
        expect([cause, remedyActions[cause]]).toEqual([cause, expect.arrayContaining([action])])
})
