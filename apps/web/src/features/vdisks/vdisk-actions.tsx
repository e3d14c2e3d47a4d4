'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { Tag } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'
import { DeleteButton } from '../objects/delete-button'
import { useMay } from '../session/use-may'
import { EditVdiskDialog, NewVdiskDialog } from './vdisk-dialog'
import { EditVersionDialog, RegisterVersionDialog } from './version-dialog'

type VdiskDetail = RouterOutputs['vdisk']['get']
type Version = VdiskDetail['versions'][number]

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
  const [open, setOpen] = useState<'edit' | 'version' | null>(null)
  if (!useMay('vdisk.change', { farmId: vdisk.farmId })) return null
  return (
    <>
      <Button look="primary" onClick={() => setOpen('version')}>
        New version
      </Button>
      <Button onClick={() => setOpen('edit')}>Change</Button>
      <DeleteButton target={{ kind: 'vdisk', id: vdisk.id }} name={vdisk.name} leaveTo="/vdisks">
        <p>Its versions go with it. Files in the edges’ stores stay.</p>
      </DeleteButton>
      {open === 'edit' && <EditVdiskDialog vdisk={vdisk} onClose={() => setOpen(null)} />}
      {open === 'version' && <RegisterVersionDialog vdisk={vdisk} onClose={() => setOpen(null)} />}
    </>
  )
}

/** In a row: labels, note and what can be done. */
export function VersionActions({ version }: { version: Version }) {
  const [open, setOpen] = useState(false)
  const mayChange = useMay('vdisk.change')
  return (
    <span className="inline-flex items-center gap-2">
      {version.labels.map((label) => (
        <Tag key={label}>{label}</Tag>
      ))}
      {mayChange && (
        <>
          <Button
            className="h-7!"
            aria-label={`Note and labels of version ${version.number}`}
            onClick={() => setOpen(true)}
          >
            Label
          </Button>
          <DeleteButton
            target={{ kind: 'version', id: version.id }}
            name={`version ${version.number}`}
            label={`Delete version ${version.number}`}
            compact
          >
            <p>Files in the edges’ stores stay. Its number is not given again.</p>
          </DeleteButton>
        </>
      )}
      {open && <EditVersionDialog version={version} onClose={() => setOpen(false)} />}
    </span>
  )
}
