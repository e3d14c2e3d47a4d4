import type { BootPath, PathSegment } from '@bootfarm/proto/boot-path'
import { type KeyboardEvent, useRef } from 'react'
import { classNames } from '../../../lib/class-names'
import { formatDuration } from '../../../lib/format-quantity'
import { ownerColour } from './owner-colour'

interface PathBarProps {
  path: BootPath
  /** Index of the segment whose evidence is shown. */
  shown: number
  onShow: (index: number) => void
}

const steps: Partial<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowRight: 1,
  Home: -Number.MAX_VALUE,
  End: Number.MAX_VALUE,
}

/** The critical path on one axis: one stop of the Tab key, and arrow keys from part to part. */
export function PathBar({ path, shown, onShow }: PathBarProps) {
  const { segments, totalUs } = path
  const bar = useRef<HTMLDivElement>(null)
  function move(event: KeyboardEvent) {
    const step = steps[event.key]
    if (step === undefined) return
    event.preventDefault()
    const next = Math.max(0, Math.min(segments.length - 1, shown + step))
    const button = bar.current?.children[next]
    if (button instanceof HTMLElement) button.focus()
  }
  return (
    <div
      ref={bar}
      role="toolbar"
      aria-label={`Critical path of ${formatDuration(totalUs)}`}
      onKeyDown={move}
      className="mt-3 flex h-8 w-full overflow-hidden rounded-md bg-sunken"
    >
      {segments.map((segment, index) => (
        <button
          key={segment.fromUs}
          type="button"
          tabIndex={index === shown ? 0 : -1}
          aria-label={labelOf(segment)}
          aria-pressed={index === shown}
          onFocus={() => onShow(index)}
          onPointerEnter={() => onShow(index)}
          onClick={() => onShow(index)}
          style={{ flexGrow: segment.toUs - segment.fromUs, backgroundColor: ownerColour(segment.owner.kind) }}
          className={classNames(
            'h-full min-w-px basis-0 border-surface border-r last:border-r-0 focus-visible:-outline-offset-2',
            segment.source === 'inferred' &&
              'bg-[repeating-linear-gradient(135deg,transparent_0_4px,var(--surface)_4px_5px)]',
            index !== shown && 'opacity-75',
          )}
        />
      ))}
    </div>
  )
}

function labelOf({ owner, fromUs, toUs, source, evidence }: PathSegment): string {
  return `${owner.title}: ${formatDuration(toUs - fromUs)}, ${source}. ${evidence}`
}
