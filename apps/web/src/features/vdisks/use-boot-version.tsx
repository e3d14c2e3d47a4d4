'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'

/** A version whose kernel and initramfs a machine boots while its disk is captured, and the fields that choose it. */
export function useBootVersion(farmId: string, { enabled }: { enabled: boolean }) {
  const vdisks = usePicker('vdisk', { farmId }, { enabled })
  const [vdiskId, setVdiskId] = useState('')
  const [versionId, setVersionId] = useState('')
  const chosen = useQuery(useTRPC().vdisk.get.queryOptions({ vdiskId }, { enabled: enabled && vdiskId !== '' }))
  const versions = (chosen.data?.versions ?? []).filter(({ manifest, kernel }) => manifest !== null && kernel !== null)
  const version = versions.find(({ id }) => id === versionId) ?? versions[0]
  const isWithout = chosen.data !== undefined && versions.length === 0
  const fields = (
    <>
      <ObjectPicker
        label="Kernel and initramfs of"
        picker={vdisks}
        value={vdiskId}
        first={[{ value: '', label: 'choose a vDisk' }]}
        onChange={setVdiskId}
      />
      {vdiskId !== '' && (
        <SelectField
          label="Version"
          value={version?.id ?? ''}
          options={versions.map(({ id, number }) => ({ value: id, label: `version ${number}` }))}
          onChange={setVersionId}
          hint={
            isWithout
              ? 'No imported version of this vDisk has a kernel. Choose another vDisk.'
              : 'It must have drivers for the machine’s network card and disk, and the edge must hold it.'
          }
        />
      )}
    </>
  )
  return { fields, bootVersionId: version?.id ?? null }
}
