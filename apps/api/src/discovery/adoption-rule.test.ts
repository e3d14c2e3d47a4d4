import { describe, expect, test } from 'vitest'
import { type AdoptionRule, adoptionRule, planAdoption, type RuledDevice, ruleFits } from './adoption-rule.ts'

const anything = {
  macPrefix: null,
  vendorClassPrefix: null,
  vendorClassContains: null,
  architecture: null,
  relayNetwork: null,
}
const collectionId = '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'
const adopt = (namePattern: string, conditions: Partial<AdoptionRule['conditions']> = {}): AdoptionRule => ({
  conditions: { ...anything, ...conditions },
  action: { kind: 'adopt', namePattern, collectionId },
})
const ignore = (conditions: Partial<AdoptionRule['conditions']>): AdoptionRule => ({
  conditions: { ...anything, ...conditions },
  action: { kind: 'ignore' },
})
const device = (changes: Partial<RuledDevice> = {}): RuledDevice => ({
  mac: '52:54:00:00:00:01',
  vendorClass: 'PXEClient:Arch:00007:UNDI:003016',
  clientArch: 7,
  relay: '10.20.0.1',
  ...changes,
})

describe('a condition', () => {
  test.each<[Partial<AdoptionRule['conditions']>, boolean]>([
    [{}, true],
    [{ macPrefix: '52:54:00' }, true],
    [{ macPrefix: '52:54:00:00:00:01' }, true],
    [{ macPrefix: '52:54:01' }, false],
    [{ vendorClassPrefix: 'pxeclient:arch:00007' }, true],
    [{ vendorClassPrefix: 'Arch:00007' }, false],
    [{ vendorClassContains: 'undi' }, true],
    [{ vendorClassContains: 'HTTPClient' }, false],
    [{ architecture: 'x64_uefi' }, true],
    [{ architecture: 'bios' }, false],
    [{ relayNetwork: '10.20.0.0/16' }, true],
    [{ relayNetwork: '10.21.0.0/16' }, false],
    [{ macPrefix: '52:54:00', architecture: 'bios' }, false],
  ])('%j holds: %s', (conditions, holds) => {
    expect(ruleFits(ignore(conditions), device())).toBe(holds)
  })

  test.each<[Partial<AdoptionRule['conditions']>, Partial<RuledDevice>]>([
    [{ relayNetwork: '0.0.0.0/0' }, { relay: null }],
    [{ vendorClassPrefix: 'PXE' }, { vendorClass: null }],
    [{ architecture: 'bios' }, { clientArch: null }],
    [{ architecture: 'bios' }, { clientArch: 4711 }],
  ])('%j never holds for what a device does not say', (conditions, changes) => {
    expect(ruleFits(ignore(conditions), device(changes))).toBe(false)
  })

  test('is written with capitals or hyphens too, and empty text is none', () => {
    const written = { ...anything, macPrefix: ' 52-54-AB ', vendorClassPrefix: ' ' }
    const { conditions } = adoptionRule.parse({ conditions: written, action: { kind: 'ignore' } })
    expect(conditions).toEqual({ ...anything, macPrefix: '52:54:ab' })
  })

  test.each([{ macPrefix: '5' }, { macPrefix: '52:5' }, { relayNetwork: '10.0.0.1/8' }, { architecture: 'vax' }])(
    '%j is refused',
    (conditions) => {
      const rule = { conditions: { ...anything, ...conditions }, action: { kind: 'ignore' } }
      expect(adoptionRule.safeParse(rule).success).toBe(false)
    },
  )
})

test('a rule with one name for many devices is refused', () => {
  expect(adoptionRule.safeParse(adopt('lab')).error?.issues[0]?.message).toContain('Use {n} or {mac}')
})

describe('a plan', () => {
  const room = { devices: 10, ignored: 10 }
  const plan = (rules: AdoptionRule[], devices: RuledDevice[], options = {}) =>
    planAdoption({ rules, devices, takenNames: new Set<string>(), room, ...options })

  test('takes the first rule that fits', () => {
    const rules = [ignore({ macPrefix: '52:54:00:00:00:02' }), adopt('lab-{n}', { architecture: 'x64_uefi' })]
    const devices = [device(), device({ mac: '52:54:00:00:00:02' }), device({ clientArch: 0 })]
    expect(plan(rules, devices)).toMatchObject([
      { kind: 'adopt', ruleIndex: 1, name: 'lab-1' },
      { kind: 'ignore', ruleIndex: 0 },
      { kind: 'none' },
    ])
  })

  test('gives each device a name of its own, also where rules share a pattern', () => {
    const rules = [adopt('lab-{nn}', { architecture: 'bios' }), adopt('lab-{nn}')]
    const devices = [device({ clientArch: 0 }), device(), device()]
    const plans = plan(rules, devices, { takenNames: new Set(['lab-02']) })
    expect(plans.map((one) => one.kind === 'adopt' && one.name)).toEqual(['lab-01', 'lab-03', 'lab-04'])
  })

  test('stops where the site is full', () => {
    const plans = plan(
      [ignore({ architecture: 'bios' }), adopt('lab-{n}')],
      [device(), device(), device({ clientArch: 0 })],
      {
        room: { devices: 1, ignored: 0 },
      },
    )
    expect(plans.map(({ kind }) => kind)).toEqual(['adopt', 'full', 'full'])
  })
})
