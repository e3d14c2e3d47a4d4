import Link from 'next/link'
import { Instant } from '../../components/instant'
import { Tag } from '../../components/tag'
import { formatBytes } from '../../lib/format-quantity'
import { AccessTag } from './access-tag'
import { BootProfiles, ClearBootProfile } from './boot-profiles'
import { devicesText } from './preview-text'
import { SiteInstant } from './site-instant'
import { VersionActions } from './version-actions'
import type { VdiskDetail, Version } from './version-types'

interface VersionCardProps {
  vdisk: VdiskDetail
  version: Version
}

/** One version in the chain: what it is, where it lies, who boots it, and what can be done with it. */
export function VersionCard({ vdisk, version }: VersionCardProps) {
  return (
    <div className="flex min-w-0 flex-1 flex-wrap items-start justify-between gap-x-6 gap-y-2 py-3 pr-4 pl-2">
      <div className="flex min-w-0 flex-col gap-1 text-sm">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-medium text-ink">Version {version.number}</span>
          <AccessTag version={version} />
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
        <Stored version={version} />
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

function Booted({ version: { running, next } }: { version: Version }) {
  if (running.count + next.count === 0) return null
  return (
    <p className="text-ink-soft">
      {running.count > 0 && `Running on ${devicesText(running)}${next.count > 0 ? '; ' : '.'}`}
      {next.count > 0 && `Next boot: ${devicesText(next)}.`}
    </p>
  )
}

/** What its edges say of it; of a file registered by its path, the path. */
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
