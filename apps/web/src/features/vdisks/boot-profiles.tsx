import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Age } from '../../components/instant'
import { useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { type BootProfile, bootProfileText } from './boot-profile-text'
import type { VdiskDetail, Version } from './version-types'

/**
 * Lists the boot profiles that an edge learned from the version's boots: from all of them first, then by class of
 * hardware.
 */
export function BootProfiles({ profiles }: { profiles: BootProfile[] }) {
  return profiles.map((profile) => (
    <p key={profile.hardware} className="break-words pl-4">
      {bootProfileText(profile)}
      {profile.learnedAt && (
        <>
          , last <Age at={profile.learnedAt} />
        </>
      )}
    </p>
  ))
}

interface ClearBootProfileProps {
  vdisk: VdiskDetail
  version: Version
}

/** Only if there is one. */
export function ClearBootProfile({ vdisk, version }: ClearBootProfileProps) {
  const [open, setOpen] = useState(false)
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  if (!mayChange || version.atEdges.every(({ bootProfiles }) => bootProfiles.length === 0)) return null
  return (
    <div>
      <Button small aria-label={`Clear boot profile: version ${version.number}`} onClick={() => setOpen(true)}>
        Clear boot profile
      </Button>
      {open && <ClearDialog version={version} onClose={() => setOpen(false)} />}
    </div>
  )
}

function ClearDialog({ version, onClose }: { version: Version; onClose: () => void }) {
  const trpc = useTRPC()
  const clear = useMutation(trpc.version.clearBootProfile.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Clear the boot profile of version ${version.number}`}
      action="Clear boot profile"
      saving={clear}
      onSave={() => clear.mutate({ versionId: version.id })}
      onClose={onClose}
    >
      <p className="text-ink-soft text-sm">
        Each edge deletes what it has learned from boots of this version. The next boot runs without read-ahead, and the
        edges learn from it again.
      </p>
    </ObjectDialog>
  )
}
