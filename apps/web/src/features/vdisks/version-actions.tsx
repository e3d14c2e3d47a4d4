'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { DropdownMenu } from 'radix-ui'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { DiscardDialog, SealDialog, StartMaintenanceDialog } from './maintenance-dialogs'
import { DeleteVersionDialog, MergeDialog, OverrideDialog, PromoteDialog, RevertDialog } from './step-dialogs'
import { EditVersionDialog } from './version-dialog'
import { type Step, stepsOf, stepWords } from './version-steps'
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
  const { first, more } = stepsOf(version, vdisk)
  const choose = (step: Step) =>
    step === 'cancelRelease' || step === 'clearOverride' ? takeBack.run(step) : setOpen(step)
  return (
    <div className="flex flex-wrap items-center gap-2">
      {first.map((step) => (
        <Button
          key={step}
          className="h-7!"
          busy={takeBack.isPending}
          aria-label={`${stepWords[step]}: version ${version.number}`}
          onClick={() => choose(step)}
        >
          {stepWords[step]}
        </Button>
      ))}
      <DropdownMenu.Root>
        <DropdownMenu.Trigger
          aria-label={`More actions for version ${version.number}`}
          className="grid size-7 place-items-center rounded-md border border-line-strong text-ink hover:bg-hover data-[state=open]:bg-hover"
        >
          <Icon name="more" />
        </DropdownMenu.Trigger>
        <DropdownMenu.Portal>
          <DropdownMenu.Content
            align="end"
            sideOffset={4}
            className="z-50 w-52 animate-[appear_120ms_ease-out] rounded-lg border border-line bg-raised p-1 shadow-black/10 shadow-lg"
          >
            {more.map((step) => (
              <DropdownMenu.Item
                key={step}
                onSelect={() => choose(step)}
                className="flex h-8 cursor-pointer items-center rounded-md px-2.5 text-ink text-sm outline-none data-[highlighted]:bg-hover"
              >
                {stepWords[step]}
              </DropdownMenu.Item>
            ))}
          </DropdownMenu.Content>
        </DropdownMenu.Portal>
      </DropdownMenu.Root>
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
