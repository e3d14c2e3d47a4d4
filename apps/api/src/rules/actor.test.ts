import { describe, expect, test } from 'vitest'
import { type Actor, may } from './actor.ts'
import type { Role } from './permissions.ts'
import type { Place } from './place.ts'

const farm: Place = { farmId: 'farm', siteId: null, collectionId: null }
const site: Place = { farmId: 'farm', siteId: 'site', collectionId: null }
const collection: Place = { farmId: 'farm', siteId: 'site', collectionId: 'collection' }
const otherSite: Place = { farmId: 'farm', siteId: 'other site', collectionId: null }
const organization: Place = { farmId: null, siteId: null, collectionId: null }

function actorWith(role: Role, scope: Place, onlyPermissions: Actor['onlyPermissions'] = null): Actor {
  const person = { kind: 'person', userId: null, userName: '', userEmail: '', apiKeyId: null } as const
  return { ...person, organizationId: '', organizationName: '', grants: [{ role, scope }], onlyPermissions }
}

describe('a role', () => {
  test('holds for all that lies within its scope', () => {
    for (const place of [site, collection]) {
      expect(may(actorWith('operator', site), 'device.power', place)).toBe(true)
      expect(may(actorWith('operator', organization), 'device.power', place)).toBe(true)
    }
  })

  test('holds nowhere beside or above its scope', () => {
    for (const place of [otherSite, farm, organization])
      expect(may(actorWith('operator', site), 'device.power', place)).toBe(false)
    expect(may(actorWith('operator', collection), 'device.power', site)).toBe(false)
  })

  test('shows the way down to its scope, and nothing that lies beside', () => {
    const actor = actorWith('viewer', collection)
    for (const place of [farm, site]) expect(may(actor, 'site.read', place)).toBe(true)
    expect(may(actor, 'site.read', otherSite)).toBe(false)
    expect(may(actor, 'device.read', site)).toBe(false)
  })

  test('gives exactly the permissions of its rows', () => {
    expect(may(actorWith('auditor', organization), 'audit.read', organization)).toBe(true)
    expect(may(actorWith('auditor', organization), 'device.power', site)).toBe(false)
    expect(may(actorWith('image_manager', organization), 'vdisk.change', farm)).toBe(true)
    expect(may(actorWith('image_manager', organization), 'device.change', site)).toBe(false)
  })
})

test('an API key is limited to its permissions, regardless of its role', () => {
  const key = actorWith('owner', organization, new Set(['device.read']))
  expect(may(key, 'device.read', collection)).toBe(true)
  expect(may(key, 'device.power', collection)).toBe(false)
})
