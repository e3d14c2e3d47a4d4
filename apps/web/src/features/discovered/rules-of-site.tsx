'use client'

import { useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { Icon } from '../../components/icon'
import { EmptyState, ErrorState, LoadingState, Panel, Skeleton } from '../../components/page'
import { Table } from '../../components/table'
import { Mono } from '../../components/tag'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { formProblem, type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { RuleDialog } from './rule-dialog'
import { actionText, conditionText, moved, type Rule } from './rule-text'

interface Editing {
  /** For the rule being edited; the number of rules for a new one. */
  index: number
  rule: Rule | null
}

interface Site {
  siteId: string
  siteName: string
}

export function RulesOfSite(site: Site) {
  const query = useQuery(useTRPC().discovered.rules.queryOptions({ siteId: site.siteId }))
  if (query.data === undefined)
    return query.isPending ? (
      <LoadingState label="Loading rules">
        <Skeleton className="h-64 w-full rounded-lg" />
      </LoadingState>
    ) : (
      <ErrorState title="Could not load the rules." text={readableError(query.error)} onRetry={() => query.refetch()} />
    )
  return <Rules {...site} {...query.data} />
}

function Rules({ siteId, siteName, rules, revision }: Site & { rules: Rule[]; revision: string }) {
  const mayChange = useMay('discovery.rules')
  const nameOf = useTargetNames(rules)
  const [editing, setEditing] = useState<Editing | null>(null)
  const [running, setRunning] = useState(false)
  const save = useSave({ isEditing: editing !== null, onSaved: () => setEditing(null) })
  const put = (changed: Rule[]) => save.mutate({ siteId, revision, rules: changed })
  return (
    <Panel
      title={`Rules of ${siteName}`}
      flush
      aside={
        <RulesActions
          canRun={rules.length > 0}
          onRun={() => setRunning(true)}
          onAdd={() => setEditing({ index: rules.length, rule: null })}
        />
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

interface RulesActionsProps {
  canRun: boolean
  onRun: () => void
  onAdd: () => void
}

function RulesActions({ canRun, onRun, onAdd }: RulesActionsProps) {
  const mayChange = useMay('discovery.rules')
  const mayRun = useMay('discovery.decide')
  return (
    <>
      {mayRun && canRun && (
        <Button small onClick={onRun}>
          Apply to waiting machines
        </Button>
      )}
      {mayChange && (
        <Button small look="primary" onClick={onAdd}>
          Add rule
        </Button>
      )}
    </>
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

/** If a dialog is open, it shows why nothing was saved. */
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

interface RuleRowProps {
  /** From 1. */
  number: number
  count: number
  rule: Rule
  nameOf: (id: string) => string
  busy: boolean
  /** Absent for those who may only look. */
  onMove?: (by: -1 | 1) => void
  onEdit?: () => void
  onDelete?: () => void
}

function RuleRow({ number, count, rule, nameOf, busy, onMove, onEdit, onDelete }: RuleRowProps) {
  const conditions = conditionText(rule.conditions)
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 border-line border-t px-4 py-3 first:border-t-0">
      <span className="w-5 text-right text-ink-faint">{number}</span>
      <div className="min-w-0 flex-1 basis-64">
        <p className="font-medium text-ink">{actionText(rule.action, nameOf)}</p>
        <p className="break-words text-ink-soft">
          {conditions.length === 0 ? 'All machines' : `When ${conditions.join(' and ')}`}
        </p>
      </div>
      {onMove && onEdit && onDelete && (
        <div className="flex items-center gap-1">
          <Move label={`Move rule ${number} up`} turned disabled={busy || number === 1} onClick={() => onMove(-1)} />
          <Move label={`Move rule ${number} down`} disabled={busy || number === count} onClick={() => onMove(1)} />
          <Button look="bare" small aria-label={`Edit rule ${number}`} onClick={onEdit}>
            Edit
          </Button>
          <Button look="bare" small aria-label={`Delete rule ${number}`} disabled={busy} onClick={onDelete}>
            Delete
          </Button>
        </div>
      )}
    </li>
  )
}

interface MoveProps {
  label: string
  turned?: boolean
  disabled: boolean
  onClick: () => void
}

function Move({ label, turned = false, disabled, onClick }: MoveProps) {
  return (
    <Button look="bare" className="h-7! px-2" aria-label={label} title={label} disabled={disabled} onClick={onClick}>
      <span className={turned ? '-rotate-90' : 'rotate-90'}>
        <Icon name="chevron" size={12} />
      </span>
    </Button>
  )
}

type Planned = RouterOutputs['discovered']['previewRules']['devices'][number]

/** Shows what the rules would do to those that wait, and does it. */
function RunRulesDialog({ siteId, onClose }: { siteId: string; onClose: () => void }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const preview = useQuery(trpc.discovered.previewRules.queryOptions({ siteId }))
  const run = useMutation(
    trpc.discovered.applyRules.mutationOptions({
      onSuccess: ({ adoptedCount, ignoredCount }) => {
        for (const filter of [trpc.discovered.pathFilter(), trpc.device.pathFilter(), trpc.site.pathFilter()])
          void queryClient.invalidateQueries(filter)
        showToast({
          title: `${countOf(adoptedCount, 'machine')} adopted, ${ignoredCount} ignored.`,
          tone: 'ready',
        })
        onClose()
      },
    }),
  )
  const devices = preview.data?.devices ?? []
  const concerned = devices.filter(({ outcome }) => outcome === 'adopt' || outcome === 'ignore')
  const failed = preview.error ?? run.error
  return (
    <FormDialog
      title="Apply rules to waiting machines?"
      action={concerned.length === 0 ? 'Apply rules' : `Apply to ${countOf(concerned.length, 'machine')}`}
      disabled={concerned.length === 0}
      busy={run.isPending}
      failure={formProblem(failed)}
      wide
      onClose={onClose}
      onSubmit={() => run.mutate({ siteId })}
    >
      {preview.isPending && <p className="text-ink-soft">Loading the preview …</p>}
      {preview.data && devices.length === 0 && <p className="text-ink-soft">No machines are waiting.</p>}
      {devices.length > 0 && (
        <div className="rounded-lg border border-line">
          <Table
            label="Preview of the rules"
            rows={devices}
            rowKey={({ id }) => id}
            columns={[
              { title: 'Machine', cell: ({ mac }) => <Mono>{mac}</Mono> },
              {
                title: 'Vendor class',
                from: 'sm',
                cell: ({ vendorClass }) => (
                  <span className="block max-w-44 truncate font-mono text-2xs text-ink-faint">{vendorClass}</span>
                ),
              },
              { title: 'Rule', align: 'right', cell: ({ ruleNumber }) => ruleNumber ?? '–' },
              { title: 'Result', wide: true, cell: (device) => outcomeText(device) },
            ]}
          />
        </div>
      )}
    </FormDialog>
  )
}

function outcomeText({ outcome, name }: Planned): string {
  switch (outcome) {
    case 'adopt':
      return `adopt as ${name}`
    case 'ignore':
      return 'ignored'
    case 'full':
      return 'keep waiting: the site’s device limit is reached'
    case 'none':
      return 'keep waiting: no rule matches'
  }
}
