'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Menu } from '../../components/menu'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { DiscardDialog, SealDialog, StartMaintenanceDialog } from './maintenance-dialogs'
import { DeleteVersionDialog, MergeDialog, OverrideDialog, PromoteDialog, RevertDialog } from './step-dialogs'
import { EditVersionDialog } from './version-dialog'
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
          className="h-7!"
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

/** Of a release to come, or of the override: nothing is lost by either. */
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
