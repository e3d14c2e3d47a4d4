import { expect, test } from 'vitest'
import { alertState, figuresText, mailFormOf, placesText, readMailForm } from './alert-text'

const at = '2026-11-29T07:00:00.000Z'
const alert = {
  id: 'a',
  kind: 'failures' as const,
  title: '38 boots of site C: The device accepted another server.',
  farmId: 'f',
  siteId: 's',
  siteName: 'C',
  collectionId: null,
  collectionName: null,
  cause: 'other_offer_won' as const,
  bootCount: 38,
  firstAt: at,
  lastAt: at,
  openedAt: at,
  closedAt: null,
  acknowledgedAt: null,
  acknowledgedByName: null,
  objective: null,
  failures: { minutes: 15, boots: 12, devices: 12, placeBoots: 40, usualPercent: 1.5 },
  boots: '/boots?site=s&cause=other_offer_won',
}

test('a state says who looks after the alert', () => {
  expect(alertState(alert)).toMatchObject({ label: 'Open', tone: 'failed' })
  const acknowledged = { ...alert, acknowledgedAt: at, acknowledgedByName: 'Ada' }
  expect(alertState(acknowledged)).toMatchObject({ label: 'Acknowledged', meaning: 'Acknowledged by Ada.' })
  expect(alertState({ ...acknowledged, closedAt: at })).toMatchObject({ label: 'Closed', tone: 'plain' })
})

test('figures say what an alert is based on', () => {
  expect(figuresText(alert)).toBe('In the last 15 minutes 12 of 40 boots of the site, of 12 devices. Usual: 1.5 %.')
  expect(figuresText({ ...alert, collectionId: 'c' })).toContain('12 of 40 boots of the collection, of 12 devices.')
  expect(figuresText({ ...alert, failures: { ...alert.failures, boots: 0 } })).toBe('None in the last 15 minutes.')
  const objective = {
    window: '1h' as const,
    boots: 50,
    missed: 40,
    burnRate: 16,
    burnLimit: 14.4,
    percent: 95,
    seconds: 30,
    days: 30,
  }
  expect(figuresText({ ...alert, kind: 'objective', failures: null, objective })).toBe(
    '40 of 50 boots missed the objective: 16 times what it allows over 30 days.',
  )
})

test('a form of mails is read as it was written, and half quiet hours are named', () => {
  const subscription = { quietHours: { from: '22:00', to: '06:00' }, timeZone: 'Europe/Berlin' }
  expect(readMailForm(mailFormOf(subscription, 'Asia/Tokyo'))).toEqual({ subscription })
  expect(readMailForm(mailFormOf(null, 'Asia/Tokyo'))).toEqual({ subscription: null })
  expect(mailFormOf(null, 'Asia/Tokyo')).toEqual({ mails: 'off', from: '', to: '', timeZone: 'Asia/Tokyo' })
  const form = { mails: 'on', from: '', to: '', timeZone: 'Europe/Berlin' }
  expect(readMailForm(form)).toEqual({ subscription: { quietHours: null, timeZone: 'Europe/Berlin' } })
  expect(readMailForm({ ...form, from: '22:00' })).toEqual({
    problem: 'Enter both times, or neither for mails at any time.',
  })
  expect(readMailForm({ ...form, from: '22:00', to: '22:00' })).toHaveProperty('problem')
})

test('a cause names the places with the most boots', () => {
  const place = { alertId: 'a', siteId: 's', collectionId: 'c', bootCount: 9 }
  const places = ['A', 'B', 'C', 'D', 'E'].map((siteName, index) => ({
    ...place,
    siteName,
    collectionName: index === 0 ? null : 'Lab',
  }))
  const cause = { cause: 'silent' as const, sentence: '', bootCount: 45, boots: '', places }
  expect(placesText(cause)).toBe('A, Lab (B), Lab (C), 2 more')
  expect(placesText({ ...cause, places: places.slice(1, 2) })).toBe('Lab (B)')
})
