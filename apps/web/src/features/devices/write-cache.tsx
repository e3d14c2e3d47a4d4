import type { ReactNode } from 'react'
import { Icon } from '../../components/icon'
import { Instant } from '../../components/instant'
import { Tag } from '../../components/tag'
import { classNames } from '../../lib/class-names'
import { formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type WriteCache = NonNullable<RouterOutputs['boot']['get']['writeCache']>

const looks = {
  ok: { tone: 'ready', text: 'text-ready', bar: 'bg-ready' },
  warning: { tone: 'silent', text: 'text-silent', bar: 'bg-silent' },
  critical: { tone: 'failed', text: 'text-failed', bar: 'bg-failed' },
  full: { tone: 'failed', text: 'text-failed', bar: 'bg-failed' },
} as const

const notices = {
  warning: {
    sentence: (percent: number) => `The write cache is ${percent} % full.`,
    meaning:
      'When it is full, nothing more can be written on this device. A restart empties it; what was written is lost then.',
  },
  critical: {
    sentence: (percent: number) => `The write cache is nearly full: ${percent} %.`,
    meaning:
      'Soon nothing more can be written on this device. Save elsewhere what is needed, then restart it: a restart empties the cache.',
  },
  full: {
    sentence: () => 'The write cache is full.',
    meaning:
      'What the device writes now fails, and its programs with it. Save elsewhere what is needed, then restart it: a restart empties the cache.',
  },
} as const

/** Where an administrator gives more room for good. */
const remedy =
  'For good: give it more RAM (bootfarm.overlay= on the command line of its vDisk’s version), or write less: logs and temporary files elsewhere.'

/** What a fuller and fuller write cache means, in words; nothing below 80 %. */
export function WriteCacheNotice({ cache, at }: { cache: WriteCache; at: string | null }) {
  if (cache.level === 'ok') return null
  const { sentence, meaning } = notices[cache.level]
  const soft = cache.level === 'warning' ? 'bg-silent-soft' : 'bg-failed-soft'
  return (
    <section
      aria-label="Write cache warning"
      className={classNames('flex gap-3 rounded-lg px-4 py-3', soft, looks[cache.level].text)}
    >
      <span className="pt-0.5">
        <Icon name="alert" />
      </span>
      <div className="min-w-0 text-sm">
        <p className="font-medium">{sentence(cache.percent)}</p>
        <p className="mt-0.5 text-ink-soft">{meaning}</p>
        <p className="mt-0.5 text-ink-soft">{remedy}</p>
        {at && (
          <p className="mt-0.5 text-ink-soft">
            As the device said at <Instant at={at} />.
          </p>
        )}
      </div>
    </section>
  )
}

/** How much of the RAM for writes is used. */
export function WriteCacheMeter({ cache, note }: { cache: WriteCache; note: ReactNode }) {
  const { usedBytes, sizeBytes, percent, level } = cache
  const text = `${formatBytes(usedBytes)} of ${formatBytes(sizeBytes)}`
  return (
    <div className="text-sm">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <span className={classNames('font-medium text-lg', looks[level].text)}>{percent} %</span>
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
        <div
          className={classNames('h-full min-w-0.5 rounded-full', looks[level].bar)}
          style={{ width: `${percent}%` }}
        />
      </div>
      <p className="mt-2 text-ink-faint text-xs">{note}</p>
    </div>
  )
}

/** Beside a device's name, from 80 % on. */
export function WriteCacheTag({ cache }: { cache: WriteCache | null }) {
  if (cache === null || cache.level === 'ok') return null
  const text = cache.level === 'full' ? 'cache full' : `cache ${cache.percent} %`
  return (
    <Tag tone={looks[cache.level].tone} title={notices[cache.level].meaning}>
      {text}
    </Tag>
  )
}
