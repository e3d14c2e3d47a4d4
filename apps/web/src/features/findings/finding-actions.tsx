'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { Instant } from '../../components/instant'
import { LoadingState, Skeleton } from '../../components/page'
import { useToast } from '../../components/toast'
import { formProblem, readableError, useTRPC } from '../../lib/trpc'
import { type AuditEntry, actionText, objectText } from '../audit/audit-text'
import { useMay } from '../session/use-may'
import type { FindingDetail } from './finding-text'

/** Acknowledge, mute or unmute, and name the change that explains it. Nothing once the finding is closed. */
export function FindingActions({ finding }: { finding: FindingDetail }) {
  const { id: findingId, revision, state } = finding
  const trpc = useTRPC()
  const options = useAfterChange(findingId)
  const acknowledge = useMutation(trpc.finding.acknowledge.mutationOptions(options))
  const mute = useMutation(trpc.finding.mute.mutationOptions(options))
  const unmute = useMutation(trpc.finding.unmute.mutationOptions(options))
  const mayReadAudit = useMay('audit.read')
  if (state === 'closed') return null
  const asked = { findingId, revision }
  return (
    <>
      {state === 'open' && (
        <Button look="primary" busy={acknowledge.isPending} onClick={() => acknowledge.mutate(asked)}>
          Acknowledge
        </Button>
      )}
      {state === 'muted' ? (
        <Button busy={unmute.isPending} onClick={() => unmute.mutate(asked)}>
          Unmute
        </Button>
      ) : (
        <Button busy={mute.isPending} onClick={() => mute.mutate(asked)}>
          Mute
        </Button>
      )}
      {mayReadAudit && <LinkChange finding={finding} />}
    </>
  )
}

/** Changes before the first boot with it, and shortly after. */
const beforeMs = 86_400_000
const afterMs = 3_600_000
const entriesShown = 25

function LinkChange({ finding }: { finding: FindingDetail }) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button onClick={() => setOpen(true)}>Link a change</Button>
      {open && <LinkDialog finding={finding} onClose={() => setOpen(false)} />}
    </>
  )
}

function LinkDialog({ finding, onClose }: { finding: FindingDetail; onClose: () => void }) {
  const { id: findingId, revision, auditEntryId, since } = finding
  const trpc = useTRPC()
  const [chosen, setChosen] = useState(auditEntryId)
  const { onSuccess } = useAfterChange(findingId)
  const at = Date.parse(since)
  const { data } = useQuery(
    trpc.audit.list.queryOptions({
      since: new Date(at - beforeMs).toISOString(),
      until: new Date(at + afterMs).toISOString(),
      limit: entriesShown,
    }),
  )
  const link = useMutation(
    trpc.finding.link.mutationOptions({
      onSuccess: (saved) => {
        onSuccess(saved)
        onClose()
      },
    }),
  )
  const entries = data?.items.filter(({ objectKind }) => objectKind !== 'finding') ?? []
  return (
    <FormDialog
      wide
      title="Link a change"
      action="Link change"
      busy={link.isPending}
      failure={formProblem(link.error)}
      onClose={onClose}
      onSubmit={() => link.mutate({ findingId, revision, auditEntryId: chosen })}
    >
      <p className="text-ink-soft text-sm">
        Changes of the audit log from a day before <Instant at={since} full /> until an hour after it.
      </p>
      {data ? (
        <Choices entries={entries} chosen={chosen} onChoose={setChosen} />
      ) : (
        <LoadingState label="Loading changes">
          <Skeleton className="h-24" />
        </LoadingState>
      )}
    </FormDialog>
  )
}

interface ChoicesProps {
  entries: AuditEntry[]
  chosen: string | null
  onChoose: (entryId: string | null) => void
}

function Choices({ entries, chosen, onChoose }: ChoicesProps) {
  return (
    <fieldset className="flex flex-col gap-2 text-sm">
      <legend className="sr-only">Change</legend>
      {entries.map((entry) => (
        <label key={entry.id} className="flex items-baseline gap-2">
          <input type="radio" name="entry" checked={chosen === entry.id} onChange={() => onChoose(entry.id)} />
          <span className="wrap-anywhere">
            {actionText(entry.action)}: {objectText(entry)}{' '}
            <span className="text-ink-faint text-xs">
              {entry.actorName}, <Instant at={entry.at} full />
            </span>
          </span>
        </label>
      ))}
      <label className="flex items-baseline gap-2">
        <input type="radio" name="entry" checked={chosen === null} onChange={() => onChoose(null)} />
        No change explains it
      </label>
    </fieldset>
  )
}

function useAfterChange(findingId: string) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return {
    onSuccess: (saved: FindingDetail) => {
      queryClient.setQueryData(trpc.finding.get.queryKey({ findingId }), saved)
      void queryClient.invalidateQueries(trpc.finding.pathFilter())
      void queryClient.invalidateQueries(trpc.audit.pathFilter())
    },
    onError: (error: unknown) => {
      void queryClient.invalidateQueries(trpc.finding.pathFilter())
      showToast({ title: 'Could not update the finding.', text: readableError(error), tone: 'failed' })
    },
  }
}
