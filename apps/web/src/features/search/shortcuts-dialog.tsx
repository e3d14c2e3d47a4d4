'use client'

import { InfoDialog } from '../../components/dialog'
import { type Place, places } from '../shell/places'
import { Keys } from './palette'

interface ShortcutsDialogProps {
  isOpenTo: (place: Place) => boolean
  withSingleKeys: boolean
  onSingleKeys: (isOn: boolean) => void
  onClose: () => void
}

/** Lists the shortcuts. Those without Ctrl can be turned off: speech input presses keys by accident (WCAG 2.1.4). */
export function ShortcutsDialog({ isOpenTo, withSingleKeys, onSingleKeys, onClose }: ShortcutsDialogProps) {
  const go = places.filter((place) => place.key !== undefined && isOpenTo(place))
  return (
    <InfoDialog title="Keyboard shortcuts" closing="Close" onClose={onClose}>
      <dl className="grid gap-x-8 gap-y-1 text-sm sm:grid-cols-2">
        <Line keys={['Ctrl', 'K']} also="or ⌘ K" text="Search and go to" />
        <Line keys={['/']} text="Search and go to" />
        <Line keys={['?']} text="Show this list" />
        {go.map(({ href, title, key = '' }) => (
          <Line key={href} keys={['g', key]} text={title} />
        ))}
      </dl>
      <label className="flex items-start gap-2.5 text-ink text-sm">
        <input
          type="checkbox"
          checked={withSingleKeys}
          onChange={(event) => onSingleKeys(event.target.checked)}
          className="mt-0.5 size-4 accent-(--ink)"
        />
        Use shortcuts without Ctrl in this browser
      </label>
      <p className="text-sm">
        <a href="/help" className="text-ink underline underline-offset-4">
          Help
        </a>
        {' · '}
        <a href="/api/docs" target="_blank" rel="noopener" className="text-ink underline underline-offset-4">
          API reference
        </a>
      </p>
    </InfoDialog>
  )
}

function Line({ keys, also, text }: { keys: string[]; also?: string; text: string }) {
  return (
    <div className="flex min-h-8 items-center justify-between gap-3">
      <dt className="text-ink-soft">{text}</dt>
      <dd className="flex items-center gap-2 text-ink-soft text-xs">
        <Keys keys={keys} /> {also}
      </dd>
    </div>
  )
}
