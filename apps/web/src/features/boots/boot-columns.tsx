import type { ReactNode } from 'react'
import { ObjectLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { Unknown } from '../../components/page'
import type { Column } from '../../components/table'
import { WaitTag } from '../devices/wait-notice'
import { BootBar, scaleText } from './boot-bar'
import type { BootSummary } from './boot-types'
import { hardwareText } from './machine-text'
import { BootDuration, OriginTags, OutcomeTag } from './outcome-tag'

/** The columns of every list of boots. @param scaleUs the length of the longest bar */
export function bootColumns(scaleUs: number): Column<BootSummary>[] {
  return [
    {
      title: 'Device',
      cell: (boot) => (
        <>
          <BootLink boot={boot}>{boot.deviceName ?? boot.mac}</BootLink>
          <span className="block text-ink-faint text-xs sm:hidden">
            <Instant at={boot.startedAt} />
          </span>
        </>
      ),
    },
    ...columnsAfterName(scaleUs),
    {
      title: 'Started',
      sort: 'startedAt',
      from: 'sm',
      align: 'right',
      cell: (boot) => <Instant at={boot.startedAt} />,
    },
  ]
}

/** Like `bootColumns`, for the boots of one device. */
export function bootColumnsOfOneDevice(scaleUs: number): Column<BootSummary>[] {
  const started: Column<BootSummary> = {
    title: 'Started',
    sort: 'startedAt',
    cell: (boot) => (
      <BootLink boot={boot}>
        <Instant at={boot.startedAt} />
      </BootLink>
    ),
  }
  return [started, ...columnsAfterName(scaleUs)]
}

function columnsAfterName(scaleUs: number): Column<BootSummary>[] {
  return [
    {
      title: 'Outcome',
      cell: (boot) => (
        <span className="inline-flex items-center gap-2">
          <OutcomeTag outcome={boot.outcome} phase={boot.outcome ? boot.failedPhase : boot.lastPhase} />
          <WaitTag wait={boot.waitsFor} />
          {boot.menuEntry && (
            <span title="Boot menu entry" className="hidden max-w-40 truncate text-ink-soft text-xs lg:inline-block">
              {boot.menuEntry}
            </span>
          )}
        </span>
      ),
    },
    {
      title: 'Duration',
      sort: 'durationUs',
      align: 'right',
      cell: (boot) => (boot.outcome === 'no_response' ? <Unknown label="none" /> : <BootDuration boot={boot} />),
    },
    {
      title: 'Phases',
      scale: scaleText(scaleUs),
      from: 'sm',
      wide: true,
      cell: (boot) => (
        <span className="block min-w-24">
          {boot.outcome !== 'no_response' && <BootBar boot={boot} scaleUs={scaleUs} />}
        </span>
      ),
    },
    {
      title: 'Retries',
      from: 'lg',
      align: 'right',
      cell: (boot) => boot.retries || <Unknown label="none" />,
    },
    { title: 'Site', from: 'xl', cell: (boot) => boot.siteName },
    {
      title: 'Hardware',
      from: '2xl',
      cell: ({ hardware }) => {
        const text = hardwareText(hardware)
        return text === null ? (
          <Unknown label="not known" />
        ) : (
          <span className="block max-w-64 truncate text-ink-soft text-xs" title={text}>
            {text}
          </span>
        )
      },
    },
    { title: 'Edge', from: '2xl', cell: (boot) => boot.edgeName },
    { title: 'Origin', from: 'md', cell: (boot) => <OriginTags {...boot} /> },
  ]
}

function BootLink({ boot, children }: { boot: BootSummary; children: ReactNode }) {
  return <ObjectLink href={`/boots/${boot.id}`}>{children}</ObjectLink>
}
