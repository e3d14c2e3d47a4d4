'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Button, ObjectLink } from '../../components/button'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Tag } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { useMay } from '../session/use-may'
import { copyText, copyTones, lackText, remedyText } from './copy-text'
import { type LackingEdge, type Promotion, promotionTitle } from './promotion-text'

/** While it waits. */
const waitingRefreshMs = 2000

interface PromotionPanelProps {
  vdisk: { id: string; farmId: string; revision: number }
}

/** A promotion or a revert that waits for copies at edges, or was given up; nothing if there is none. */
export function PromotionPanel({ vdisk }: PromotionPanelProps) {
  const { data } = useQuery(
    useTRPC().version.promotion.queryOptions(
      { vdiskId: vdisk.id },
      {
        refetchInterval: ({ state }) => (state.data?.promotion ? waitingRefreshMs : heartbeatRefreshMs),
      },
    ),
  )
  if (!data?.promotion) return null
  return <WaitingPromotion vdisk={vdisk} promotion={data.promotion} />
}

function WaitingPromotion({ vdisk, promotion }: PromotionPanelProps & { promotion: Promotion }) {
  const { since, until, askedBy, givenUp, heldCount, lackingCount, lacking } = promotion
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  return (
    <Panel title={promotionTitle(promotion)} flush>
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 px-4 py-3 text-sm">
        <div className="flex min-w-0 flex-1 basis-72 flex-col gap-1">
          {givenUp ? (
            <p className="break-words text-failed">
              Given up at <Instant at={givenUp.at} full />: {givenUp.reason}
            </p>
          ) : (
            <p className="text-ink">
              {heldCount} of {countOf(heldCount + lackingCount, 'edge')} {heldCount === 1 ? 'holds' : 'hold'} it.
              Devices boot it once all do. It is given up at <Instant at={until} full />.
            </p>
          )}
          <p className="text-ink-faint text-xs">
            requested by {askedBy}, <Instant at={since} />
          </p>
        </div>
        {mayChange && <PromotionActions vdisk={vdisk} promotion={promotion} />}
      </div>
      {lacking.length > 0 && (
        <Table label="Edges that lack the version" columns={columns} rows={lacking} rowKey={({ edgeId }) => edgeId} />
      )}
      {lackingCount > lacking.length && (
        <p className="border-line border-t px-4 py-2 text-ink-soft text-xs">
          {countOf(lackingCount - lacking.length, 'more edge')} {lackingCount - lacking.length === 1 ? 'is' : 'are'} not
          shown.
        </p>
      )}
    </Panel>
  )
}

const columns: Column<LackingEdge>[] = [
  { title: 'Edge', cell: ({ edgeId, edgeName }) => <ObjectLink href={`/edges/${edgeId}`}>{edgeName}</ObjectLink> },
  { title: 'Site', cell: ({ siteName }) => siteName },
  { title: 'Copy', cell: (edge) => <Tag tone={copyTones[edge.state]}>{copyText(edge)}</Tag> },
  { title: 'Why', wide: true, cell: (edge) => <span className="break-words">{whyText(edge)}</span> },
]

function whyText(edge: LackingEdge): string {
  const why = lackText(edge)
  const remedy = remedyText(edge)
  return [why && `${why}.`, remedy].filter(Boolean).join(' ')
}

function PromotionActions({ vdisk, promotion }: PromotionPanelProps & { promotion: Promotion }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const onSettled = () => void queryClient.invalidateQueries()
  const onError = useFailureToast('Could not change the promotion.')
  const options = { onSettled, onError }
  const promote = useMutation(trpc.version.promote.mutationOptions(options))
  const revert = useMutation(trpc.version.revert.mutationOptions(options))
  const cancel = useMutation(trpc.version.cancelPromotion.mutationOptions(options))
  const isBusy = promote.isPending || revert.isPending || cancel.isPending
  const { versionId, step, givenUp } = promotion
  const choose = step === 'revert' ? revert : promote
  return (
    <div className="flex flex-wrap gap-2">
      <Button
        small
        busy={isBusy}
        onClick={() => choose.mutate({ versionId, vdiskRevision: vdisk.revision, waitForPlacement: false })}
      >
        Boot it now
      </Button>
      <Button small busy={isBusy} onClick={() => cancel.mutate({ vdiskId: vdisk.id, revision: vdisk.revision })}>
        {givenUp ? 'Dismiss' : 'Cancel'}
      </Button>
    </div>
  )
}
