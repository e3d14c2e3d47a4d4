'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { FileField, SelectField, TextField } from '../../components/field'
import { formatBytes } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { parseFollowingImport } from '../uploads/following-import'
import { browserStorage, otherFileProblem, recallUpload } from '../uploads/remembered-uploads'
import { percentOf } from '../uploads/upload-text'
import type { Upload } from '../uploads/use-send-upload'

const pathMax = 255
const kinds = [
  { value: 'computer', label: 'a file on this computer' },
  { value: 'store', label: 'a file in the edge’s store' },
] as const

/** Where the image of an import is. */
export type ImportSource =
  | { kind: 'computer'; file: File | null; unfinished: Upload | null }
  | { kind: 'store'; sourcePath: string }
  | { kind: 'upload'; upload: Upload }

/** @param upload a complete one that is imported; null: the source is chosen */
export function useImportSource(vdiskId: string, upload: Upload | null) {
  const [kind, setKind] = useState<(typeof kinds)[number]['value']>('computer')
  const [sourcePath, setSourcePath] = useState('')
  const [file, setFile] = useState<File | null>(null)
  const unfinished = useUnfinished(vdiskId, file)
  if (upload) return { source: { kind: 'upload', upload } as const, fields: <UploadText upload={upload} /> }
  const source: ImportSource =
    kind === 'store' ? { kind, sourcePath: sourcePath.trim() } : { kind: 'computer', file, unfinished }
  const fields = (
    <>
      <SelectField
        label="Image from"
        value={kind}
        options={[...kinds]}
        onChange={(value) => setKind(kinds.find((one) => one.value === value)?.value ?? kind)}
      />
      {kind === 'computer' ? (
        <FileField label="Image" onChoose={setFile} hint={fileHint(unfinished)} />
      ) : (
        <TextField
          label="Image"
          value={sourcePath}
          onChange={setSourcePath}
          mono
          maxLength={pathMax}
          placeholder="imports/linux.raw"
          hint="An image of any format that Bootfarm reads, in the store directory of that edge."
        />
      )}
    </>
  )
  return { source, fields }
}

/** False while a field of it is empty. */
export function isChosen(source: ImportSource): boolean {
  if (source.kind === 'computer') return source.file !== null
  return source.kind === 'upload' || source.sourcePath !== ''
}

function UploadText({ upload: { name, sizeBytes } }: { upload: Upload }) {
  return (
    <p className="break-words text-ink-soft text-sm">
      {name} ({formatBytes(sizeBytes)}) has arrived.
    </p>
  )
}

function fileHint(unfinished: Upload | null): string {
  if (!unfinished)
    return 'An image of any format that Bootfarm reads. It is sent to the control plane, where the edge fetches it.'
  const percent = percentOf(unfinished.receivedBytes, unfinished.sizeBytes)
  return `${percent} % of this file arrived before. The upload continues there.`
}

/** The upload of this file that has begun, and may continue. */
function useUnfinished(vdiskId: string, file: File | null): Upload | null {
  const { data } = useQuery(useTRPC().upload.list.queryOptions({ vdiskId }))
  if (!file) return null
  const isSame = (upload: Upload) =>
    !upload.isComplete &&
    otherFileProblem(file, upload, recallUpload(browserStorage(), upload.id, parseFollowingImport)) === null
  return data?.items.find(isSame) ?? null
}
