'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField } from '../../components/field'
import { useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import type { StoreJob } from '../store-jobs/job-text'
import type { StepProps } from './step-dialogs'
import { holdersOf } from './version-step-text'

type Format = NonNullable<StoreJob['format']>

const formats: { value: Format; label: string }[] = [
  { value: 'vhdx', label: 'VHDX (Hyper-V, Citrix Provisioning)' },
  { value: 'qcow2', label: 'qcow2 (QEMU, Proxmox, OpenStack)' },
  { value: 'raw', label: 'raw' },
]

/** Writes a version to a file at an edge that holds it. */
export function ExportDialog({ version, onClose }: StepProps) {
  const trpc = useTRPC()
  const holders = holdersOf(version)
  const [chosenId, setChosenId] = useState('')
  const [format, setFormat] = useState<Format>('vhdx')
  const edge = holders.find(({ edgeId }) => edgeId === chosenId) ?? holders[0]
  const start = useMutation(trpc.storeJob.start.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Export version ${version.number}`}
      action="Export version"
      saving={start}
      disabled={!edge}
      onSave={() => edge && start.mutate({ edgeId: edge.edgeId, kind: 'export', versionId: version.id, format })}
      onClose={onClose}
    >
      <SelectField
        label="Edge"
        value={edge?.edgeId ?? ''}
        options={holders.map(({ edgeId, edgeName }) => ({ value: edgeId, label: edgeName }))}
        onChange={setChosenId}
      />
      <SelectField
        label="Format"
        value={format}
        options={formats}
        onChange={(value) => setFormat(formats.find((one) => one.value === value)?.value ?? 'vhdx')}
      />
      <p className="text-ink-soft text-sm">
        The file is written to the directory exports in the store of that edge. Its job says the file’s name.
      </p>
    </ObjectDialog>
  )
}
