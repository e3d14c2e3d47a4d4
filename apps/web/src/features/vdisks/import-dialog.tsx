'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Notice, SelectField, TextField } from '../../components/field'
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
  const edges = useQuery(trpc.edge.list.queryOptions({ limit: listedMax }))
  const [chosenId, setChosenId] = useState('')
  const [sourcePath, setSourcePath] = useState('')
  const [commandLine, setCommandLine] = useState(vdisk.versions[0]?.commandLine ?? '')
  const [note, setNote] = useState('')
  const [state, setState] = useState('test')
  const importing = useMutation(trpc.version.import.mutationOptions({ onSuccess: useSaved(onClose) }))
  const siteIds = new Set((sites.data?.items ?? []).map(({ id }) => id))
  const options = (edges.data?.items ?? []).filter(
    ({ siteId, revokedAt }) => siteIds.has(siteId) && revokedAt === null,
  )
  const edge = options.find(({ id }) => id === chosenId) ?? options[0]
  return (
    <ObjectDialog
      title={`Import an image into ${vdisk.name}`}
      action="Import"
      saving={importing}
      disabled={!edge || sourcePath.trim() === ''}
      onSave={() =>
        edge &&
        importing.mutate({
          ...{ vdiskId: vdisk.id, edgeId: edge.id, sourcePath, commandLine, note },
          state: state === 'released' ? 'released' : 'test',
        })
      }
      onClose={onClose}
    >
      <SelectField
        label="Edge"
        value={edge?.id ?? ''}
        options={options.map(({ id, name, siteName }) => ({ value: id, label: `${name}, ${siteName}` }))}
        onChange={setChosenId}
        hint={edges.data && sites.data && options.length === 0 ? 'This farm has no edge yet.' : undefined}
      />
      <TextField
        label="Image"
        value={sourcePath}
        onChange={setSourcePath}
        mono
        maxLength={pathMax}
        placeholder="imports/linux.raw"
        hint="A raw image, below the directory of that edge’s store. Kernel and initramfs are taken from it."
      />
      <TextField label="Command line" value={commandLine} onChange={setCommandLine} mono maxLength={1024} />
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <SelectField
        label="Then"
        value={state}
        options={[
          { value: 'test', label: 'it is in test' },
          { value: 'released', label: 'it is released' },
        ]}
        onChange={setState}
      />
      <Notice tone="silent">
        Edges of this release do not import for the control plane yet: the work ends as failed. On the edge
        itself, “bootfarm-edge vdisk import” does it.
      </Notice>
    </ObjectDialog>
  )
}
