'use client'

import { type BootPhase, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { useQuery } from '@tanstack/react-query'
import { Instant } from '../../components/instant'
import { Page, PageHeader } from '../../components/page-header'
import { Panel } from '../../components/panel'
import { LoadingState, Skeleton } from '../../components/states'
import { formatBytes } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { useNow } from '../../lib/use-now'
import { BootAgain } from '../devices/boot-again'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { BootDuration } from './boot-duration'
import { BootFacts } from './boot-facts'
import type { BootDetail } from './boot-types'
import { BootVerdict } from './boot-verdict'
import { OriginTags, OutcomeTag } from './outcome-tag'
import { PhaseTable } from './phase-table'
import { ReadSizeHistogram, readSizeRows } from './read-size-histogram'
import { Waterfall } from './waterfall'
import { absentPhases, elapsedOf } from './waterfall-layout'

const growMs = 100

export function BootPage({ bootId }: { bootId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.boot.get.queryOptions({ bootId }))
  if (query.data) return <Boot boot={query.data} />
  if (query.isPending) return <BootSkeleton />
  return <QueryError noun="boot" error={query.error} onRetry={() => query.refetch()} />
}

function Boot({ boot }: { boot: BootDetail }) {
  const name = boot.deviceName ?? boot.mac
  const readSizes = readSizeRows(boot.phases)
  return (
    <Page>
      <PageName name={`Boot of ${name}`} />
      <PageHeader
        title={`Boot of ${name}`}
        tags={
          <>
            <OutcomeTag outcome={boot.outcome} phase={boot.outcome ? boot.failedPhase : boot.lastPhase} />
            <OriginTags {...boot} />
          </>
        }
        summary={<Summary boot={boot} />}
        actions={boot.deviceId && <BootAgain deviceId={boot.deviceId} />}
      />
      <BootVerdict boot={boot} />
      <Panel title="Where the time went" aside={<HatchLegend />}>
        <LiveWaterfall boot={boot} />
        <AbsentPhases boot={boot} />
      </Panel>
      <Panel title="Phases in numbers" flush>
        <PhaseTable phases={boot.phases} running={boot.outcome === null} totalUs={boot.totalUs} />
      </Panel>
      <div className="grid items-start gap-5 lg:grid-cols-2">
        <Panel title="Facts">
          <BootFacts boot={boot} />
        </Panel>
        {readSizes.length > 0 && (
          <Panel title="Reads by size" aside="size at most, reads">
            <ReadSizeHistogram rows={readSizes} />
          </Panel>
        )}
      </div>
    </Page>
  )
}

function Summary({ boot }: { boot: BootDetail }) {
  return (
    <span className="flex flex-wrap gap-x-4 gap-y-1">
      <Instant at={boot.startedAt} full />
      <span className="font-medium text-ink">
        <BootDuration boot={boot} />
      </span>
      <span>{formatBytes(boot.bytesOut)} sent</span>
      {boot.retries > 0 && <span>{boot.retries} retries</span>}
    </span>
  )
}

function LiveWaterfall({ boot }: { boot: BootDetail }) {
  if (boot.outcome !== null)
    return <Waterfall phases={boot.phases} running={false} elapsedUs={boot.totalUs} />
  return <GrowingWaterfall boot={boot} />
}

function GrowingWaterfall({ boot }: { boot: BootDetail }) {
  return <Waterfall phases={boot.phases} running elapsedUs={elapsedOf(boot, useNow(growMs))} />
}

function HatchLegend() {
  return (
    <span className="flex items-center gap-2">
      <span
        aria-hidden="true"
        className="h-2.5 w-6 rounded-sm"
        style={{
          background:
            'repeating-linear-gradient(135deg, var(--phase-breather) 0 1.5px, transparent 1.5px 5px)',
        }}
      />
      nothing on the wire
    </span>
  )
}

function AbsentPhases({ boot }: { boot: BootDetail }) {
  const { notPartOfThisBoot, notReached } = absentPhases(boot.phases)
  const titles = (names: BootPhase[]) => names.map((name) => bootPhaseText(name).title).join(', ')
  return (
    <div className="mt-3 flex flex-wrap gap-x-6 gap-y-1 border-line border-t pt-3 text-ink-faint text-xs">
      {notPartOfThisBoot.length > 0 && <p>Not part of this boot: {titles(notPartOfThisBoot)}</p>}
      {notReached.length > 0 && (
        <p>
          {boot.outcome === null ? 'Still to come' : 'Not reached'}: {titles(notReached)}
        </p>
      )}
    </div>
  )
}

function BootSkeleton() {
  return (
    <LoadingState label="Loading the boot">
      <Page>
        <Skeleton className="h-7 w-64" />
        <Skeleton className="h-72 w-full rounded-lg" />
        <Skeleton className="h-64 w-full rounded-lg" />
      </Page>
    </LoadingState>
  )
}
