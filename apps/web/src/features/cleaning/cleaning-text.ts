import type { RouterInputs, RouterOutputs } from '../../lib/trpc'

export type Cleaning = RouterOutputs['cleaning']['get']
type Settings = Pick<RouterInputs['cleaning']['set'], 'mode' | 'window'>

export const modes: { value: Cleaning['mode']; label: string }[] = [
  { value: 'after_deletions', label: 'After something was deleted' },
  { value: 'daily', label: 'Every day' },
  { value: 'off', label: 'Only when somebody starts it' },
]

export function cleaningSentence({ mode, window, isDue }: Cleaning): string {
  if (mode === 'off') return 'Unused space is freed only when somebody starts that.'
  const when = window ? `from ${window.from} until ${window.to}, by the clocks of the site` : 'at any time'
  const often = mode === 'daily' ? 'every day' : 'after something was deleted'
  return `Unused space is freed ${often}, ${when}.${isDue ? ' The next window does it.' : ''}`
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
  if ((from === '') !== (to === '')) return { problem: 'Enter both times, or none for the whole day.' }
  if (from !== '' && from === to) return { problem: 'The window ends when it begins.' }
  return { mode, window: from === '' ? null : { from, to } }
}
