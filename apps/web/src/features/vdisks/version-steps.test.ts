import { expect, test } from 'vitest'
import { stepsOf } from './version-steps'

const sealed = {
  id: 'v',
  sealedAt: '2026-11-21T00:00:00Z',
  isSealing: false,
  manifest: { root: '', counter: 1 },
}
const vdisk = { maintenance: null, defaultVersionId: 'd' }

test('the next step of each access is a button', () => {
  const first = (access: Parameters<typeof stepsOf>[0]['access'], state: 'test' | 'released' = 'released') =>
    stepsOf({ ...sealed, access, state }, vdisk).first
  expect(first('test', 'test')).toEqual(['promote'])
  expect(first('pending')).toEqual(['promote', 'cancelRelease'])
  expect(first('default')).toEqual(['startMaintenance'])
  expect(first('override')).toEqual(['clearOverride'])
  expect(first(null)).toEqual(['revert'])
})

test('what is written can be sealed or discarded, and what is being made only labelled', () => {
  const written = {
    ...sealed,
    sealedAt: null,
    manifest: null,
    access: 'maintenance',
    state: 'maintenance',
  } as const
  expect(stepsOf(written, vdisk).first).toEqual(['seal', 'discard'])
  expect(stepsOf({ ...written, isSealing: true }, vdisk)).toEqual({ first: [], more: ['label'] })
  expect(stepsOf({ ...written, access: null, state: 'test' }, vdisk)).toEqual({ first: [], more: ['label'] })
})

test('a plain file is neither maintained nor merged, and one version is maintained at a time', () => {
  const version = { ...sealed, access: 'default', state: 'released' } as const
  expect(stepsOf({ ...version, manifest: null }, vdisk)).toEqual({
    first: [],
    more: ['override', 'label', 'delete'],
  })
  const busy = { ...vdisk, maintenance: { versionId: 'm', device: null } }
  expect(stepsOf(version, busy)).toEqual({ first: [], more: ['override', 'merge', 'label', 'delete'] })
})
