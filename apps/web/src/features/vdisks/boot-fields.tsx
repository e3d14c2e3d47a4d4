'use client'

import { Fold, SelectField, TextField } from '../../components/field'
import type { VdiskDetail } from './version-types'

const bootMethods = [
  { value: 'image', label: 'from the kernel and initramfs in the image' },
  { value: 'none', label: 'from the disk’s own boot loader' },
]
const parentMethod = { value: 'parent', label: 'like the parent version' }

export const defaultBoot: BootChoice = { parentId: '', bootFiles: 'image', drivers: '', commandLine: '' }

function parentsOf({ versions }: VdiskDetail) {
  const sealed = versions.filter(({ manifest }) => manifest !== null)
  return [
    { value: '', label: 'none: a new base' },
    ...sealed.map(({ id, number }) => ({ value: id, label: `version ${number}` })),
  ]
}

export interface BootChoice {
  parentId: string
  bootFiles: 'image' | 'parent' | 'none'
  drivers: string
  commandLine: string
}

/** The same as fields of an import. */
export function bootInput({ parentId, bootFiles, drivers, commandLine }: BootChoice) {
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

/** What the version builds on, and what it boots with; closed, since most images need none of it. */
export function BootFields({ vdisk, value, onChange }: BootFieldsProps) {
  const { parentId, bootFiles, drivers, commandLine } = value
  const set = (changes: Partial<BootChoice>) => onChange(Object.assign({}, value, changes))
  return (
    <Fold title="Parent and boot options">
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
    </Fold>
  )
}
