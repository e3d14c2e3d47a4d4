'use client'

import { useMutation } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { TextField } from '../../components/field'
import { useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import type { Organization } from './organization-types'

export function RenameDialog({ organization, onClose }: { organization: Organization; onClose: () => void }) {
  const [name, setName] = useState(organization.name)
  const router = useRouter()
  const saved = useSaved(onClose)
  // The frame around the page has the name from the server.
  const onSuccess = () => {
    router.refresh()
    saved()
  }
  const rename = useMutation(useTRPC().organization.rename.mutationOptions({ onSuccess }))
  return (
    <ObjectDialog
      title="Rename organization"
      action="Rename organization"
      saving={rename}
      disabled={name.trim() === ''}
      onSave={(revision = organization.revision) => rename.mutate({ name, revision })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={80} hint="The short name does not change." />
    </ObjectDialog>
  )
}
