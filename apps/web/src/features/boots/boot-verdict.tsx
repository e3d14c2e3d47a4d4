import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { Icon } from '../../components/icon'
import { Mono } from '../../components/tag'
import { classNames } from '../../lib/class-names'
import { HelpLink } from '../help/help-link'
import { causeHelp, helpTopics } from '../help/help-links'
import type { BootDetail } from './boot-types'
import { RemedyButtons } from './remedy-buttons'

interface Verdict {
  tone: 'failed' | 'silent' | 'plain'
  sentence: string
  remedy: string
  deviceText: string | null
  /** Where the documentation says more; null: there is no more. */
  help: string | null
}

/** Why the boot did not end well, and the remedy; null for one that is in progress or ready. */
function verdictOf(boot: BootDetail): Verdict | null {
  if (boot.outcome === 'failed' && boot.cause)
    return { tone: 'failed', ...boot.cause, help: boot.failedCause ? causeHelp[boot.failedCause] : helpTopics.boots }
  const phase = boot.failedPhase ? ` during ${bootPhaseText(boot.failedPhase).title}` : ''
  if (boot.outcome === 'silent') {
    return {
      tone: 'silent',
      sentence: `The edge received nothing more from the device${phase}.`,
      remedy: boot.lastPackets
        ? 'The last packets below show which side stopped answering. Check the device’s screen, power and network.'
        : 'Check the device’s screen, power and network.',
      deviceText: null,
      help: helpTopics.consoleLines,
    }
  }
  if (boot.outcome === 'no_response') {
    return {
      tone: 'plain',
      sentence: 'A power-on was sent, and the edge received nothing from the device.',
      remedy: 'Check the device’s power and cable, and Wake-on-LAN in its firmware.',
      deviceText: null,
      help: helpTopics.firmware,
    }
  }
  if (boot.outcome === 'superseded') {
    return {
      tone: 'plain',
      sentence: 'The device restarted before this boot finished.',
      remedy: 'See its next boot.',
      deviceText: null,
      help: null,
    }
  }
  if (boot.outcome === 'local_disk') {
    return {
      tone: 'plain',
      sentence: boot.menuEntry
        ? `The boot menu entry “${boot.menuEntry}” started the device’s local disk.`
        : 'The boot menu started the device’s local disk.',
      remedy: 'Edges do not see a boot from the local disk.',
      deviceText: null,
      help: null,
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
  const { tone, sentence, remedy, deviceText, help } = verdict
  return (
    <section aria-label="Cause" className={classNames('flex gap-3 rounded-lg px-4 py-3', looks[tone])}>
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
            Details: <Mono>{deviceText}</Mono>
          </p>
        )}
        {help && (
          <p className="mt-1.5">
            <HelpLink to={help}>More about this cause</HelpLink>
          </p>
        )}
        {boot.failedCause && <RemedyButtons boot={boot} cause={boot.failedCause} />}
      </div>
    </section>
  )
}
