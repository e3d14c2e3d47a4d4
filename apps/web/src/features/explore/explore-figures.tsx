import { TextLink } from '../../components/button'
import { formatDuration } from '../../lib/format-quantity'
import type { BootFilters } from '../boots/boot-filters'
import { countText } from './count-text'
import { bootsHref, type ExploreFilters } from './explore-inputs'
import type { Exploration } from './heat-layout'

/** The figures of all boots of the page; each leads to the boots that it counts, or that take as long or longer. */
export function ExploreFigures({ exploration, filters }: { exploration: Exploration; filters: ExploreFilters }) {
  const { total, sample, since, until } = exploration
  const count = (value: number) => countText(value, sample.share)
  const time = (us: number | null) => (us === null ? null : formatDuration(us))
  const slower = (us: number | null): BootFilters => ({ outcome: 'ready', durationMin: String(us ?? 0) })
  const figures: { title: string; text: string | null; more: BootFilters }[] = [
    { title: 'Ready', text: count(total.readyCount), more: { outcome: 'ready' } },
    { title: 'Failed or timed out', text: count(total.failedCount), more: { outcome: 'unsuccessful' } },
    { title: 'p50', text: time(total.p50Us), more: slower(total.p50Us) },
    { title: 'p95', text: time(total.p95Us), more: slower(total.p95Us) },
    { title: 'p99', text: time(total.p99Us), more: slower(total.p99Us) },
  ]
  return (
    <dl className="flex flex-wrap gap-x-10 gap-y-3 rounded-lg border border-line bg-surface px-4 py-3">
      {figures.map(({ title, text, more }) => (
        <div key={title}>
          <dt className="text-ink-faint text-xs">{title}</dt>
          <dd className="font-semibold text-ink text-lg">
            {text === null ? (
              '–'
            ) : (
              <TextLink quiet href={bootsHref(filters, { since, until }, more)}>
                {text}
              </TextLink>
            )}
          </dd>
        </div>
      ))}
    </dl>
  )
}
