import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import Link from 'next/link'
import { Instant } from '../../components/instant'
import { Unknown } from '../../components/panel'
import type { Column } from '../../components/table'
import { BootBar } from './boot-bar'
import { BootDuration } from './boot-duration'
import type { BootSummary } from './boot-types'
import { OriginTags, OutcomeTag } from './outcome-tag'

/** The columns of every list of boots. @param scaleUs the length of the longest bar */
export function bootColumns(scaleUs: number): Column<BootSummary>[] {
  return [
    {
      title: 'Device',
      cell: (boot) => (
        <Link
          href={`/boots/${boot.id}`}
          className="rounded font-medium text-ink underline-offset-4 hover:underline"
        >
          {boot.deviceName ?? boot.mac}
        </Link>
      ),
    },
    {
      title: 'Outcome',
      cell: (boot) => (
        <span className="inline-flex items-center gap-2">
          <OutcomeTag outcome={boot.outcome} lastPhase={boot.lastPhase} />
          {boot.failedPhase && (
            <span className="text-ink-soft">in {bootPhaseText(boot.failedPhase).title}</span>
          )}
        </span>
      ),
    },
    { title: 'Duration', align: 'right', cell: (boot) => <BootDuration boot={boot} /> },
    {
      title: 'Phases',
      from: 'sm',
      wide: true,
      cell: (boot) => (
        <span className="block min-w-24">
          <BootBar boot={boot} scaleUs={scaleUs} />
        </span>
      ),
    },
    {
      title: 'Retries',
      from: 'lg',
      align: 'right',
      cell: (boot) => boot.retries || <Unknown label="none" />,
    },
    { title: 'Origin', from: 'md', cell: (boot) => <OriginTags {...boot} /> },
    { title: 'Started', from: 'sm', align: 'right', cell: (boot) => <Instant at={boot.startedAt} /> },
  ]
}
