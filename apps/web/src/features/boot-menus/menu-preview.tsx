import { classNames } from '../../lib/class-names'

interface MenuPreviewProps {
  titles: { key: number; title: string }[]
  defaultKey: number
  /** As it stands in the form. */
  timeoutSeconds: string
}

/** How a loader shows it on the device's screen: white on black, whatever the dashboard's colours are. */
export function MenuPreview({ titles, defaultKey, timeoutSeconds }: MenuPreviewProps) {
  return (
    <figure>
      <div className="overflow-hidden rounded-md border border-line-strong bg-[#101216] px-1 py-4 font-mono text-[#d6d9df] text-xs leading-5">
        <p className="px-3 pb-4 text-center">Bootfarm: select a boot entry</p>
        <ol>
          {titles.map(({ key, title }) => (
            <li
              key={key}
              aria-current={key === defaultKey ? 'true' : undefined}
              className={classNames(
                'flex justify-between gap-3 px-3',
                key === defaultKey && 'bg-[#d6d9df] text-[#101216]',
              )}
            >
              <span className="truncate whitespace-pre">{title || ' '}</span>
            </li>
          ))}
        </ol>
        <p className="px-3 pt-4 text-right">{timeoutSeconds || '–'} s</p>
      </div>
      <figcaption className="mt-2 text-ink-soft text-xs">
        The selected entry starts when the timeout expires. Pressing a key stops the timer.
      </figcaption>
    </figure>
  )
}
