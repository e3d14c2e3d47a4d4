import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { Icon } from '../../components/icon'
import { classNames } from '../../lib/class-names'
import type { BootDetail } from './boot-types'

interface Verdict {
  tone: 'failed' | 'silent' | 'plain'
  sentence: string
  remedy: string
  deviceText: string | null
}

/** Why the boot did not end well, and what to do; null for one that goes on or is ready. */
function verdictOf(boot: BootDetail): Verdict | null {
  if (boot.outcome === 'failed' && boot.cause) return { tone: 'failed', ...boot.cause }
  const phase = boot.failedPhase ? ` in phase ${bootPhaseText(boot.failedPhase).title}` : ''
  if (boot.outcome === 'silent') {
    return {
      tone: 'silent',
      sentence: `The edge heard nothing more from the device${phase}.`,
      remedy: boot.lastPackets
        ? 'The last packets below say who was silent. See what the device’s screen shows, and whether it lost power or network.'
        : 'See what the device’s screen shows, and whether it lost power or network.',
      deviceText: null,
    }
  }
  if (boot.outcome === 'superseded') {
    return {
      tone: 'plain',
      sentence: 'The device started again before this boot was over.',
      remedy: 'Its next boot shows how it went on.',
      deviceText: null,
    }
  }
  if (boot.outcome === 'local_disk') {
    return {
      tone: 'plain',
      sentence: boot.menuEntry
        ? `The boot menu sent the device to its own disk: “${boot.menuEntry}” was taken.`
        : 'The boot menu sent the device to its own disk.',
      remedy: 'What happens from there on no edge sees.',
      deviceText: null,
    }
  }
  return null
}

const looks = {
  failed: 'bg-failed-soft text-failed',
  silent: 'bg-silent-soft text-silent',
  plain: 'bg-hover text-ink-soft',
} as const

export function BootVerdict({ boot }: { boot: BootDetail }) {
  const verdict = verdictOf(boot)
  if (verdict === null) return null
  const { tone, sentence, remedy, deviceText } = verdict
  return (
    <section aria-label="Why" className={classNames('flex gap-3 rounded-lg px-4 py-3', looks[tone])}>
      <span className="pt-0.5">
        <Icon name="alert" />
      </span>
      <div className="min-w-0 text-sm">
        <p className="font-medium">
          {tone === 'failed' && boot.failedPhase && `${bootPhaseText(boot.failedPhase).title}: `}
          {sentence}
        </p>
        <p className="mt-0.5 text-ink-soft">{remedy}</p>
        {deviceText && (
          <p className="mt-1.5 break-words text-ink-soft">
            In detail: <span className="font-mono text-xs">{deviceText}</span>
          </p>
        )}
      </div>
    </section>
  )
}
