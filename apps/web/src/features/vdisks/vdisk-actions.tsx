'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Notice, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { tagsOfText } from '../../lib/pair-lines'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { DeleteButton, ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { ImportDialog } from './import-dialog'
import type { VdiskDetail } from './version-types'

export function NewVdisk() {
  const [open, setOpen] = useState(false)
  if (!useMay('vdisk.change')) return null
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        New vDisk
      </Button>
      {open && <NewVdiskDialog onClose={() => setOpen(false)} />}
    </>
  )
}

export function VdiskActions({ vdisk }: { vdisk: VdiskDetail }) {
  const [open, setOpen] = useState<'edit' | 'import' | 'version' | null>(null)
  if (!useMay('vdisk.change', { farmId: vdisk.farmId })) return null
  return (
    <>
      <Button look="primary" onClick={() => setOpen('import')}>
        Import image
      </Button>
      <Button onClick={() => setOpen('version')}>Register files</Button>
      <Button onClick={() => setOpen('edit')}>Edit</Button>
      <DeleteButton target={{ kind: 'vdisk', id: vdisk.id }} name={vdisk.name} leaveTo="/vdisks">
        <p>This also deletes its versions. Files in the edges’ stores remain.</p>
      </DeleteButton>
      {open === 'edit' && <EditVdiskDialog vdisk={vdisk} onClose={() => setOpen(null)} />}
      {open === 'import' && <ImportDialog vdisk={vdisk} upload={null} onClose={() => setOpen(null)} />}
      {open === 'version' && <RegisterVersionDialog vdisk={vdisk} onClose={() => setOpen(null)} />}
    </>
  )
}

const noteMax = 500

function NewVdiskDialog({ onClose }: { onClose: () => void }) {
  const trpc = useTRPC()
  const farms = usePicker('farm', {})
  const [chosenId, setChosenId] = useState('')
  const [name, setName] = useState('')
  const [note, setNote] = useState('')
  const [storeId, setStoreId] = useState('')
  const create = useMutation(trpc.vdisk.create.mutationOptions({ onSuccess: useSaved(onClose) }))
  const farm = farms.itemOf(chosenId) ?? farms.items[0]
  return (
    <ObjectDialog
      title="New vDisk"
      action="Create vDisk"
      saving={create}
      disabled={!farm || name.trim() === ''}
      onSave={() => farm && create.mutate({ farmId: farm.id, name, note, storeId: storeId || null })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <ObjectPicker
        label="Farm"
        picker={farms}
        value={farm?.id ?? ''}
        onChange={(farmId) => {
          setChosenId(farmId)
          setStoreId('')
        }}
      />
      {farm && <StoreField farmId={farm.id} value={storeId} onChange={setStoreId} />}
      <TextField label="Note" value={note} onChange={setNote} maxLength={noteMax} />
    </ObjectDialog>
  )
}

function EditVdiskDialog({ vdisk, onClose }: { vdisk: VdiskDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk)
  const [name, setName] = useState(seen.name)
  const [note, setNote] = useState(seen.note)
  const [storeId, setStoreId] = useState(seen.store?.id ?? '')
  const update = useMutation(trpc.vdisk.update.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Edit ${seen.name}`}
      action="Save"
      saving={update}
      disabled={name.trim() === ''}
      onSave={(revision = seen.revision) =>
        update.mutate({ vdiskId: seen.id, revision, name, note, storeId: storeId || null })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <StoreField farmId={seen.farmId} chosen={seen.store} value={storeId} onChange={setStoreId} />
      <TextField label="Note" value={note} onChange={setNote} maxLength={noteMax} />
    </ObjectDialog>
  )
}

interface StoreFieldProps {
  farmId: string
  /** The vDisk's store until now. */
  chosen?: VdiskDetail['store']
  value: string
  onChange: (value: string) => void
}

function StoreField({ farmId, chosen, value, onChange }: StoreFieldProps) {
  const stores = usePicker('store', { farmId })
  return (
    <ObjectPicker
      label="Store"
      picker={stores}
      value={value}
      first={[{ value: '', label: 'none' }]}
      chosen={chosen && { value: chosen.id, label: chosen.name }}
      onChange={onChange}
    />
  )
}

type Version = VdiskDetail['versions'][number]

const pathMax = 255
const sectorBytes = 512

/** Says which files in the edges' stores are the next version. */
function RegisterVersionDialog({ vdisk, onClose }: { vdisk: VdiskDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const newest = vdisk.versions[0]
  const [diskPath, setDiskPath] = useState('')
  const [size, setSize] = useState('')
  const [kernelPath, setKernelPath] = useState('')
  const [initrdPath, setInitrdPath] = useState('')
  const [commandLine, setCommandLine] = useState(newest?.commandLine ?? '')
  const register = useMutation(trpc.vdisk.registerVersion.mutationOptions({ onSuccess: useSaved(onClose) }))
  const sizeBytes = Number(size)
  const isSize = Number.isSafeInteger(sizeBytes) && sizeBytes > 0 && sizeBytes % sectorBytes === 0
  return (
    <ObjectDialog
      title={`New version of ${vdisk.name}`}
      action="Register version"
      saving={register}
      disabled={diskPath.trim() === '' || !isSize}
      onSave={() =>
        register.mutate({
          vdiskId: vdisk.id,
          diskPath,
          sizeBytes,
          commandLine,
          kernelPath: kernelPath.trim() || null,
          initrdPath: initrdPath.trim() || null,
        })
      }
      onClose={onClose}
    >
      <Notice tone="silent">
        The files must already exist on every edge that serves this vDisk. Devices use this version from their next
        boot.
      </Notice>
      <TextField
        label="Disk"
        value={diskPath}
        onChange={setDiskPath}
        mono
        maxLength={pathMax}
        placeholder="linux/2/disk.raw"
        hint="Path in the store directory. This also applies to the files below."
      />
      <TextField label="Size in bytes" value={size} onChange={setSize} mono hint="A multiple of 512." />
      <TextField label="Kernel" value={kernelPath} onChange={setKernelPath} mono maxLength={pathMax} />
      <TextField label="Initramfs" value={initrdPath} onChange={setInitrdPath} mono maxLength={pathMax} />
      <TextField label="Kernel command line" value={commandLine} onChange={setCommandLine} mono maxLength={1024} />
    </ObjectDialog>
  )
}

/** Note and labels: what a version holds never changes. */
export function EditVersionDialog({ version, onClose }: { version: Version; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(version)
  const [note, setNote] = useState(seen.note)
  const [labels, setLabels] = useState(seen.labels.join(', '))
  const [isProtected, setProtected] = useState(seen.isProtected)
  const update = useMutation(trpc.vdisk.updateVersion.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Version ${seen.number}`}
      action="Save"
      saving={update}
      onSave={(revision = seen.revision) =>
        update.mutate({ versionId: seen.id, revision, note, labels: tagsOfText(labels), isProtected })
      }
      onClose={onClose}
    >
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <TextField label="Labels" value={labels} onChange={setLabels} maxLength={1000} hint="Comma-separated." />
      <label className="flex items-center gap-2 text-sm">
        <input type="checkbox" checked={isProtected} onChange={(event) => setProtected(event.target.checked)} /> Protect
        it against deletion
      </label>
    </ObjectDialog>
  )
}
