'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Notice, SelectField, TextField } from '../../components/field'
import { Panel } from '../../components/panel'
import { useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
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

/** Where the writes of this vDisk's devices go, and how much they may be. */
export function WriteCachePanel({ vdisk }: { vdisk: VdiskDetail }) {
  const [open, setOpen] = useState(false)
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  return (
    <Panel
      title="Write cache"
      aside={
        mayChange && (
          <Button className="h-7!" aria-label="Edit write cache" onClick={() => setOpen(true)}>
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

/** Stands where the field's hint does, and is said as it comes. */
function Problem({ text }: { text: string }) {
  return (
    <span role="status" className="break-words text-failed">
      {text}
    </span>
  )
}
