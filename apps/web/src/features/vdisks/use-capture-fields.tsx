'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'

const defaultCommandLine = 'bootfarm.capture=auto'

/** What a machine boots whose disk is captured into an empty one: the kernel of a version that boots such machines. */
export function useCaptureFields(farmId: string, { enabled }: { enabled: boolean }) {
  const vdisks = usePicker('vdisk', { farmId }, { enabled })
  const [vdiskId, setVdiskId] = useState('')
  const [versionId, setVersionId] = useState('')
  const [commandLine, setCommandLine] = useState(defaultCommandLine)
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
      <TextField
        label="Kernel command line"
        value={commandLine}
        onChange={setCommandLine}
        mono
        maxLength={1024}
        hint="With several disks in the machine, name one: bootfarm.capture=nvme0n1."
      />
    </>
  )
  const boot = { bootFiles: 'image' as const, parentVersionId: null, modules: [], commandLine }
  return { fields, boot, bootVersionId: version?.id ?? null }
}
