'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button, ObjectLink, TextLink } from '../../components/button'
import { Notice, SelectField, TextField } from '../../components/field'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { countOf, formatCount } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { CopiesPanel } from '../placement/copies-panel'
import { PromotionPanel } from '../placement/promotion-panel'
import { RetentionPanel } from '../retention/retention-panel'
import { useMay } from '../session/use-may'
import { ObjectQuery, PageName } from '../shell/object-page'
import { JobsPanel } from '../store-jobs/jobs-panel'
import { UploadsPanel } from '../uploads/uploads-panel'
import type { Upload } from '../uploads/use-send-upload'
import { ImportDialog } from './import-dialog'
import { VdiskActions } from './vdisk-actions'
import { VersionChain } from './version-chain'
import type { VdiskDetail } from './version-types'
import {
  cacheClasses,
  fullChoices,
  fullInRam,
  limitHint,
  limitMib,
  readLimit,
  writeCacheText,
} from './write-cache-text'

type Collection = VdiskDetail['collections'][number]

const collectionColumns: Column<Collection>[] = [
  {
    title: 'Collection',
    cell: (collection) => <ObjectLink href={`/collections/${collection.id}`}>{collection.name}</ObjectLink>,
  },
  { title: 'Site', wide: true, cell: (collection) => collection.siteName },
  { title: 'Devices', align: 'right', cell: (collection) => formatCount(collection.deviceCount) },
]

export function VdiskPage({ vdiskId }: { vdiskId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.vdisk.get.queryOptions({ vdiskId }, { refetchInterval: heartbeatRefreshMs }))
  return (
    <ObjectQuery noun="vDisk" query={query}>
      {(vdisk) => <Vdisk vdisk={vdisk} />}
    </ObjectQuery>
  )
}

function Vdisk({ vdisk }: { vdisk: VdiskDetail }) {
  return (
    <Page>
      <PageName name={vdisk.name} />
      <PageHeader
        title={vdisk.name}
        summary={
          <>
            {countOf(vdisk.versions.length, 'version')}, farm{' '}
            <TextLink href={`/farms/${vdisk.farmId}`}>{vdisk.farmName}</TextLink>
            {vdisk.store && `, store ${vdisk.store.name}`}
            {vdisk.note && `, ${vdisk.note}`}
          </>
        }
        actions={<VdiskActions vdisk={vdisk} />}
      />
      <PromotionPanel vdisk={vdisk} />
      <VdiskUploads vdisk={vdisk} />
      <Panel title="Versions" aside="Version history" flush>
        {vdisk.versions.length === 0 ? (
          <EmptyState title="No versions yet." text="Devices cannot boot this vDisk until it has a version." />
        ) : (
          <VersionChain vdisk={vdisk} />
        )}
      </Panel>
      <CopiesPanel vdisk={vdisk} />
      <RetentionPanel vdisk={vdisk} />
      <Panel title="Used by" aside={shownCollections(vdisk)} flush>
        {vdisk.collections.length === 0 ? (
          <EmptyState title="Not used by any collection." text="A collection selects the vDisk its devices boot." />
        ) : (
          <Table
            label="Collections"
            columns={collectionColumns}
            rows={vdisk.collections}
            rowKey={(collection) => collection.id}
          />
        )}
      </Panel>
      <JobsPanel of={{ vdiskId: vdisk.id }} />
      <WriteCachePanel vdisk={vdisk} />
      <VdiskMenus menus={vdisk.menus} />
    </Page>
  )
}

function VdiskUploads({ vdisk }: { vdisk: VdiskDetail }) {
  const [importing, setImporting] = useState<Upload | null>(null)
  return (
    <>
      <UploadsPanel vdisk={vdisk} onImport={setImporting} />
      {importing && <ImportDialog vdisk={vdisk} upload={importing} onClose={() => setImporting(null)} />}
    </>
  )
}

/** Nothing where all of them are shown. */
function shownCollections({ collections, collectionCount }: VdiskDetail): string | undefined {
  if (collectionCount <= collections.length) return undefined
  return `First ${formatCount(collections.length)} of ${countOf(collectionCount, 'collection')}`
}

/** Which boot menus start it, and so why it cannot be removed; nothing where none does. */
function VdiskMenus({ menus }: { menus: VdiskDetail['menus'] }) {
  if (menus.length === 0) return null
  return (
    <Panel title="Boot menus">
      <ul className="flex flex-col gap-1.5 text-sm">
        {menus.map(({ id, name, versionNumbers }) => (
          <li key={id}>
            <ObjectLink href={`/boot-menus/${id}`}>{name}</ObjectLink>
            <span className="text-ink-soft">: {versionNumbers.map(versionText).join(', ')}</span>
          </li>
        ))}
      </ul>
      <p className="mt-3 text-ink-soft text-xs">
        A version in a boot menu cannot be deleted. Remove its menu entry first.
      </p>
    </Panel>
  )
}

function versionText(number: number | null): string {
  return number === null ? 'latest version' : `version ${number}`
}

/** Where the writes of this vDisk's devices go, and their limit. */
function WriteCachePanel({ vdisk }: { vdisk: VdiskDetail }) {
  const [open, setOpen] = useState(false)
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  return (
    <Panel
      title="Write cache"
      aside={
        mayChange && (
          <Button small aria-label="Edit write cache" onClick={() => setOpen(true)}>
            Edit
          </Button>
        )
      }
    >
      <ul className="flex flex-col gap-1.5 text-ink-soft text-sm">
        {writeCacheText(vdisk.writeCache).map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      {open && <WriteCacheDialog vdisk={vdisk} onClose={() => setOpen(false)} />}
    </Panel>
  )
}

function WriteCacheDialog({ vdisk, onClose }: { vdisk: VdiskDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk)
  const [chosen, setChosen] = useState(seen.writeCache.class)
  const [full, setFull] = useState(seen.writeCache.full)
  const [limit, setLimit] = useState(limitMib(seen.writeCache.limitBytes))
  const update = useMutation(trpc.vdisk.updateWriteCache.mutationOptions({ onSuccess: useSaved(onClose) }))
  const isInRam = chosen === 'device_ram'
  // There its system alone limits what it writes; a limit that was set stays for another choice.
  const read = isInRam ? { limitBytes: seen.writeCache.limitBytes } : readLimit(limit)
  const meaningOf = (options: { value: string; meaning: string }[], value: string) =>
    options.find((option) => option.value === value)?.meaning
  return (
    <ObjectDialog
      title={`Write cache of ${seen.name}`}
      action="Save"
      saving={update}
      disabled={'problem' in read}
      onSave={(revision = seen.revision) =>
        'limitBytes' in read &&
        update.mutate({ vdiskId: seen.id, revision, class: chosen, limitBytes: read.limitBytes, full })
      }
      onClose={onClose}
    >
      <SelectField
        label="Write cache location"
        value={chosen}
        options={cacheClasses}
        onChange={(value) => setChosen(cacheClasses.find((one) => one.value === value)?.value ?? chosen)}
        hint={meaningOf(cacheClasses, chosen)}
      />
      {isInRam ? (
        <p className="text-ink-soft text-sm">{fullInRam}</p>
      ) : (
        <>
          <TextField
            label="Limit per device in MiB"
            value={limit}
            onChange={setLimit}
            hint={'problem' in read ? <Problem text={read.problem} /> : limitHint}
          />
          <SelectField
            label="When the write cache is full"
            value={full}
            options={fullChoices}
            onChange={(value) => setFull(fullChoices.find((one) => one.value === value)?.value ?? full)}
            hint={meaningOf(fullChoices, full)}
          />
        </>
      )}
      <Notice tone="live">Applies from each device’s next boot. Running devices keep their current setting.</Notice>
    </ObjectDialog>
  )
}

/** Replaces the field's hint, and is announced when it appears. */
function Problem({ text }: { text: string }) {
  return (
    <span role="status" className="break-words text-failed">
      {text}
    </span>
  )
}
