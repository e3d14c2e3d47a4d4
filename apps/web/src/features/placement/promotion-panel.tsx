'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Button, ObjectLink } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Tag } from '../../components/tag'
import { useFailureToast, useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { useMay } from '../session/use-may'
import { copyText, copyTones, whyText } from './copy-text'
import {
  bootsWithoutCopies,
  type LackingEdge,
  type Promotion,
  progressText,
  promotionTitle,
  stepText,
} from './promotion-text'

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
  const { since, until, askedBy, givenUp, lackingCount, lacking } = promotion
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  return (
    <Panel title={promotionTitle(promotion)} flush>
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 px-4 py-3 text-sm">
        <div className="flex min-w-0 flex-1 basis-72 flex-col gap-1">
          {givenUp ? (
            <p className="break-words text-failed">
              Given up at <Instant at={givenUp.at} full />: {givenUp.reason} Devices keep the version that they boot.
              Promote or roll back again to wait once more.
            </p>
          ) : (
            <p className="text-ink">
              {progressText(promotion)} At <Instant at={until} full /> the wait is given up, and devices keep the
              version that they boot.
            </p>
          )}
          <p className="text-ink-faint text-xs">
            requested by {askedBy}, <Instant at={since} />
          </p>
        </div>
        {mayChange && <PromotionActions vdisk={vdisk} promotion={promotion} />}
      </div>
      {lacking.length > 0 && (
        <div className="border-line border-t">
          <Table label="Edges that lack the version" columns={columns} rows={lacking} rowKey={({ edgeId }) => edgeId} />
        </div>
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
  {
    title: 'Edge',
    cell: ({ edgeId, edgeName, siteName }) => (
      <span className="flex flex-col">
        <ObjectLink href={`/edges/${edgeId}`}>{edgeName}</ObjectLink>
        <span className="text-ink-soft text-xs">{siteName}</span>
      </span>
    ),
  },
  {
    title: 'Copy',
    wide: true,
    cell: (edge) => (
      <span className="flex flex-wrap items-center gap-x-3 gap-y-1 whitespace-normal">
        <Tag tone={copyTones[edge.state]}>{copyText(edge)}</Tag>
        <span className="break-words text-ink-soft">{whyText(edge)}</span>
      </span>
    ),
  },
]

function PromotionActions({ vdisk, promotion }: PromotionPanelProps & { promotion: Promotion }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const { versionId, number, step, givenUp, lackingCount } = promotion
  const isRevert = step === 'revert'
  const onSettled = () => void queryClient.invalidateQueries()
  const onError = useFailureToast(`Could not change the ${isRevert ? 'rollback' : 'promotion'}.`)
  // The panel goes, and its button with it: the keyboard continues at the start of the page.
  const ended = (title: string) => () => {
    showToast({ title })
    document.getElementById('main')?.focus()
  }
  const released = { onSettled, onError, onSuccess: ended(`Production devices boot version ${number}.`) }
  const promote = useMutation(trpc.version.promote.mutationOptions(released))
  const revert = useMutation(trpc.version.revert.mutationOptions(released))
  const onSuccess = ended(`${stepText(promotion)} ${givenUp ? 'dismissed' : 'cancelled'}.`)
  const cancel = useMutation(trpc.version.cancelPromotion.mutationOptions({ onSettled, onError, onSuccess }))
  const isBusy = promote.isPending || revert.isPending || cancel.isPending
  const choose = isRevert ? revert : promote
  const now = isRevert ? `Roll back to version ${number} now` : `Promote version ${number} now`
  return (
    <div className="flex flex-wrap gap-2">
      <ConfirmButton
        label={isRevert ? 'Roll back now' : 'Promote now'}
        busy={isBusy}
        className="h-7!"
        title={`${now}?`}
        action={now}
        onConfirm={() => choose.mutate({ versionId, vdiskRevision: vdisk.revision, waitForPlacement: false })}
      >
        <p>
          {countOf(lackingCount, 'edge')} {lackingCount === 1 ? 'lacks' : 'lack'} the version. {bootsWithoutCopies}
        </p>
      </ConfirmButton>
      <Button small busy={isBusy} onClick={() => cancel.mutate({ vdiskId: vdisk.id, revision: vdisk.revision })}>
        {givenUp ? 'Dismiss' : isRevert ? 'Cancel rollback' : 'Cancel promotion'}
      </Button>
    </div>
  )
}
