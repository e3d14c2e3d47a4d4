'use client'

import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useId, useMemo, useState } from 'react'
import { Button, LinkButton, TextLink } from '../../components/button'
import { TimeChart } from '../../components/charts/time-chart'
import type { Zoom } from '../../components/charts/use-time-plot'
import { Instant } from '../../components/instant'
import { EmptyState, type Fact, Facts, Page, PageHeader, Panel } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { formatDuration } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { actionText, objectText } from '../audit/audit-text'
import { HistoryPanel } from '../audit/history-panel'
import { useMay } from '../session/use-may'
import { ObjectQuery, PageName } from '../shell/object-page'
import { FindingActions } from './finding-actions'
import { findingChart } from './finding-chart'
import { FindingTag } from './finding-tag'
import { bootsHref, type FindingDetail, factorTexts, growthText, partTexts, smallestText } from './finding-text'

export function FindingPage({ findingId }: { findingId: string }) {
  const query = useQuery(useTRPC().finding.get.queryOptions({ findingId }))
  return (
    <ObjectQuery noun="finding" query={query}>
      {(finding) => <Finding finding={finding} />}
    </ObjectQuery>
  )
}

function Finding({ finding }: { finding: FindingDetail }) {
  const mayChange = useMay('finding.change', { siteId: finding.site.id })
  const title = `${finding.kind === 'slower' ? 'Slower' : 'Failing'} since ${finding.valueName}`
  return (
    <Page>
      <PageName name={title} />
      <PageHeader
        title={title}
        tags={<FindingTag state={finding.state} />}
        summary={finding.sentence}
        actions={mayChange && <FindingActions finding={finding} />}
      />
      <div className="grid items-start gap-5 lg:grid-cols-[1fr_360px]">
        <Boots finding={finding} />
        <Details finding={finding} />
      </div>
      <Phases finding={finding} />
      <HistoryPanel objectId={finding.id} />
    </Page>
  )
}

function Boots({ finding }: { finding: FindingDetail }) {
  const syncKey = useId()
  const [zoom, setZoom] = useState<Zoom | null>(null)
  const chart = useMemo(() => findingChart(finding, zoom), [finding, zoom])
  const { evidence } = finding
  const { before, after, failedBefore, failedAfter } = evidence
  return (
    <Panel
      title="Boots"
      aside={
        <>
          {zoom && (
            <Button small look="bare" onClick={() => setZoom(null)}>
              Reset zoom
            </Button>
          )}
          <LinkButton href={bootsHref(finding, 'before', evidence)}>View boots before</LinkButton>
          <LinkButton href={bootsHref(finding, 'since', evidence)}>View boots since</LinkButton>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="text-ink-soft text-sm">
          {before.length} boots before, {failedBefore} of them failed; {after.length} since, {failedAfter} of them
          failed.
        </p>
        {before.length + after.length > failedBefore + failedAfter ? (
          <TimeChart chart={chart} syncKey={syncKey} onZoom={setZoom} />
        ) : (
          <EmptyState title="No times." text="None of these boots became ready." />
        )}
      </div>
    </Panel>
  )
}

function Details({ finding }: { finding: FindingDetail }) {
  const { evidence, stateByName, stateAt, closedAt, auditEntryId } = finding
  const smallest = smallestText(evidence.smallestShift)
  const facts: Fact[] = [
    { label: factorTexts[finding.factor], value: <Value finding={finding} /> },
    { label: 'Since', value: <Instant at={finding.since} full /> },
    { label: 'Found', value: <Instant at={finding.openedAt} full /> },
    ...(closedAt ? [{ label: 'As before since', value: <Instant at={closedAt} full /> }] : []),
    { label: 'vDisk', value: <TextLink href={`/vdisks/${finding.vdiskId}`}>{finding.vdiskName}</TextLink> },
    { label: 'Site', value: <TextLink href={`/sites/${finding.site.id}`}>{finding.site.name}</TextLink> },
    { label: 'Hardware', value: finding.hardware },
    { label: 'Boots at once', value: loadTexts[finding.load] ?? finding.load },
    ...(auditEntryId ? [{ label: 'Change', value: <Change auditEntryId={auditEntryId} /> }] : []),
    ...(evidence.alsoChanged.length > 0
      ? [{ label: 'Also changed', value: evidence.alsoChanged.map(({ name }) => name).join(', ') }]
      : []),
    ...(stateByName && stateAt
      ? [
          {
            label: 'Status set',
            value: (
              <>
                {stateByName}, <Instant at={stateAt} full />
              </>
            ),
          },
        ]
      : []),
  ]
  return (
    <Panel title="Details">
      <Facts facts={facts} />
      {smallest && <p className="mt-4 text-ink-soft text-xs">{smallest}</p>}
    </Panel>
  )
}

const loadTexts: Record<string, string> = { few: 'up to 4', several: '5 to 29', storm: '30 or more' }

function Value({ finding: { factor, valueName, vdiskId } }: { finding: FindingDetail }) {
  return factor === 'version' ? <TextLink href={`/vdisks/${vdiskId}`}>{valueName}</TextLink> : valueName
}

/** The change of the audit log; only that there is one, for whoever may not read the log. */
function Change({ auditEntryId }: { auditEntryId: string }) {
  const mayRead = useMay('audit.read')
  const { data: entry } = useQuery(
    useTRPC().audit.get.queryOptions({ entryId: auditEntryId }, { enabled: mayRead, retry: false }),
  )
  if (!entry) return 'in the audit log'
  return (
    <>
      <Link
        href={entry.objectId ? `/audit?object=${entry.objectId}` : '/audit'}
        className="underline decoration-line-strong underline-offset-2 hover:decoration-ink"
      >
        {actionText(entry.action)}: {objectText(entry)}
      </Link>
      , {entry.actorName}, <Instant at={entry.at} full />
    </>
  )
}

interface Row {
  key: string
  title: string
  isPart: boolean
  beforeUs: number
  afterUs: number
}

const columns: Column<Row>[] = [
  {
    title: 'Phase',
    wide: true,
    cell: ({ title, isPart }) => (
      <span className={isPart ? 'pl-4 text-ink-soft' : 'font-medium text-ink'}>{title}</span>
    ),
  },
  { title: 'Before', align: 'right', cell: ({ beforeUs }) => formatDuration(beforeUs) },
  { title: 'Since', align: 'right', cell: ({ afterUs }) => formatDuration(afterUs) },
  { title: 'Change', align: 'right', cell: (row) => growthText(row) },
]

function Phases({ finding: { evidence } }: { finding: FindingDetail }) {
  const { phases, total } = evidence
  if (phases.length === 0) return null
  const rows = [
    ...phases.flatMap(({ name, parts, ...change }): Row[] => [
      { key: name, title: bootPhaseText(name).title, isPart: false, ...change },
      ...parts.map(({ name: part, ...of }) => ({
        key: `${name} ${part}`,
        title: partTexts[part],
        isPart: true,
        ...of,
      })),
    ]),
    ...(total ? [{ key: 'total', title: 'Until ready', isPart: false, ...total }] : []),
  ]
  return (
    <Panel title="Phases" flush>
      <Table label="Phases before and since" columns={columns} rows={rows} rowKey={({ key }) => key} />
      <p className="px-4 py-3 text-ink-soft text-xs">
        Medians of the boots that became ready; medians of phases do not add up exactly. The lines below a phase add up
        the times of its reads. Reads overlap, so their sum may be longer than the phase.
      </p>
    </Panel>
  )
}
