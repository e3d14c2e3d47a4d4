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
const urlMax = 2048
const kinds = [
  { value: 'computer', label: 'a file on this computer' },
  { value: 'store', label: 'a file in the edge’s store' },
  { value: 'url', label: 'a web server (URL)' },
  { value: 'empty', label: 'nowhere: an empty disk, for a capture' },
] as const

/** Where the image of an import is. */
export type ImportSource =
  | { kind: 'computer'; file: File | null; unfinished: Upload | null }
  | { kind: 'store'; sourcePath: string }
  | { kind: 'url'; url: string; sha256: string | null }
  | { kind: 'empty'; sizeBytes: number }
  | { kind: 'upload'; upload: Upload }

/** @param upload a complete one that is imported; null: the source is chosen */
export function useImportSource(vdiskId: string, upload: Upload | null) {
  const [kind, setKind] = useState<(typeof kinds)[number]['value']>('computer')
  const [sourcePath, setSourcePath] = useState('')
  const [url, setUrl] = useState('')
  const [sha256, setSha256] = useState('')
  const [size, setSize] = useState('')
  const [file, setFile] = useState<File | null>(null)
  const unfinished = useUnfinished(vdiskId, file)
  if (upload) return { source: { kind: 'upload', upload } as const, fields: <UploadText upload={upload} /> }
  const sources: Record<typeof kind, ImportSource> = {
    computer: { kind: 'computer', file, unfinished },
    store: { kind: 'store', sourcePath: sourcePath.trim() },
    url: { kind: 'url', url: url.trim(), sha256: sha256.trim() || null },
    empty: { kind: 'empty', sizeBytes: diskSizeOf(size) },
  }
  const fields = (
    <>
      <SelectField
        label="Image from"
        value={kind}
        options={[...kinds]}
        onChange={(value) => setKind(kinds.find((one) => one.value === value)?.value ?? kind)}
      />
      {kind === 'computer' && <FileField label="Image" onChoose={setFile} hint={fileHint(unfinished)} />}
      {kind === 'url' && <UrlFields url={url} onUrl={setUrl} sha256={sha256} onSha256={setSha256} />}
      {kind === 'empty' && (
        <TextField
          label="Size in bytes"
          value={size}
          onChange={setSize}
          mono
          placeholder="256060514304"
          hint="That of the machine’s disk: blockdev --getsize64 /dev/sda shows it there. It takes no space."
        />
      )}
      {kind === 'store' && (
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
  return { source: sources[kind], fields }
}

const sectorBytes = 512

/** 0: it is no size of a disk. */
function diskSizeOf(text: string): number {
  const size = Number(text)
  return Number.isSafeInteger(size) && size > 0 && size % sectorBytes === 0 ? size : 0
}

/** False while a field of it is empty. */
export function isChosen(source: ImportSource): boolean {
  if (source.kind === 'computer') return source.file !== null
  if (source.kind === 'empty') return source.sizeBytes > 0
  if (source.kind === 'url') return source.url !== ''
  return source.kind === 'upload' || source.sourcePath !== ''
}

interface UrlFieldsProps {
  url: string
  onUrl: (url: string) => void
  sha256: string
  onSha256: (sha256: string) => void
}

function UrlFields({ url, onUrl, sha256, onSha256 }: UrlFieldsProps) {
  return (
    <>
      <TextField
        label="URL"
        value={url}
        onChange={onUrl}
        mono
        maxLength={urlMax}
        placeholder="https://images.example/linux.qcow2"
        hint={
          <>
            The edge fetches it. By default only from public addresses; the edge’s option{' '}
            <code className="whitespace-nowrap">--import-from</code> allows others.
          </>
        }
      />
      <TextField
        label="SHA-256 (optional)"
        value={sha256}
        onChange={onSha256}
        mono
        hint="Of the whole file: other bytes are refused."
      />
    </>
  )
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
