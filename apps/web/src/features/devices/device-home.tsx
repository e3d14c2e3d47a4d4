'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Button } from '../../components/button'
import { SelectField } from '../../components/field'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/page'
import { Tag } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { ObjectDialog, SentenceList, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { type DeviceHome, moveRefusal, moveSentences } from './home-text'

type DeviceDetail = RouterOutputs['device']['get']

const link = 'rounded text-ink underline decoration-line-strong underline-offset-4 hover:decoration-ink'

/** Returns whether the page should soon poll the result of a move. */
export function isHomeMoving({ home }: Pick<DeviceDetail, 'home'>): boolean {
  return home?.asked?.state === 'queued' || home?.asked?.state === 'running'
}

/**
 * Which edge keeps what the device writes, and how another one does. Where a site has one edge there is nothing to
 * choose.
 */
export function DeviceHomePanel({ device }: { device: DeviceDetail }) {
  const [isOpen, setOpen] = useState(false)
  const mayChange = useMay('device.change')
  const { home, siteEdges } = device
  const others = siteEdges.filter(({ id }) => id !== home?.edge.id)
  if (others.length < (home ? 1 : 2)) return null
  return (
    <Panel title="Persistent-write location">
      <div className="flex flex-col gap-2 text-ink-soft text-sm">
        {home ? <HomeFacts home={home} /> : <NoHome />}
        {home?.asked && <MoveState device={device} home={home} asked={home.asked} />}
        {home && mayChange && !isHomeMoving(device) && others.length > 0 && (
          <div>
            <Button onClick={() => setOpen(true)}>Move</Button>
          </div>
        )}
      </div>
      {home && isOpen && <MoveHomeDialog device={device} home={home} others={others} onClose={() => setOpen(false)} />}
    </Panel>
  )
}

function NoHome() {
  return (
    <p>
      None. Writes are discarded at reboot. The first persistent write assigns the device to one of the site’s edges.
    </p>
  )
}

function HomeFacts({ home: { edge, since, keeps, asked } }: { home: DeviceHome }) {
  return (
    <>
      <p className="break-words">
        {edge.isRemoved ? (
          <>
            {edge.name} <Tag tone="failed">removed</Tag>
          </>
        ) : (
          <Link prefetch={false} href={`/edges/${edge.id}`} className={link}>
            {edge.name}
          </Link>
        )}
        {since && (
          <>
            , since <Instant at={since} />
          </>
        )}
      </p>
      {/* What the edge itself has said is shown in place of what was not heard of it. */}
      {(keeps || asked?.state !== 'failed') && (
        <p className="break-words">
          {keeps ? `Stored there: ${keeps}.` : 'No stored writes are known. You can move this device to another edge.'}
        </p>
      )}
    </>
  )
}

interface MoveStateProps {
  device: DeviceDetail
  home: DeviceHome
  asked: NonNullable<DeviceHome['asked']>
}

/** Kept by the API: it is here again after a reload. */
function MoveState({ device, home, asked }: MoveStateProps) {
  const { state, untrusted, askedAt, askedBy, jobId } = asked
  const isMoving = isHomeMoving(device)
  const words = {
    queued: `Waiting for ${home.edge.name} to release the device${home.next ? ` to ${home.next.name}` : ''}.`,
    running: `${home.edge.name} is releasing the device${home.next ? ` to ${home.next.name}` : ''}.`,
    failed: `${home.edge.name} did not release the device. Nothing was changed.`,
    cancelled: 'The last move was cancelled. Nothing was changed.',
  }
  return (
    <div
      role="status"
      aria-label="Last move"
      className={`flex flex-col gap-1 rounded-md px-3 py-2 text-xs ${state === 'failed' ? 'bg-failed-soft text-failed' : isMoving ? 'bg-live-soft text-live' : 'bg-silent-soft text-silent'}`}
    >
      <p className="break-words">{words[state]}</p>
      {untrusted.message && <p className="break-words">{untrusted.message}</p>}
      <p className="break-words">
        Requested by {askedBy}, <Instant at={askedAt} />.
      </p>
      {isMoving && <CancelMove jobId={jobId} siteId={device.siteId} />}
    </div>
  )
}

function CancelMove({ jobId, siteId }: { jobId: string; siteId: string }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const mayCancel = useMay('vdisk.change', { siteId })
  const cancel = useMutation(
    trpc.storeJob.cancel.mutationOptions({
      onSettled: () => void queryClient.invalidateQueries(),
      onError: useFailureToast('Could not cancel the move.'),
    }),
  )
  if (!mayCancel) return null
  return (
    <div>
      <Button small busy={cancel.isPending} onClick={() => cancel.mutate({ jobId })}>
        Cancel move
      </Button>
    </div>
  )
}

interface MoveHomeDialogProps {
  device: RouterOutputs['device']['get']
  home: DeviceHome
  /** Edges that can be chosen. */
  others: { id: string; name: string }[]
  onClose: () => void
}

/** Makes another edge the write owner; what is lost and what is kept is shown above the button. */
function MoveHomeDialog({ device, home, others, onClose }: MoveHomeDialogProps) {
  const trpc = useTRPC()
  const [chosenId, setChosenId] = useState('')
  const target = others.find(({ id }) => id === chosenId) ?? others[0]
  const move = useMutation(trpc.device.moveHome.mutationOptions({ onSuccess: useSaved(onClose) }))
  const giveUp = home.edge.isRemoved
  const given = { deviceName: device.name, home, targetName: target?.name ?? '' }
  const refusal = moveRefusal({ ...given, isRunning: device.now.state === 'running' })
  return (
    <ObjectDialog
      title={`Move the writes of ${device.name}`}
      action={giveUp ? 'Discard and move' : 'Move'}
      saving={move}
      disabled={!target || refusal !== null}
      onSave={() => target && move.mutate({ deviceId: device.id, edgeId: target.id, giveUp })}
      onClose={onClose}
    >
      <SelectField
        label="New edge"
        value={target?.id ?? ''}
        options={others.map(({ id, name }) => ({ value: id, label: name }))}
        onChange={setChosenId}
      />
      {refusal ? (
        <section aria-label="Preview" className="text-sm">
          <p className="break-words rounded-md bg-failed-soft px-3 py-2 text-failed">{refusal}</p>
        </section>
      ) : (
        <SentenceList sentences={moveSentences(given)} />
      )}
    </ObjectDialog>
  )
}
