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
import { cacheClasses, fullMeaning, writeCacheText } from './write-cache-words'

const mebibyteBytes = 1024 ** 2
/** As the API has it: below, a device would stop before it has booted. */
const limitMibMin = 16

/** Where the writes of this vDisk's devices go, and how much they may be. */
export function WriteCachePanel({ vdisk }: { vdisk: VdiskDetail }) {
  const [open, setOpen] = useState(false)
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  return (
    <Panel
      title="Write cache"
      aside={
        mayChange && (
          <Button className="h-7!" aria-label="Change the write cache" onClick={() => setOpen(true)}>
            Change
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
  const [limit, setLimit] = useState(
    seen.writeCache.limitBytes === null ? '' : String(seen.writeCache.limitBytes / mebibyteBytes),
  )
  const update = useMutation(trpc.vdisk.updateWriteCache.mutationOptions({ onSuccess: useSaved(onClose) }))
  const limitBytes = limit.trim() === '' ? null : Math.round(Number(limit) * mebibyteBytes)
  const isLimit =
    limitBytes === null || (Number.isSafeInteger(limitBytes) && limitBytes >= limitMibMin * mebibyteBytes)
  const meaningOf = (options: { value: string; meaning: string }[], value: string) =>
    options.find((option) => option.value === value)?.meaning
  return (
    <ObjectDialog
      title={`Write cache of ${seen.name}`}
      action="Save"
      saving={update}
      disabled={!isLimit}
      onSave={(revision = seen.revision) =>
        update.mutate({ vdiskId: seen.id, revision, class: chosen, limitBytes, full: seen.writeCache.full })
      }
      onClose={onClose}
    >
      <SelectField
        label="Writes go to"
        value={chosen}
        options={cacheClasses.filter(({ value, isServed }) => isServed || value === chosen)}
        onChange={(value) => setChosen(cacheClasses.find((one) => one.value === value)?.value ?? chosen)}
        hint={meaningOf(cacheClasses, chosen)}
      />
      <TextField
        label="Limit of each device in MiB"
        value={limit}
        onChange={setLimit}
        hint={`At least ${limitMibMin}; empty: as much as there is room. ${fullMeaning}`}
      />
      <Notice tone="live">It holds from each device’s next boot on; those that run keep theirs.</Notice>
    </ObjectDialog>
  )
}
