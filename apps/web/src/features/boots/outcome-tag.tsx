import { type BootOutcome, type BootPhase, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { Dot, Tag, type Tone } from '../../components/tag'

const outcomes: Record<BootOutcome, { tone: Tone; word: string; title: string }> = {
  ready: { tone: 'ready', word: 'Ready', title: 'The device reported that its service is up.' },
  failed: { tone: 'failed', word: 'Failed', title: 'The boot ended with a known cause.' },
  silent: { tone: 'silent', word: 'Silent', title: 'Nothing more was heard from the device.' },
  superseded: {
    tone: 'plain',
    word: 'Superseded',
    title: 'The device started again before the boot was over.',
  },
  local_disk: { tone: 'plain', word: 'Local disk', title: 'The boot menu sent the device to its own disk.' },
}

interface OutcomeTagProps {
  /** Null while the boot goes on. */
  outcome: BootOutcome | null
  /** Where the boot is, or where it ended without being ready. */
  phase?: BootPhase | null
}

export function OutcomeTag({ outcome, phase }: OutcomeTagProps) {
  const where = phase ? `: ${bootPhaseText(phase).title}` : ''
  if (outcome === null) {
    return (
      <Tag tone="live" title="The boot goes on.">
        <Dot tone="live" pulsing />
        Booting{where}
      </Tag>
    )
  }
  const { tone, word, title } = outcomes[outcome]
  return (
    <Tag tone={tone} title={title}>
      <Dot tone={tone} />
      {word}
      {where}
    </Tag>
  )
}

/** Where a boot came from, if not from a real machine. */
export function OriginTags({ simulated, generated }: { simulated: boolean; generated: boolean }) {
  if (generated) return <Tag title="Made by the demo’s history generator; it never happened.">demo history</Tag>
  if (simulated) return <Tag title="A real boot of a simulated device, over real sockets.">simulated</Tag>
  return null
}
