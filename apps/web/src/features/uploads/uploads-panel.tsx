'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/page'
import { useFailureToast } from '../../components/toast'
import { formatBytes } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { parseFollowingImport } from './following-import'
import { browserStorage, forgetUpload, otherFileProblem, recallUpload } from './remembered-uploads'
import { tabUploads, useTabUpload } from './tab-uploads'
import { busyText, percentOf, progressText, stopText } from './upload-text'
import { type Upload, useSendUpload } from './use-send-upload'

/** How soon the uploads of others advance here, and how soon an import takes one. */
const refreshMs = 5000

interface UploadsPanelProps {
  vdisk: { id: string; farmId: string }
  /** Opens the import of a complete upload. */
  onImport: (upload: Upload) => void
}

/** The images that were uploaded for a vDisk and are not imported yet; nothing where there are none. */
export function UploadsPanel({ vdisk, onImport }: UploadsPanelProps) {
  const trpc = useTRPC()
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  const { data } = useQuery(
    trpc.upload.list.queryOptions(
      { vdiskId: vdisk.id },
      { enabled: mayChange, refetchInterval: ({ state }) => (state.data?.items.length ? refreshMs : false) },
    ),
  )
  if (!mayChange || !data || data.items.length === 0) return null
  return (
    <Panel title="Uploads" aside="Images that are not imported yet" flush>
      <ul aria-label="Uploads">
        {data.items.map((upload) => (
          <UploadRow key={upload.id} upload={upload} onImport={() => onImport(upload)} />
        ))}
      </ul>
    </Panel>
  )
}

function UploadRow({ upload, onImport }: { upload: Upload; onImport: () => void }) {
  const { name, sizeBytes, createdBy, createdAt, expiresAt, isComplete } = upload
  const here = useTabUpload()
  const sent = here?.uploadId === upload.id ? here : null
  const known = sent?.progress ?? { sentBytes: upload.receivedBytes, bytesPerSecond: null }
  return (
    <li className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 border-line border-t px-4 py-3 text-sm first:border-t-0">
      <div className="flex min-w-0 flex-1 basis-72 flex-col gap-1">
        <span className="break-words font-medium text-ink">{name}</span>
        <p className="text-ink-faint text-xs">
          begun by {createdBy}, <Instant at={createdAt} />; kept until <Instant at={expiresAt} />
        </p>
        {isComplete ? (
          <p className="text-ink-soft text-xs">
            {upload.importJobId === null
              ? `${formatBytes(sizeBytes)} arrived. Import the image, or discard it.`
              : `${formatBytes(sizeBytes)} arrived. The image is being imported.`}
          </p>
        ) : (
          <>
            <UploadBar
              name={name}
              percent={percentOf(known.sentBytes, sizeBytes)}
              text={progressText(known, sizeBytes)}
            />
            <p role="status" className="break-words text-failed text-xs">
              {sent ? stopText(sent.progress) : <LeftUpload upload={upload} />}
            </p>
          </>
        )}
      </div>
      <UploadButtons upload={upload} sentPhase={sent?.progress.phase ?? null} onImport={onImport} />
    </li>
  )
}

function UploadBar({ name, percent, text }: { name: string; percent: number; text: string }) {
  return (
    <div className="max-w-md">
      <div
        role="progressbar"
        aria-label={`Upload of ${name}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
        aria-valuetext={text}
        className="mt-1 h-1.5 overflow-hidden rounded-full bg-line"
      >
        <div className="h-full rounded-full bg-live" style={{ width: `${percent}%` }} />
      </div>
      <p className="mt-1 text-ink-soft text-xs">{text}</p>
    </div>
  )
}

/** How an upload that this tab does not send continues. */
function LeftUpload({ upload }: { upload: Upload }) {
  const [stopped, setStopped] = useState<string | null>(null)
  useEffect(() => {
    setStopped(recallUpload(browserStorage(), upload.id, parseFollowingImport)?.stopped ?? null)
  }, [upload.id])
  return (
    <>
      {stopped && `${stopped} `}
      <span className="text-ink-soft">Choose {upload.name} again to continue.</span>
    </>
  )
}

interface UploadButtonsProps {
  upload: Upload
  /** Null: this tab does not send it. */
  sentPhase: string | null
  onImport: () => void
}

function UploadButtons({ upload, sentPhase, onImport }: UploadButtonsProps) {
  const { name, isComplete, importJobId } = upload
  if (importJobId !== null) return null
  const isSending = sentPhase === 'sending' || sentPhase === 'waiting'
  return (
    <div className="flex flex-wrap items-center gap-2">
      {sentPhase === 'waiting' && (
        <Button small aria-label={`Try now: ${name}`} onClick={() => tabUploads.retryNow()}>
          Try now
        </Button>
      )}
      {isSending && (
        <Button small aria-label={`Pause: ${name}`} onClick={() => tabUploads.pause()}>
          Pause
        </Button>
      )}
      {sentPhase === 'stopped' && (
        <Button small aria-label={`Continue: ${name}`} onClick={() => tabUploads.resume()}>
          Continue
        </Button>
      )}
      {sentPhase === null && !isComplete && <ContinueWithFile upload={upload} />}
      {isComplete && (
        <Button small look="primary" aria-label={`Import: ${name}`} onClick={onImport}>
          Import
        </Button>
      )}
      <DiscardUpload upload={upload} />
    </div>
  )
}

/** Takes the same file again: a page that was left has no file any more. */
function ContinueWithFile({ upload }: { upload: Upload }) {
  const send = useSendUpload()
  const fail = useFailureToast(`Could not continue ${upload.name}.`)
  const input = useRef<HTMLInputElement>(null)
  const continueWith = (file: File | undefined) => {
    if (!file) return
    const remembered = recallUpload(browserStorage(), upload.id, parseFollowingImport)
    const problem = otherFileProblem(file, upload, remembered)
    if (problem) fail(new Error(problem))
    else if (!send(upload, file, remembered?.import ?? null)) fail(new Error(busyText))
  }
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        onChange={({ target }) => {
          continueWith(target.files?.[0])
          // The same file chosen again is a change, too.
          target.value = ''
        }}
      />
      <Button small aria-label={`Continue: ${upload.name}`} onClick={() => input.current?.click()}>
        Continue
      </Button>
    </>
  )
}

function DiscardUpload({ upload }: { upload: Upload }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const { id: uploadId, vdiskId, name } = upload
  const remove = useMutation(
    trpc.upload.remove.mutationOptions({
      onSuccess: () => {
        forgetUpload(browserStorage(), uploadId)
        void queryClient.invalidateQueries({ queryKey: trpc.upload.pathFilter().queryKey })
      },
      onError: useFailureToast(`Could not discard ${name}.`),
    }),
  )
  return (
    <ConfirmButton
      label="Discard"
      className="h-7!"
      busy={remove.isPending}
      aria-label={`Discard: ${name}`}
      title={`Discard ${name}?`}
      action={`Discard ${name}`}
      onConfirm={() => {
        if (tabUploads.current()?.uploadId === uploadId) tabUploads.forget()
        remove.mutate({ vdiskId, uploadId })
      }}
    >
      <p>What arrived is deleted from the control plane. The file on your computer stays.</p>
    </ConfirmButton>
  )
}
