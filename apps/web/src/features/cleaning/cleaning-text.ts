import type { RouterInputs, RouterOutputs } from '../../lib/trpc'

export type Cleaning = RouterOutputs['cleaning']['get']
type Settings = Pick<RouterInputs['cleaning']['set'], 'mode' | 'window'>

export const modes: { value: Cleaning['mode']; label: string }[] = [
  { value: 'after_deletions', label: 'After something was deleted' },
  { value: 'daily', label: 'Every day' },
  { value: 'off', label: 'Only when somebody starts it' },
]

export function cleaningSentence({ mode, window, isDue }: Cleaning): string {
  if (mode === 'off') return 'Only when somebody starts it.'
  const when = window ? `between ${window.from} and ${window.to}, by the clocks of the site` : 'at any time'
  const often = mode === 'daily' ? 'Every day' : 'After something was deleted'
  const next = window ? ' It is due in the next window.' : ' It is due now.'
  return `${often}, ${when}.${isDue ? next : ''}`
}

/** What the last one did, or does. */
export function lastText(last: NonNullable<Cleaning['last']>): string {
  const { message } = last.untrusted
  const said = message === null || message === '' ? '' : `: ${message}`
  return `${last.state}${said}`
}

export interface CleaningForm {
  mode: Cleaning['mode']
  from: string
  to: string
}

export function formOf({ mode, window }: Cleaning): CleaningForm {
  return { mode, from: window?.from ?? '', to: window?.to ?? '' }
}

/** Reads the fields; `problem` says which one is wrong. */
export function readForm({ mode, from, to }: CleaningForm): Settings | { problem: string } {
  if ((from === '') !== (to === '')) return { problem: 'Enter both times, or neither for the whole day.' }
  if (from !== '' && from === to)
    return { problem: 'Cleaning cannot start from and until the same time. Leave both empty for the whole day.' }
  return { mode, window: from === '' ? null : { from, to } }
}
