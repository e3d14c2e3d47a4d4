'use client'

import { useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Panel } from '../../components/panel'
import { EmptyState, ErrorState, LoadingState, Skeleton } from '../../components/states'
import { useToast } from '../../components/toast'
import { formProblem, readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { RuleDialog } from './rule-dialog'
import { RuleRow } from './rule-row'
import { moved, type Rule } from './rule-text'
import { RunRulesDialog } from './run-rules-dialog'

interface Editing {
  /** Of the rule that is changed; as many as there are for a new one. */
  index: number
  rule: Rule | null
}

export function RulesOfSite({ siteId, siteName }: { siteId: string; siteName: string }) {
  const trpc = useTRPC()
  const mayChange = useMay('discovery.rules')
  const mayRun = useMay('discovery.decide')
  const query = useQuery(trpc.discovered.rules.queryOptions({ siteId }))
  const nameOf = useTargetNames(query.data?.rules ?? [])
  const [editing, setEditing] = useState<Editing | null>(null)
  const [running, setRunning] = useState(false)
  const save = useSave({ isEditing: editing !== null, onSaved: () => setEditing(null) })
  if (query.data === undefined)
    return query.isPending ? (
      <LoadingState label="Loading rules">
        <Skeleton className="h-64 w-full rounded-lg" />
      </LoadingState>
    ) : (
      <ErrorState title="Could not load the rules." text={readableError(query.error)} onRetry={() => query.refetch()} />
    )
  const { rules, revision } = query.data
  const put = (changed: Rule[]) => save.mutate({ siteId, revision, rules: changed })
  return (
    <Panel
      title={`Rules of ${siteName}`}
      flush
      aside={
        <>
          {mayRun && rules.length > 0 && (
            <Button className="h-7!" onClick={() => setRunning(true)}>
              Apply to waiting machines
            </Button>
          )}
          {mayChange && (
            <Button className="h-7!" look="primary" onClick={() => setEditing({ index: rules.length, rule: null })}>
              Add rule
            </Button>
          )}
        </>
      }
    >
      {rules.length === 0 ? (
        <EmptyState title="No rules yet." text="Without a rule, each discovered machine waits for a decision." />
      ) : (
        <ol aria-label="Rules in order">
          {rules.map((rule, index) => (
            <RuleRow
              // biome-ignore lint/suspicious/noArrayIndexKey: a rule is its place and what it says
              key={`${index} ${JSON.stringify(rule)}`}
              number={index + 1}
              count={rules.length}
              rule={rule}
              nameOf={nameOf}
              busy={save.isPending}
              {...(mayChange && {
                onMove: (by: -1 | 1) => put(moved(rules, index, by)),
                onEdit: () => setEditing({ index, rule }),
                onDelete: () => put(rules.filter((_, place) => place !== index)),
              })}
            />
          ))}
        </ol>
      )}
      {editing && (
        <RuleDialog
          rule={editing.rule}
          siteId={siteId}
          nameOf={nameOf}
          busy={save.isPending}
          failure={formProblem(save.error)}
          onClose={() => {
            save.reset()
            setEditing(null)
          }}
          onSave={(rule) => put([...rules.slice(0, editing.index), rule, ...rules.slice(editing.index + 1)])}
        />
      )}
      {running && <RunRulesDialog siteId={siteId} onClose={() => setRunning(false)} />}
    </Panel>
  )
}

/** Returns the names of the collections and devices that the rules name. */
function useTargetNames(rules: Rule[]): (id: string) => string {
  const trpc = useTRPC()
  const actions = rules.map(({ action }) => action)
  const collectionIds = actions.flatMap((action) => (action.kind === 'adopt' ? action.collectionId : []))
  const deviceIds = actions.flatMap((action) => (action.kind === 'copy' ? action.templateDeviceId : []))
  const collections = useQueries({
    queries: [...new Set(collectionIds)].map((collectionId) => trpc.collection.get.queryOptions({ collectionId })),
  })
  const devices = useQueries({
    queries: [...new Set(deviceIds)].map((deviceId) => trpc.device.get.queryOptions({ deviceId })),
  })
  const names = new Map([...collections, ...devices].flatMap(({ data }) => (data ? [[data.id, data.name]] : [])))
  return (id) => names.get(id) ?? 'another one'
}

/** Where a dialog is open, it says why nothing was saved. */
function useSave({ isEditing, onSaved }: { isEditing: boolean; onSaved: () => void }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return useMutation(
    trpc.discovered.setRules.mutationOptions({
      onSuccess: (view, { siteId }) => {
        queryClient.setQueryData(trpc.discovered.rules.queryKey({ siteId }), view)
        onSaved()
      },
      onError: (error, { siteId }) => {
        void queryClient.invalidateQueries(trpc.discovered.rules.queryFilter({ siteId }))
        if (!isEditing) showToast({ title: 'Could not update the rules.', text: readableError(error), tone: 'failed' })
      },
    }),
  )
}
