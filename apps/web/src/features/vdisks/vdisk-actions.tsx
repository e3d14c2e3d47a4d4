'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { DeleteButton } from '../objects/delete-button'
import { useMay } from '../session/use-may'
import { ImportDialog } from './import-dialog'
import { EditVdiskDialog, NewVdiskDialog } from './vdisk-dialog'
import { RegisterVersionDialog } from './version-dialog'
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
      {open === 'import' && <ImportDialog vdisk={vdisk} onClose={() => setOpen(null)} />}
      {open === 'version' && <RegisterVersionDialog vdisk={vdisk} onClose={() => setOpen(null)} />}
    </>
  )
}
