'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { FormDialog } from '../../components/dialog'
import { Table } from '../../components/table'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { formProblem } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'

type Planned = RouterOutputs['discovered']['previewRules']['devices'][number]

/** Shows what the rules would do to those that wait, and does it. */
export function RunRulesDialog({ siteId, onClose }: { siteId: string; onClose: () => void }) {
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
              { title: 'Machine', cell: ({ mac }) => <span className="font-mono text-xs">{mac}</span> },
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
