'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { firstStates, type VdiskDetail } from './version-types'

const pathMax = 255
const bootMethods = [
  { value: 'image', label: 'from the kernel and initramfs in the image' },
  { value: 'none', label: 'from the disk’s own boot loader' },
]
const parentMethod = { value: 'parent', label: 'like the parent version' }

/** Makes a version from an image in an edge's store. */
export function ImportDialog({ vdisk, onClose }: { vdisk: VdiskDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const { edge, pickers } = useEdgeChoice(vdisk.farmId)
  const [sourcePath, setSourcePath] = useState('')
  const [boot, setBoot] = useState<BootChoice>({ parentId: '', bootFiles: 'image', drivers: '', commandLine: '' })
  const [note, setNote] = useState('')
  const [state, setState] = useState('test')
  const importing = useMutation(trpc.version.import.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Import an image into ${vdisk.name}`}
      action="Import"
      saving={importing}
      disabled={!edge || sourcePath.trim() === ''}
      onSave={() =>
        edge &&
        importing.mutate({
          vdiskId: vdisk.id,
          edgeId: edge.id,
          sourcePath,
          ...bootInput(boot),
          note,
          state: state === 'released' ? 'released' : 'test',
        })
      }
      onClose={onClose}
    >
      {pickers}
      <TextField
        label="Image"
        value={sourcePath}
        onChange={setSourcePath}
        mono
        maxLength={pathMax}
        placeholder="imports/linux.raw"
        hint="An image of any format that Bootfarm reads, in the store directory of that edge."
      />
      <BootFields vdisk={vdisk} value={boot} onChange={setBoot} />
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <SelectField label="After import" value={state} options={firstStates} onChange={setState} />
    </ObjectDialog>
  )
}

function parentsOf({ versions }: VdiskDetail) {
  const sealed = versions.filter(({ manifest }) => manifest !== null)
  return [
    { value: '', label: 'none: a new base' },
    ...sealed.map(({ id, number }) => ({ value: id, label: `version ${number}` })),
  ]
}

interface BootChoice {
  parentId: string
  bootFiles: 'image' | 'parent' | 'none'
  drivers: string
  commandLine: string
}

function bootInput({ parentId, bootFiles, drivers, commandLine }: BootChoice) {
  return {
    bootFiles,
    parentVersionId: parentId || null,
    modules: bootFiles === 'image' ? drivers.split(/[\s,]+/).filter(Boolean) : [],
    commandLine: bootFiles === 'none' ? '' : commandLine,
  }
}

interface BootFieldsProps {
  vdisk: VdiskDetail
  value: BootChoice
  onChange: (value: BootChoice) => void
}

/** What the version builds on, and what it boots with. */
function BootFields({ vdisk, value, onChange }: BootFieldsProps) {
  const { parentId, bootFiles, drivers, commandLine } = value
  const set = (changes: Partial<BootChoice>) => onChange(Object.assign({}, value, changes))
  return (
    <>
      <SelectField
        label="Parent version"
        value={parentId}
        options={parentsOf(vdisk)}
        onChange={(id) => set({ parentId: id, bootFiles: id === '' && bootFiles === 'parent' ? 'image' : bootFiles })}
        hint="What is equal is not stored again. The edge must hold the parent."
      />
      <SelectField
        label="Boot method"
        value={bootFiles}
        options={parentId ? [...bootMethods, parentMethod] : bootMethods}
        onChange={(method) => set({ bootFiles: method === 'none' || method === 'parent' ? method : 'image' })}
      />
      {bootFiles === 'image' && (
        <TextField
          label="Additional drivers"
          value={drivers}
          onChange={(text) => set({ drivers: text })}
          mono
          maxLength={400}
          placeholder="r8125"
          hint="Kernel modules for the initramfs that is made from the image, besides the usual ones."
        />
      )}
      {bootFiles !== 'none' && (
        <TextField
          label="Kernel command line"
          value={commandLine}
          onChange={(text) => set({ commandLine: text })}
          mono
          maxLength={1024}
          hint={`Leave empty to use the one ${bootFiles === 'parent' ? 'of the parent' : 'in the image'}.`}
        />
      )}
    </>
  )
}

/** An edge of a site of the farm, and the fields that choose both. */
function useEdgeChoice(farmId: string) {
  const sites = usePicker('site', { farmId })
  const [chosenSiteId, setChosenSiteId] = useState('')
  const siteId = chosenSiteId || sites.items[0]?.id
  const listed = usePicker('edge', siteId ? { siteId } : {}, { enabled: !!siteId })
  const edges = { ...listed, items: listed.items.filter(({ revokedAt }) => revokedAt === null) }
  const [chosenId, setChosenId] = useState('')
  const edge = edges.itemOf(chosenId) ?? edges.items[0]
  const isEmpty = sites.isLoaded && (siteId === undefined || (edges.isLoaded && !edge))
  const pickers = (
    <>
      <ObjectPicker
        label="Site"
        picker={sites}
        value={siteId ?? ''}
        onChange={(chosen) => {
          setChosenSiteId(chosen)
          setChosenId('')
        }}
      />
      <ObjectPicker
        label="Edge"
        picker={edges}
        value={edge?.id ?? ''}
        onChange={setChosenId}
        hint={isEmpty && 'This site has no edges yet.'}
      />
    </>
  )
  return { edge, pickers }
}
