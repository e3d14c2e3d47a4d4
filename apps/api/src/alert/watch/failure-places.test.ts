import fc from 'fast-check'
import { expect, test } from 'vitest'
import { choosePlaces, type PlaceFailures, type SiteFailures } from './failure-places.ts'

const now = new Date('2026-11-20T12:00:00Z')

function place(collectionId: string | null, changes: Partial<PlaceFailures> = {}): PlaceFailures {
  const boots = changes.boots ?? 0
  const counts = { boots, devices: boots, placeBoots: boots, usualShare: 0.02, isOpen: false }
  return { siteId: 's', collectionId, cause: 'tftp_timeout', firstAt: now, lastAt: now, ...counts, ...changes }
}

/** @param others boots of the site that do not fail, outside of these parts */
function siteOf(parts: PlaceFailures[], others: number, changes: Partial<PlaceFailures> = {}): SiteFailures {
  const sum = (of: (one: PlaceFailures) => number) => parts.reduce((total, one) => total + of(one), 0)
  const counts = { boots: sum(({ boots }) => boots), devices: sum(({ devices }) => devices) }
  const placeBoots = sum((one) => one.placeBoots) + others
  return { site: place(null, { ...counts, placeBoots, ...changes }), parts }
}

const chosen = (failures: SiteFailures) => choosePlaces(failures, now).map(({ collectionId }) => collectionId)

test('a collection that fails is named, not its site', () => {
  expect(chosen(siteOf([place('a', { boots: 38 }), place(null, { boots: 0, placeBoots: 60 })], 0))).toEqual(['a'])
  expect(chosen(siteOf([place('a', { boots: 38 }), place('b', { boots: 20 })], 400))).toEqual(['a', 'b'])
})

test('many collections are one alert of their site, and so are boots of devices that are in none', () => {
  const collections = ['a', 'b', 'c'].map((id) => place(id, { boots: 9 }))
  expect(chosen(siteOf(collections, 3))).toEqual([null])
  expect(chosen(siteOf([place(null, { boots: 12 })], 20))).toEqual([null])
  // Each has too few, all together do not.
  expect(chosen(siteOf([place('a', { boots: 3 }), place('b', { boots: 3 })], 0))).toEqual([null])
})

test('many collections of a site that has many more boots keep their own alerts', () => {
  const collections = ['a', 'b', 'c'].map((id) => place(id, { boots: 6 }))
  expect(chosen(siteOf(collections, 10_000))).toEqual(['a', 'b', 'c'])
})

test('an open alert of a collection stays beside that of its site, which is about the others', () => {
  const open = place('a', { boots: 38, isOpen: true })
  expect(chosen(siteOf([open, place('b', { boots: 9 })], 0, { isOpen: true }))).toEqual([null, 'a'])
  // Without the collection nothing is left of it.
  const quiet = place('b', { boots: 0, placeBoots: 90, lastAt: new Date(now.getTime() - 60 * 60_000) })
  expect(chosen(siteOf([open, quiet], 0, { isOpen: true }))).toEqual(['a'])
})

test('whatever fails, each place is chosen once, and a failing collection has an alert, or its site has', () => {
  const one = fc.record({ boots: fc.nat(60), more: fc.nat(200), isOpen: fc.boolean() })
  fc.assert(
    fc.property(fc.array(one, { maxLength: 6 }), fc.nat(2_000), fc.boolean(), (drawn, others, isOpen) => {
      const collections = drawn.map(({ boots, more, ...rest }, index) =>
        place(`c${index}`, { boots, placeBoots: boots + more, ...rest }),
      )
      const places = chosen(siteOf(collections, others, { isOpen }))
      expect(new Set(places).size).toBe(places.length)
      const isFailing = collections.some(({ boots, placeBoots }) => boots >= 5 && boots === placeBoots)
      if (isFailing) expect(places.length).toBeGreaterThan(0)
    }),
  )
})
