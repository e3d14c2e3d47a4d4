'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Notice, TextField } from '../../components/field'
import { tagsOfText } from '../../lib/pair-lines'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'

type VdiskDetail = RouterOutputs['vdisk']['get']
type Version = VdiskDetail['versions'][number]

const pathMax = 255
const sectorBytes = 512

/** Says which files in the edges' stores are the next version. */
export function RegisterVersionDialog({ vdisk, onClose }: { vdisk: VdiskDetail; onClose: () => void }) {
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
  const update = useMutation(trpc.vdisk.updateVersion.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Version ${seen.number}`}
      action="Save"
      saving={update}
      onSave={(revision = seen.revision) =>
        update.mutate({ versionId: seen.id, revision, note, labels: tagsOfText(labels) })
      }
      onClose={onClose}
    >
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <TextField label="Labels" value={labels} onChange={setLabels} maxLength={1000} hint="Comma-separated." />
    </ObjectDialog>
  )
}
