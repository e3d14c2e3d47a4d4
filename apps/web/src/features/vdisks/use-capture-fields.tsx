'use client'

import { useState } from 'react'
import { TextField } from '../../components/field'
import { useBootVersion } from './use-boot-version'

const defaultCommandLine = 'bootfarm.capture=auto'

/** What a machine boots whose disk is captured into an empty one: the kernel of a version that boots such machines. */
export function useCaptureFields(farmId: string, { enabled }: { enabled: boolean }) {
  const boots = useBootVersion(farmId, { enabled })
  const [commandLine, setCommandLine] = useState(defaultCommandLine)
  const fields = (
    <>
      {boots.fields}
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
  return { fields, boot, bootVersionId: boots.bootVersionId }
}
