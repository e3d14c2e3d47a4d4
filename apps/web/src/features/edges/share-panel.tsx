'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { Facts, Panel } from '../../components/page'
import { Tag } from '../../components/tag'
import { countOf, formatDuration } from '../../lib/format-quantity'
import { formatAge } from '../../lib/format-time'
import { formProblem, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useNow } from '../../lib/use-now'
import { useMay } from '../session/use-may'

type EdgeDetail = RouterOutputs['edge']['get']

/** Which of the site's devices are this edge's. */
export function SharePanel({ edge }: { edge: EdgeDetail }) {
  const mayChange = useMay('edge.change', { siteId: edge.siteId }) && edge.revokedAt === null
  const [changing, setChanging] = useState(false)
  return (
    <Panel
      title="Load sharing"
      aside={
        mayChange && (
          <Button small onClick={() => setChanging(true)}>
            Edit
          </Button>
        )
      }
    >
      <Facts
        facts={[
          { label: 'Edges at this site', value: countOf(edge.siteEdgeCount, 'edge') },
          { label: 'Weight', value: edge.weight === 0 ? '0: only when no other edge is online' : edge.weight },
          {
            label: 'Preferred networks',
            value: edge.subnets.length === 0 ? 'none' : <Networks subnets={edge.subnets} />,
          },
          { label: 'New boots', value: edge.draining ? 'none while another edge is online' : 'by weight' },
          { label: 'Peers', value: <Peers edge={edge} /> },
          { label: 'Write caches copied to', value: <Copies copies={edge.copiedTo} /> },
          { label: 'Keeps copies of', value: <Copies copies={edge.cacheCopies} /> },
        ]}
      />
      {changing && <ShareDialog edge={edge} onClose={() => setChanging(false)} />}
    </Panel>
  )
}

function Networks({ subnets }: { subnets: string[] }) {
  return (
    <span className="flex flex-wrap gap-1.5">
      {subnets.map((subnet) => (
        <Tag key={subnet}>{subnet}</Tag>
      ))}
    </span>
  )
}

function Peers({ edge: { peers, siteEdgeCount } }: { edge: EdgeDetail }) {
  if (siteEdgeCount < 2) return <>none</>
  if (peers.length === 0) return <>none connected: each edge works independently</>
  return (
    <ul>
      {peers.map(({ edgeId, edgeName, heardMsAgo, booting }) => (
        <li key={edgeId}>
          {edgeName ?? 'an unknown edge'}{' '}
          <span className="text-ink-soft">
            seen {formatDuration(heardMsAgo * 1000)} ago, {countOf(booting, 'device')} booting
          </span>
        </li>
      ))}
    </ul>
  )
}

function Copies({ copies }: { copies: EdgeDetail['cacheCopies'] }) {
  const now = useNow(10_000)
  if (copies.length === 0) return <>none</>
  return (
    <ul>
      {copies.map(({ edgeId, edgeName, count, oldestAt }) => (
        <li key={edgeId}>
          {edgeName ?? 'an edge that was removed'}{' '}
          <span className="text-ink-soft">
            {countOf(count, 'write cache')}, {count > 1 && 'the oldest '}
            {formatAge(new Date(oldestAt), now)}
          </span>
        </li>
      ))}
    </ul>
  )
}

const weightMax = 100
/** 32 networks with their separators. */
const networksSizeMax = 700

function ShareDialog({ edge, onClose }: { edge: EdgeDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  // The edge's, when the form was filled.
  const [revision] = useState(edge.revision)
  const [weight, setWeight] = useState(String(edge.weight))
  const [networks, setNetworks] = useState(edge.subnets.join(', '))
  const save = useMutation(
    trpc.edge.setShare.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(trpc.edge.pathFilter())
        void queryClient.invalidateQueries(trpc.site.pathFilter())
        onClose()
      },
    }),
  )
  const isWeight = /^\d{1,3}$/.test(weight.trim()) && Number(weight) <= weightMax
  return (
    <FormDialog
      title={`Load sharing of ${edge.name}`}
      action="Save"
      busy={save.isPending}
      disabled={!isWeight}
      failure={formProblem(save.error)}
      onClose={onClose}
      onSubmit={() =>
        save.mutate({
          edgeId: edge.id,
          revision,
          weight: Number(weight),
          subnets: networks.split(/[\s,]+/).filter(Boolean),
        })
      }
    >
      <TextField
        label="Weight, 0 to 100"
        value={weight}
        onChange={setWeight}
        maxLength={3}
        hint="Devices are distributed by weight. 0: only when no other edge is online."
      />
      <TextField
        label="Preferred networks"
        value={networks}
        onChange={setNetworks}
        placeholder="none, or 10.20.0.0/16, 10.21.0.0/16"
        maxLength={networksSizeMax}
        mono
        hint="Devices in these networks boot from this edge while it is online, regardless of weight."
      />
    </FormDialog>
  )
}
