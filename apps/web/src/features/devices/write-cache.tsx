import type { ReactNode } from 'react'
import { Icon } from '../../components/icon'
import { Instant } from '../../components/instant'
import { Tag } from '../../components/tag'
import { classNames } from '../../lib/class-names'
import { formatBytes } from '../../lib/format-quantity'
import { type WriteCache, writeCacheForecast, writeCacheMeaning, writeCacheRemedy } from './write-cache-meaning'

/** A device that stands still is as bad as a full cache. */
const lookOf = ({ level, state }: WriteCache) => looks[state === 'ok' ? level : 'full']

const looks = {
  ok: { tone: 'ready', text: 'text-ready', bar: 'bg-ready' },
  warning: { tone: 'silent', text: 'text-silent', bar: 'bg-silent' },
  critical: { tone: 'failed', text: 'text-failed', bar: 'bg-failed' },
  full: { tone: 'failed', text: 'text-failed', bar: 'bg-failed' },
} as const

/** The meaning of a filling write cache, in words; nothing below 80 %. */
export function WriteCacheNotice({ cache, at }: { cache: WriteCache; at: string | null }) {
  const words = writeCacheMeaning(cache)
  if (words === null) return null
  const forecast = writeCacheForecast(cache)
  const remedy = writeCacheRemedy(cache)
  const soft = lookOf(cache) === looks.warning ? 'bg-silent-soft' : 'bg-failed-soft'
  return (
    <section
      aria-label="Write cache warning"
      className={classNames('flex gap-3 rounded-lg px-4 py-3', soft, lookOf(cache).text)}
    >
      <span className="pt-0.5">
        <Icon name="alert" />
      </span>
      <div className="min-w-0 text-sm">
        <p className="font-medium">{words.sentence}</p>
        {forecast && <p className="mt-0.5">{forecast}</p>}
        <p className="mt-0.5 text-ink-soft">{words.meaning}</p>
        {remedy && <p className="mt-0.5 text-ink-soft">{remedy}</p>}
        {at && (
          <p className="mt-0.5 text-ink-soft">
            Reported by the device at <Instant at={at} />.
          </p>
        )}
      </div>
    </section>
  )
}

/** How much of the capacity for writes is used. */
export function WriteCacheMeter({ cache, note }: { cache: WriteCache; note: ReactNode }) {
  const { usedBytes, sizeBytes, percent } = cache
  const look = lookOf(cache)
  const text = `${formatBytes(usedBytes)} of ${formatBytes(sizeBytes)}`
  const forecast = writeCacheForecast(cache)
  return (
    <div className="text-sm">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <span className={classNames('font-medium text-lg', look.text)}>{percent} %</span>
        <span className="text-ink-soft">{text}</span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw <meter> in colours of their own */}
      <div
        role="meter"
        aria-label="Write cache"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
        aria-valuetext={`${percent} %, ${text}`}
        className="mt-2 h-2.5 overflow-hidden rounded-full bg-line"
      >
        <div className={classNames('h-full min-w-0.5 rounded-full', look.bar)} style={{ width: `${percent}%` }} />
      </div>
      {forecast && <p className="mt-2 text-ink-soft">{forecast}</p>}
      <p className="mt-2 text-ink-faint text-xs">{note}</p>
    </div>
  )
}

/** Beside a device's name, from 80 % on. */
export function WriteCacheTag({ cache }: { cache: WriteCache | null }) {
  const words = cache && writeCacheMeaning(cache)
  if (!words) return null
  const forecast = writeCacheForecast(cache)
  return (
    <Tag tone={lookOf(cache).tone} title={[forecast, words.meaning].filter(Boolean).join(' ')}>
      {tagText(cache)}
    </Tag>
  )
}

function tagText({ state, level, percent }: WriteCache): string {
  switch (state) {
    case 'lost':
      return 'writes lost'
    case 'stopped':
      return 'stopped: cache full'
    case 'read_only':
      return 'read-only: cache full'
    case 'ok':
      return level === 'full' ? 'cache full' : `cache ${percent} %`
  }
}
