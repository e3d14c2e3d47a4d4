'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { useTRPCClient } from '../../lib/trpc'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import type { FollowingImport } from '../uploads/following-import'
import { tabUploads } from '../uploads/tab-uploads'
import { busyText } from '../uploads/upload-text'
import { type Upload, useSendUpload } from '../uploads/use-send-upload'
import { BootFields, bootInput, defaultBoot } from './boot-fields'
import { type ImportSource, isChosen, useImportSource } from './import-source'
import { useCaptureFields } from './use-capture-fields'
import { useEdgeChoice } from './use-edge-choice'
import { firstStates, type VdiskDetail } from './version-types'

interface ImportDialogProps {
  vdisk: VdiskDetail
  /** A complete upload that is imported; null: the source is chosen. */
  upload: Upload | null
  onClose: () => void
}

/** Makes a version from an image: one of this computer, in an edge's store, at a URL, or uploaded. */
export function ImportDialog({ vdisk, upload, onClose }: ImportDialogProps) {
  const { edge, pickers } = useEdgeChoice(vdisk.farmId)
  const { source, fields } = useImportSource(vdisk.id, upload)
  const [boot, setBoot] = useState(defaultBoot)
  const capture = useCaptureFields(vdisk.farmId, { enabled: source.kind === 'empty' })
  const [note, setNote] = useState('')
  const [state, setState] = useState('test')
  const start = useImport(vdisk.id, onClose)
  return (
    <ObjectDialog
      title={`Import an image into ${vdisk.name}`}
      action={source.kind === 'computer' ? 'Upload and import' : 'Import'}
      saving={start}
      disabled={!edge || !isChosen(source) || (source.kind === 'empty' && !capture.bootVersionId)}
      onSave={() =>
        edge &&
        start.mutate({
          source,
          bootVersionId: capture.bootVersionId,
          following: {
            edgeId: edge.id,
            ...(source.kind === 'empty' ? capture.boot : bootInput(boot)),
            note,
            state: state === 'released' ? 'released' : 'test',
          },
        })
      }
      onClose={onClose}
    >
      {fields}
      {pickers}
      {source.kind === 'empty' ? capture.fields : <BootFields vdisk={vdisk} value={boot} onChange={setBoot} />}
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <SelectField label="After import" value={state} options={firstStates} onChange={setState} />
      <HelpLink to={helpTopics.images} inNewTab>
        Which images boot
      </HelpLink>
    </ObjectDialog>
  )
}

interface Started {
  source: ImportSource
  /** Of an empty disk. */
  bootVersionId: string | null
  following: FollowingImport
}

/** Begins the import; for a file of this computer its upload, which the import follows. */
function useImport(vdiskId: string, onClose: () => void) {
  const client = useTRPCClient()
  const send = useSendUpload()
  const begin = async ({ source, bootVersionId, following }: Started) => {
    if (source.kind === 'empty')
      return client.version.import.mutate({ ...following, vdiskId, emptySizeBytes: source.sizeBytes, bootVersionId })
    if (source.kind === 'store')
      return client.version.import.mutate({ ...following, vdiskId, sourcePath: source.sourcePath })
    if (source.kind === 'url')
      return client.version.import.mutate({ ...following, vdiskId, url: source.url, sha256: source.sha256 })
    if (source.kind === 'upload')
      return client.version.import.mutate({ ...following, vdiskId, uploadId: source.upload.id })
    const { file, unfinished } = source
    if (!file) return
    if (tabUploads.isBusy()) throw new Error(busyText)
    const input = { vdiskId, name: file.name, sizeBytes: file.size }
    send(unfinished ?? (await client.upload.create.mutate(input)), file, following)
  }
  return useMutation({ mutationFn: begin, onSuccess: useSaved(onClose) })
}
