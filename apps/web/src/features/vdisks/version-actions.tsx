'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Notice, SelectField, TextField } from '../../components/field'
import { Menu } from '../../components/menu'
import { ObjectPicker } from '../../components/object-picker'
import { useToast } from '../../components/toast'
import { readableError, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { ExportDialog } from './export-dialog'
import {
  DeleteVersionDialog,
  MergeDialog,
  OverrideDialog,
  PromoteDialog,
  RevertDialog,
  type StepProps,
} from './step-dialogs'
import { EditVersionDialog } from './vdisk-actions'
import { arrangeSteps, type Step, stepText } from './version-step-text'
import type { VdiskDetail, Version } from './version-types'

interface VersionActionsProps {
  vdisk: VdiskDetail
  version: Version
}

/** The next steps of a version as buttons, the rest in a menu. */
export function VersionActions({ vdisk, version }: VersionActionsProps) {
  const [open, setOpen] = useState<Step | null>(null)
  const takeBack = useTakeBack(vdisk)
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  if (!mayChange) return null
  const { first, more } = arrangeSteps(version)
  const choose = (step: Step) =>
    step === 'cancelRelease' || step === 'clearOverride' ? takeBack.run(step) : setOpen(step)
  return (
    <div className="flex flex-wrap items-center gap-2">
      {first.map((step) => (
        <Button
          key={step}
          small
          busy={takeBack.isPending}
          aria-label={`${stepText[step]}: version ${version.number}`}
          onClick={() => choose(step)}
        >
          {stepText[step]}
        </Button>
      ))}
      <Menu
        label={`More actions for version ${version.number}`}
        framed
        items={more.map((step) => ({ key: step, label: stepText[step], onSelect: () => choose(step) }))}
      />
      {open && <StepDialog step={open} vdisk={vdisk} version={version} onClose={() => setOpen(null)} />}
    </div>
  )
}

const dialogs = {
  startMaintenance: StartMaintenanceDialog,
  seal: SealDialog,
  discard: DiscardDialog,
  promote: PromoteDialog,
  revert: RevertDialog,
  override: OverrideDialog,
  merge: MergeDialog,
  export: ExportDialog,
  delete: DeleteVersionDialog,
}

interface StepDialogProps extends VersionActionsProps {
  step: Step
  onClose: () => void
}

function StepDialog({ step, vdisk, version, onClose }: StepDialogProps) {
  if (step === 'label') return <EditVersionDialog version={version} onClose={onClose} />
  if (step === 'cancelRelease' || step === 'clearOverride') return null
  const Dialog = dialogs[step]
  return <Dialog vdisk={vdisk} version={version} onClose={onClose} />
}

/** For a pending release, or the override: nothing is lost by either. */
function useTakeBack({ id: vdiskId, revision }: VdiskDetail) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const options = (title: string) => ({
    onSuccess: () => {
      void queryClient.invalidateQueries()
      showToast({ title, tone: 'ready' as const })
    },
    onError: (error: unknown) => {
      void queryClient.invalidateQueries()
      showToast({ title: 'Could not update the version.', text: readableError(error), tone: 'failed' as const })
    },
  })
  const cancel = useMutation(trpc.version.cancelRelease.mutationOptions(options('The version is in test again.')))
  const clear = useMutation(trpc.version.clearOverride.mutationOptions(options('Override cleared.')))
  return {
    isPending: cancel.isPending || clear.isPending,
    run: (step: 'cancelRelease' | 'clearOverride') =>
      (step === 'cancelRelease' ? cancel : clear).mutate({ vdiskId, revision }),
  }
}

type BootFiles = 'image' | 'parent' | 'none'

const bootFilesChoices: { value: BootFiles; label: string }[] = [
  { value: 'image', label: 'from the kernel and initramfs on the disk now' },
  { value: 'parent', label: 'as the previous version' },
  { value: 'none', label: 'from the disk’s own boot loader' },
]

/** The next version above this one, written by one device. */
function StartMaintenanceDialog({ vdisk, version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk.revision)
  const [chosenId, setChosenId] = useState('')
  const [note, setNote] = useState('')
  const listed = usePicker('device', { deviceType: 'maintenance' })
  const devices = { ...listed, items: listed.items.filter((device) => device.vdisk?.id === vdisk.id) }
  const isSearched = listed.search !== '' || listed.hasMore
  const device = devices.itemOf(chosenId) ?? devices.items[0]
  const start = useMutation(trpc.version.startMaintenance.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`New version based on version ${version.number}`}
      action="Start maintenance"
      saving={start}
      disabled={!device}
      onSave={(vdiskRevision = seen) =>
        device && start.mutate({ versionId: version.id, vdiskRevision, deviceId: device.id, note })
      }
      onClose={onClose}
    >
      {devices.isLoaded && !device && !isSearched ? (
        <Notice tone="silent">
          No maintenance device is assigned this vDisk. First set the type of one of its{' '}
          <Link href="/devices" className="underline underline-offset-4">
            devices
          </Link>{' '}
          to maintenance.
        </Notice>
      ) : (
        <ObjectPicker
          label="Maintenance device"
          picker={devices}
          value={device?.id ?? ''}
          labelOf={({ name, siteName }) => `${name}, ${siteName}`}
          onChange={setChosenId}
          hint={
            devices.isLoaded && !device
              ? 'None of these devices is assigned this vDisk. Search for another name or MAC address.'
              : 'A maintenance device that is assigned this vDisk.'
          }
        />
      )}
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <p className="text-ink-soft text-sm">
        The device boots the new version from its next boot, and its writes persist across reboots. Other devices keep
        their version. When you are done, shut the device down and seal the version.
      </p>
    </ObjectDialog>
  )
}

function SealDialog({ version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(version.revision)
  const [bootFiles, setBootFiles] = useState<BootFiles>('image')
  const isWritten = version.atEdges.some(({ isLayer }) => isLayer)
  const seal = useMutation(trpc.version.seal.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Seal version ${version.number}`}
      action={`Seal version ${version.number}`}
      saving={seal}
      onSave={(revision = seen) => seal.mutate({ versionId: version.id, revision, bootFiles })}
      onClose={onClose}
    >
      <StillRuns version={version} />
      {!isWritten && (
        <Notice tone="silent">
          No edge has reported any writes yet. Sealing fails until the device has booted this version.
        </Notice>
      )}
      <SelectField
        label="Boot method"
        value={bootFiles}
        options={bootFilesChoices}
        onChange={(value) => setBootFiles(bootFilesChoices.find((one) => one.value === value)?.value ?? 'image')}
      />
      <ul className="flex list-disc flex-col gap-1 pl-5 text-ink-soft text-sm">
        <li>The writes become the version. It can no longer change.</li>
        <li>The version is then in test: test devices get it at their next boot, production devices do not.</li>
      </ul>
    </ObjectDialog>
  )
}

function DiscardDialog({ version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(version.revision)
  const discard = useMutation(trpc.version.discardMaintenance.mutationOptions({ onSuccess: useSaved(onClose) }))
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
        This permanently deletes the writes
        {writtenAt.length > 0 && ` on ${writtenAt.map(({ edgeName }) => edgeName).join(', ')}`}. The device boots as a
        test device again. The version number is not reused.
      </p>
    </ObjectDialog>
  )
}

function StillRuns({ version: { running } }: Pick<StepProps, 'version'>) {
  if (running.count === 0) return null
  return <Notice tone="silent">{running.names.join(', ')} is still running this version. Shut it down first.</Notice>
}
