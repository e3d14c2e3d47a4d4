'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import type { VdiskDetail } from './version-types'

/** As many as the API gives at once. */
const listedMax = 100
const pathMax = 255

/** Makes a version of a raw image that lies in an edge's store. */
export function ImportDialog({ vdisk, onClose }: { vdisk: VdiskDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const sites = useQuery(trpc.site.list.queryOptions({ farmId: vdisk.farmId, limit: listedMax }))
  const [chosenSiteId, setChosenSiteId] = useState('')
  const siteId = chosenSiteId || sites.data?.items[0]?.id
  const edges = useQuery(
    trpc.edge.list.queryOptions({ limit: listedMax, ...(siteId ? { siteId } : {}) }, { enabled: !!siteId }),
  )
  const [chosenId, setChosenId] = useState('')
  const [sourcePath, setSourcePath] = useState('')
  const [bootFiles, setBootFiles] = useState<'image' | 'none'>('image')
  const [commandLine, setCommandLine] = useState('')
  const [note, setNote] = useState('')
  const [state, setState] = useState('test')
  const importing = useMutation(trpc.version.import.mutationOptions({ onSuccess: useSaved(onClose) }))
  const options = (edges.data?.items ?? []).filter(({ revokedAt }) => revokedAt === null)
  const edge = options.find(({ id }) => id === chosenId) ?? options[0]
  const isEmpty = sites.data && (siteId === undefined || (edges.data && options.length === 0))
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
          bootFiles,
          note,
          commandLine: bootFiles === 'none' ? '' : commandLine,
          state: state === 'released' ? 'released' : 'test',
        })
      }
      onClose={onClose}
    >
      <SelectField
        label="Site"
        value={siteId ?? ''}
        options={(sites.data?.items ?? []).map(({ id, name }) => ({ value: id, label: name }))}
        onChange={setChosenSiteId}
      />
      <SelectField
        label="Edge"
        value={edge?.id ?? ''}
        options={options.map(({ id, name }) => ({ value: id, label: name }))}
        onChange={setChosenId}
        hint={isEmpty ? 'This site has no edges yet.' : undefined}
      />
      <TextField
        label="Image"
        value={sourcePath}
        onChange={setSourcePath}
        mono
        maxLength={pathMax}
        placeholder="imports/linux.raw"
        hint="A raw image in the store directory of that edge."
      />
      <SelectField
        label="Boot method"
        value={bootFiles}
        options={[
          { value: 'image', label: 'from the kernel and initramfs in the image' },
          { value: 'none', label: 'from the disk’s own boot loader' },
        ]}
        onChange={(value) => setBootFiles(value === 'none' ? 'none' : 'image')}
      />
      {bootFiles === 'image' && (
        <TextField
          label="Kernel command line"
          value={commandLine}
          onChange={setCommandLine}
          mono
          maxLength={1024}
          hint="Leave empty to use the one in the image."
        />
      )}
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <SelectField
        label="After import"
        value={state}
        options={[
          { value: 'test', label: 'Test' },
          { value: 'released', label: 'Release' },
        ]}
        onChange={setState}
      />
    </ObjectDialog>
  )
}
