import type { Tone } from '../../components/tag'
import { countOf, formatCount } from '../../lib/format-quantity'
import type { Listed, RouterInputs, RouterOutputs } from '../../lib/trpc'

type Alert = Listed<'alert'>

export function alertState({ closedAt, acknowledgedAt, acknowledgedByName }: Alert): {
  tone: Tone
  label: string
  meaning: string
} {
  if (closedAt !== null) return { tone: 'plain', label: 'Closed', meaning: 'It closed by itself.' }
  if (acknowledgedAt === null) return { tone: 'failed', label: 'Open', meaning: 'Nobody has acknowledged it.' }
  return { tone: 'silent', label: 'Acknowledged', meaning: `Acknowledged by ${acknowledgedByName}.` }
}

/** Explains the alert by its figures. */
export function figuresText({ objective, failures, collectionId }: Alert): string {
  if (objective) {
    const { missed, boots, burnRate, days } = objective
    return `${formatCount(missed)} of ${countOf(boots, 'boot')} missed the objective: ${burnRate} times what it allows over ${countOf(days, 'day')}.`
  }
  if (!failures) return ''
  const { minutes, boots, placeBoots, devices, usualPercent } = failures
  const place = collectionId === null ? 'site' : 'collection'
  if (boots === 0) return `None in the last ${minutes} minutes.`
  return `In the last ${minutes} minutes ${formatCount(boots)} of ${countOf(placeBoots, 'boot')} of the ${place}, of ${countOf(devices, 'device')}. Usual: ${usualPercent} %.`
}

type OpenCause = RouterOutputs['alert']['openCauses']['causes'][number]

/** Names the places of a cause, those with the most boots. */
export function placesText({ places }: OpenCause): string {
  const names = places
    .slice(0, placesNamed)
    .map(({ siteName, collectionName }) => (collectionName === null ? siteName : `${collectionName} (${siteName})`))
  const others = places.length - names.length
  return [...names, ...(others > 0 ? [`${formatCount(others)} more`] : [])].join(', ')
}

const placesNamed = 3

type Subscription = RouterOutputs['alert']['subscription']['subscription']

export interface MailForm {
  mails: string
  from: string
  to: string
  timeZone: string
}

/** @param zone the viewer's, for a first subscription */
export function mailFormOf(subscription: Subscription, zone: string): MailForm {
  const { from = '', to = '' } = subscription?.quietHours ?? {}
  return { mails: subscription ? 'on' : 'off', from, to, timeZone: subscription?.timeZone ?? zone }
}

/** Reads the fields; `problem` says which one is wrong. */
export function readMailForm({
  mails,
  from,
  to,
  timeZone,
}: MailForm): RouterInputs['alert']['subscribe'] | { problem: string } {
  if (mails === 'off') return { subscription: null }
  if ((from === '') !== (to === '')) return { problem: 'Enter both times, or neither for mails at any time.' }
  if (from !== '' && from === to)
    return { problem: 'Quiet hours cannot end when they begin. Leave both times empty for mails at any time.' }
  return { subscription: { quietHours: from === '' ? null : { from, to }, timeZone: timeZone.trim() } }
}
