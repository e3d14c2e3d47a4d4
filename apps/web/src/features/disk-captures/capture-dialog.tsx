'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Fold, Notice, SelectField, TextField } from '../../components/field'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { VdiskField } from '../collections/collection-actions'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useBootVersion } from '../vdisks/use-boot-version'

type DeviceDetail = RouterOutputs['device']['get']

const bootFilesOptions = [
  { value: 'image', label: 'with the kernel on the captured disk' },
  { value: 'none', label: 'with the boot loader of the captured disk' },
]
const runningOptions = [
  { value: 'no', label: 'Not while it runs' },
  { value: 'yes', label: 'Yes: I restart it myself' },
]

interface CaptureDialogProps {
  device: DeviceDetail
  onClose: () => void
}

/** Everything that a capture needs to know; the rest it finds out from the device. */
export function CaptureDialog({ device, onClose }: CaptureDialogProps) {
  const [seen] = useState(device)
  const boots = useBootVersion(seen.farmId, { enabled: true })
  const [vdiskId, setVdiskId] = useState('')
  const [name, setName] = useState('')
  const more = useMoreFields()
  const [whileRunning, setWhileRunning] = useState('no')
  const start = useMutation(useTRPC().diskCapture.start.mutationOptions({ onSuccess: useSaved(onClose) }))
  const { state } = seen.now
  const isRunning = state === 'running' || state === 'booting'
  const { bootVersionId } = boots
  const target = vdiskId === '' ? { farmId: seen.farmId, name } : { vdiskId }
  return (
    <ObjectDialog
      title={`Capture the disk of ${seen.name}`}
      action="Capture disk"
      saving={start}
      disabled={!bootVersionId || (vdiskId === '' && name.trim() === '') || (isRunning && whileRunning === 'no')}
      onSave={(revision = seen.revision) =>
        bootVersionId &&
        start.mutate({
          ...target,
          ...more.given,
          deviceId: seen.id,
          revision,
          bootVersionId,
          whileRunning: whileRunning === 'yes',
        })
      }
      onClose={onClose}
    >
      <p className="text-ink-soft text-sm">
        At its next boot from the network the device starts no system: it sends its own disk, which is only read, to the
        edge, and switches itself off. Then it boots as before. Shut its system down first.
      </p>
      {isRunning && (
        <>
          <Notice tone="silent">
            {seen.name} is {state}. Its disk is captured at its next boot: shut it down first.
          </Notice>
          <SelectField
            label="Capture although it runs"
            value={whileRunning}
            options={runningOptions}
            onChange={setWhileRunning}
          />
        </>
      )}
      {boots.fields}
      <VdiskField farmId={seen.farmId} chosen={null} value={vdiskId} onChange={setVdiskId} none="a new vDisk" />
      {vdiskId === '' && <TextField label="Name of the new vDisk" value={name} onChange={setName} maxLength={63} />}
      {more.fields}
    </ObjectDialog>
  )
}

/** What most captures leave as it is. */
function useMoreFields() {
  const [disk, setDisk] = useState('')
  const [bootFiles, setBootFiles] = useState('image')
  const [note, setNote] = useState('')
  const fields = (
    <Fold title="More">
      <TextField
        label="Disk"
        value={disk}
        onChange={setDisk}
        mono
        maxLength={36}
        placeholder="nvme0n1"
        hint="Empty: the only disk of the device. With several, its boot names them, and you choose one then."
      />
      <SelectField label="The version boots" value={bootFiles} options={bootFilesOptions} onChange={setBootFiles} />
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
    </Fold>
  )
  const given = {
    disk: disk.trim() || 'auto',
    bootFiles: bootFiles === 'none' ? ('none' as const) : ('image' as const),
    note,
  }
  return { fields, given }
}
