'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Notice, SelectField, TextField } from '../../components/field'
import { useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import type { StepProps } from './step-dialogs'

/** As many as the API gives at once. */
const devicesMax = 100

/** The next version above this one, written by one device. */
export function StartMaintenanceDialog({ vdisk, version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk.revision)
  const [chosenId, setChosenId] = useState('')
  const [note, setNote] = useState('')
  const devices = useQuery(trpc.device.list.queryOptions({ deviceType: 'maintenance', limit: devicesMax }))
  const options = (devices.data?.items ?? []).filter((device) => device.vdisk?.id === vdisk.id)
  const device = options.find(({ id }) => id === chosenId) ?? options[0]
  const start = useMutation(trpc.version.startMaintenance.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`New version above ${version.number}`}
      action="Start maintenance"
      saving={start}
      disabled={!device}
      onSave={(vdiskRevision = seen) =>
        device && start.mutate({ versionId: version.id, vdiskRevision, deviceId: device.id, note })
      }
      onClose={onClose}
    >
      {devices.data && options.length === 0 ? (
        <Notice tone="silent">
          No maintenance device boots this vDisk. Change the type of one of its{' '}
          <Link href="/devices" className="underline underline-offset-4">
            devices
          </Link>{' '}
          to maintenance first.
        </Notice>
      ) : (
        <SelectField
          label="Written by"
          value={device?.id ?? ''}
          options={options.map(({ id, name, siteName }) => ({ value: id, label: `${name}, ${siteName}` }))}
          onChange={setChosenId}
          hint="A maintenance device that boots this vDisk."
        />
      )}
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <p className="text-ink-soft text-sm">
        The device boots the new version at its next boot, and what it writes is kept over its reboots. All
        others go on with what they boot. Shut it down and seal the version when it is as you want it.
      </p>
      <Notice tone="silent">
        Edges of this release do not write maintenance versions yet: the device will not start, and say so,
        until the version is discarded.
      </Notice>
    </ObjectDialog>
  )
}

export function SealDialog({ version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(version.revision)
  const seal = useMutation(trpc.version.seal.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Seal version ${version.number}`}
      action={`Seal version ${version.number}`}
      saving={seal}
      onSave={(revision = seen) => seal.mutate({ versionId: version.id, revision })}
      onClose={onClose}
    >
      <StillRuns version={version} />
      <Notice tone="silent">Edges of this release do not seal yet: the work ends as failed.</Notice>
      <ul className="flex list-disc flex-col gap-1 pl-5 text-ink-soft text-sm">
        <li>What was written becomes the version; nothing changes it any more.</li>
        <li>Kernel, initramfs and command line are taken from the image.</li>
        <li>Then it is in test: test devices get it at their next boot, production devices do not.</li>
      </ul>
    </ObjectDialog>
  )
}

export function DiscardDialog({ version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(version.revision)
  const discard = useMutation(
    trpc.version.discardMaintenance.mutationOptions({ onSuccess: useSaved(onClose) }),
  )
  const writtenAt = version.atEdges.filter(({ isLayer }) => isLayer)
  return (
    <ObjectDialog
      title={`Discard version ${version.number}?`}
      action={`Discard version ${version.number}`}
      saving={discard}
      onSave={(revision = seen) => discard.mutate({ versionId: version.id, revision })}
      onClose={onClose}
    >
      <StillRuns version={version} />
      <p className="text-ink-soft text-sm">
        What was written is lost and cannot be restored
        {writtenAt.length > 0 && `; it lies at ${writtenAt.map(({ edgeName }) => edgeName).join(', ')}`}. Its
        device boots as a test device again. The number is not given again.
      </p>
    </ObjectDialog>
  )
}

function StillRuns({ version: { running } }: Pick<StepProps, 'version'>) {
  if (running.count === 0) return null
  return <Notice tone="silent">{running.names.join(', ')} still runs from it: shut it down first.</Notice>
}
