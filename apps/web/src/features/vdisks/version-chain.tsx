'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import type { ReactNode } from 'react'
import { TextLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { Tag, type Tone } from '../../components/tag'
import { formatBytes } from '../../lib/format-quantity'
import { formatInstantInFull, formatUtc } from '../../lib/format-time'
import { useTRPC } from '../../lib/trpc'
import { compareHref } from '../explore/compare-inputs'
import { VersionFindings } from '../findings/version-findings'
import { PredictStorm } from '../prediction/storm-prediction'
import { BootProfiles, ClearBootProfile } from './boot-profiles'
import { type ChainRow, layOutChain } from './chain-layout'
import { devicesText } from './preview-text'
import { VersionActions } from './version-actions'
import type { VdiskDetail, Version } from './version-types'

const laneWidthPx = 16
/** The distance of a row's dot from the row's upper edge: the middle of its first line. */
const dotTopPx = 24

const lines = 'absolute bg-line-strong'

/** The versions of a vDisk, newest first, with lines down to what each was made from. */
export function VersionChain({ vdisk }: { vdisk: VdiskDetail }) {
  const rows = layOutChain(vdisk.versions)
  const laneCount = Math.max(...rows.map(({ lane }) => lane)) + 1
  return (
    <ol aria-label="Versions" className="flex flex-col">
      {vdisk.versions.map((version, index) => {
        const row = rows[index]
        return (
          <li key={version.id} className="flex border-line border-t first:border-t-0">
            {row && (
              <Rail row={row} width={laneCount * laneWidthPx}>
                <span
                  className={
                    version.access === null || version.sealedAt === null
                      ? 'block size-2.5 rounded-full border-2 border-ink-faint bg-surface'
                      : 'block size-2.5 rounded-full bg-ink'
                  }
                />
              </Rail>
            )}
            <VersionCard vdisk={vdisk} version={version} />
          </li>
        )
      })}
    </ol>
  )
}

/** Decoration: each version names its parent in words. */
function Rail({ row, width, children }: { row: ChainRow; width: number; children: ReactNode }) {
  const middle = (lane: number) => lane * laneWidthPx + laneWidthPx / 2
  const x = middle(row.lane)
  return (
    <div aria-hidden="true" className="relative ml-2.5 shrink-0 sm:ml-4" style={{ width }}>
      {row.passing.map((lane) => (
        <span key={lane} className={`${lines} top-0 bottom-0 w-px`} style={{ left: middle(lane) }} />
      ))}
      {row.fromAbove.map((lane) => (
        <span key={lane}>
          <span className={`${lines} top-0 w-px`} style={{ left: middle(lane), height: dotTopPx }} />
          <span
            className={`${lines} h-px`}
            style={{ left: Math.min(x, middle(lane)), width: Math.abs(middle(lane) - x), top: dotTopPx }}
          />
        </span>
      ))}
      {row.goesOn && <span className={`${lines} bottom-0 w-px`} style={{ left: x, top: dotTopPx }} />}
      <span className="absolute" style={{ left: x - 5, top: dotTopPx - 5 }}>
        {children}
      </span>
    </div>
  )
}

interface VersionCardProps {
  vdisk: VdiskDetail
  version: Version
}

/** One version in the chain: its facts, its places, the devices that boot it, and its actions. */
function VersionCard({ vdisk, version }: VersionCardProps) {
  return (
    <div className="flex min-w-0 flex-1 flex-wrap items-start justify-between gap-x-6 gap-y-2 py-3 pr-4 pl-2">
      <div className="flex min-w-0 flex-col gap-1 text-sm">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-medium text-ink">Version {version.number}</span>
          <AccessTag version={version} />
          {version.isProtected && <Tag>protected</Tag>}
          {version.labels.map((label) => (
            <Tag key={label}>{label}</Tag>
          ))}
          <span className="text-ink-faint text-xs">
            {madeFrom(vdisk, version)}, <Instant at={version.createdAt} />
          </span>
        </div>
        {version.note && <p className="break-words text-ink-soft">{version.note}</p>}
        <Writer vdisk={vdisk} version={version} />
        {version.access === 'pending' && version.releasedAt && (
          <p className="text-ink-soft">
            Becomes the default at <SiteInstant at={version.releasedAt} farmId={vdisk.farmId} />.
          </p>
        )}
        <Booted version={version} />
        <VersionFindings vdiskId={vdisk.id} versionId={version.id} />
        <CompareLink vdisk={vdisk} version={version} />
        <Stored version={version} />
        <PredictStorm vdisk={vdisk} version={version} />
        <ClearBootProfile vdisk={vdisk} version={version} />
      </div>
      <VersionActions vdisk={vdisk} version={version} />
    </div>
  )
}

function madeFrom({ versions }: VdiskDetail, { parentVersionId, manifest, sealedAt }: Version): string {
  const parent = versions.find(({ id }) => id === parentVersionId)
  if (parent) return `based on version ${parent.number}`
  if (parentVersionId) return 'based on a deleted version'
  return manifest || sealedAt === null ? 'base image' : 'registered file'
}

function Writer({ vdisk: { maintenance }, version }: VersionCardProps) {
  if (version.access !== 'maintenance' || maintenance?.versionId !== version.id) return null
  const { device } = maintenance
  if (!device)
    return <p className="text-failed">The device that wrote this version was deleted. Seal or discard the version.</p>
  return (
    <p className="text-ink-soft">
      Written by{' '}
      <Link prefetch={false} href={`/devices/${device.id}`} className="text-ink underline underline-offset-4">
        {device.name}
      </Link>
      {version.isSealing ? '.' : '. Boot it, make your changes, shut it down, then seal the version.'}
    </p>
  )
}

/** Its boots against those of the version that production devices boot: worth a look before it is promoted. */
function CompareLink({ vdisk: { id, versions }, version }: VersionCardProps) {
  const production =
    versions.find(({ access }) => access === 'override') ?? versions.find(({ access }) => access === 'default')
  if (!production || production.id === version.id || version.sealedAt === null) return null
  const period = '30d'
  const sets = {
    set: { vdisk: id, version: version.id, period },
    base: { vdisk: id, version: production.id, period },
  } as const
  return (
    <p>
      <TextLink href={compareHref(sets)}>Compare its boots with version {production.number}</TextLink>
    </p>
  )
}

function Booted({ version: { running, next } }: { version: Version }) {
  if (running.count + next.count === 0) return null
  return (
    <p className="text-ink-soft">
      {running.count > 0 && `Running on ${devicesText(running)}${next.count > 0 ? '; ' : '.'}`}
      {next.count > 0 && `Next boot: ${devicesText(next)}.`}
    </p>
  )
}

/** The reports of its edges; for a file registered by its path, the path. */
function Stored({ version }: { version: Version }) {
  const { atEdges, manifest, diskPath, sizeBytes, sealedAt } = version
  return (
    <div className="flex flex-col gap-1 text-ink-faint text-xs">
      <p>
        {sizeBytes > 0 && formatBytes(sizeBytes)}
        {manifest === null && sealedAt !== null && (
          <>
            , file <span className="break-all font-mono">{diskPath}</span>
          </>
        )}
        {manifest !== null && atEdges.length === 0 && ', not reported by any edge'}
      </p>
      {atEdges.map((at) => (
        <div key={at.edgeId} className="flex flex-col gap-0.5">
          <p className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
            <Link
              prefetch={false}
              href={`/edges/${at.edgeId}`}
              className="text-ink-soft underline decoration-line-strong underline-offset-4 hover:decoration-ink"
            >
              {at.edgeName}, {at.siteName}
            </Link>
            {at.state !== 'present' && <Tag tone={at.state === 'importing' ? 'live' : 'failed'}>{at.state}</Tag>}
            <span>
              {at.isLayer
                ? `${formatBytes(at.ownBytes)} written`
                : `${formatBytes(at.ownBytes)} unique, ${formatBytes(at.sharedBytes)} shared. Deleting frees ${formatBytes(at.reclaimableBytes)}.`}
            </span>
          </p>
          <BootProfiles profiles={at.bootProfiles} />
        </div>
      ))}
    </div>
  )
}

/** The maximum that the API returns at once. */
const sitesMax = 100
const zonesShownMax = 3

/** An instant in the viewer's zone, and beside it in those of the farm's sites. */
function SiteInstant({ at, farmId }: { at: string; farmId: string }) {
  const sites = useQuery(useTRPC().site.list.queryOptions({ farmId, limit: sitesMax }))
  const instant = new Date(at)
  const here = formatInstantInFull(instant)
  const zones = [...new Set((sites.data?.items ?? []).map(({ timeZone }) => timeZone))]
  const there = [...new Set(zones.map((zone) => formatInstantInFull(instant, zone)))].filter((text) => text !== here)
  return (
    <span>
      <time dateTime={at} title={formatUtc(instant)}>
        {here}
      </time>
      {there.length > 0 && (
        <span className="text-ink-faint"> ({there.slice(0, zonesShownMax).join('; ')} site time)</span>
      )}
    </span>
  )
}

type Access = NonNullable<Version['access']>

const looks: Record<Access, { tone: Tone; meaning: string }> = {
  maintenance: { tone: 'silent', meaning: 'One device writes this version. No other device boots it.' },
  test: {
    tone: 'live',
    meaning: 'Sealed. Test devices boot the latest test version that is newer than the default.',
  },
  pending: { tone: 'live', meaning: 'Becomes the default at its release time. Test devices boot it until then.' },
  default: { tone: 'ready', meaning: 'Production devices boot this version unless an override is set.' },
  override: { tone: 'failed', meaning: 'Production devices boot this version until the override is cleared.' },
}

/** A version's state for people; one that was released before has none. */
function AccessTag({ version }: { version: Version }) {
  if (version.isSealing)
    return (
      <Tag tone="silent" title="The writes are being turned into a version.">
        sealing
      </Tag>
    )
  if (version.access)
    return (
      <Tag tone={looks[version.access].tone} title={looks[version.access].meaning}>
        {version.access}
      </Tag>
    )
  return version.sealedAt === null ? (
    <Tag tone="silent" title="An edge’s store is creating this version. No device boots it yet.">
      being created
    </Tag>
  ) : null
}
