'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { SelectField } from '../../components/field'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/page'
import { useFailureToast } from '../../components/toast'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { CaptureDialog } from './capture-dialog'
import { type Capture, captureText, copiedText, isActive } from './capture-text'

type DeviceDetail = RouterOutputs['device']['get']

/** Its steps are taken every few seconds. */
const refreshMs = 2000

/** The newest capture of a device's disk; null: there was none lately. */
export function useCapture(deviceId: string): Capture | null {
  const query = useQuery(
    useTRPC().diskCapture.get.queryOptions(
      { deviceId },
      { refetchInterval: ({ state }) => (state.data?.capture && isActive(state.data.capture) ? refreshMs : false) },
    ),
  )
  return query.data?.capture ?? null
}

/** Begins a capture, unless one is active. */
export function CaptureDisk({ device }: { device: DeviceDetail }) {
  const [isOpen, setOpen] = useState(false)
  const { farmId, siteId, collectionId } = device
  const capture = useCapture(device.id)
  if (!useMay('device.capture', { farmId, siteId, collectionId }) || (capture && isActive(capture))) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Capture disk</Button>
      {isOpen && <CaptureDialog device={device} onClose={() => setOpen(false)} />}
    </>
  )
}

/** The newest capture of the device's disk: kept by the API, so that it is here again after a reload. */
export function CapturePanel({ device }: { device: DeviceDetail }) {
  const capture = useCapture(device.id)
  const mayCapture = useMay('device.capture')
  if (!capture) return null
  const { state, untrusted, vdisk, askedBy, askedAt, deadlineAt } = capture
  const text = copiedText(capture)
  const look = { done: 'text-ready', failed: 'text-failed' }[state as string] ?? 'text-ink'
  return (
    <Panel title="Capture of its disk">
      <div className="flex flex-col gap-2 text-ink-soft text-sm">
        <p role="status" aria-label="Capture" className={`break-words ${look}`}>
          {captureText(capture, device.name)}
        </p>
        {text && <CopyBar capture={capture} text={text} />}
        {untrusted.remark && <p className="break-words font-mono text-xs">{untrusted.remark}</p>}
        {mayCapture && state === 'asking' && <Question capture={capture} />}
        {state === 'done' && vdisk && (
          <Link prefetch={false} href={`/vdisks/${vdisk.id}`} className="rounded text-ink underline underline-offset-4">
            {vdisk.name}
            {capture.version && `, version ${capture.version.number}`}
          </Link>
        )}
        <p className="break-words text-xs">
          Requested by {askedBy}, <Instant at={askedAt} />
          {isActive(capture) && (
            <>
              . This step ends by <Instant at={deadlineAt} /> at the latest
            </>
          )}
          .
        </p>
        {mayCapture && isActive(capture) && state !== 'undoing' && <CancelCapture device={device} />}
      </div>
    </Panel>
  )
}

function CopyBar({ capture: { copied }, text }: { capture: Capture; text: string }) {
  const percent = copied ? Math.floor((copied.bytes * 100) / Math.max(1, copied.totalBytes)) : null
  return (
    <div>
      <div
        role="progressbar"
        aria-label="Copy of the disk"
        aria-valuemin={0}
        aria-valuemax={100}
        {...(percent === null ? {} : { 'aria-valuenow': percent })}
        aria-valuetext={text}
        className="h-1.5 overflow-hidden rounded-full bg-line"
      >
        <div className="h-full rounded-full bg-live" style={{ width: `${percent ?? 0}%` }} />
      </div>
      <p className="mt-1 text-ink-soft text-xs">{text}</p>
    </div>
  )
}

const bootFilesOptions = [
  { value: 'none', label: 'without a kernel: the disk boots by itself' },
  { value: 'image', label: 'with the kernel on the disk, once more' },
]

function Question({ capture: { deviceId, question, disks } }: { capture: Capture }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const isDisk = question === 'disk'
  const options = isDisk ? disks.map((value) => ({ value, label: value })) : bootFilesOptions
  const [chosen, setChosen] = useState('')
  const value = options.find((option) => option.value === chosen)?.value ?? options[0]?.value ?? ''
  const answer = useMutation(
    trpc.diskCapture.answer.mutationOptions({
      onSuccess: () => void queryClient.invalidateQueries(),
      onError: useFailureToast('Could not continue the capture.'),
    }),
  )
  const given = isDisk ? { disk: value } : { bootFiles: value === 'image' ? ('image' as const) : ('none' as const) }
  return (
    <>
      <SelectField label={isDisk ? 'Disk' : 'Seal the version'} value={value} options={options} onChange={setChosen} />
      <div>
        <Button look="primary" busy={answer.isPending} onClick={() => answer.mutate({ deviceId, ...given })}>
          {isDisk ? 'Capture this disk' : 'Seal the version'}
        </Button>
      </div>
    </>
  )
}

function CancelCapture({ device }: { device: DeviceDetail }) {
  const queryClient = useQueryClient()
  const cancel = useMutation(
    useTRPC().diskCapture.cancel.mutationOptions({
      onSuccess: () => void queryClient.invalidateQueries(),
      onError: useFailureToast('Could not cancel the capture.'),
    }),
  )
  return (
    <div>
      <ConfirmButton
        label="Cancel capture"
        busy={cancel.isPending}
        title={`Cancel the capture of ${device.name}?`}
        action="Cancel capture"
        onConfirm={() => cancel.mutate({ deviceId: device.id })}
      >
        <p>The device boots as before. What was copied is deleted.</p>
      </ConfirmButton>
    </div>
  )
}
