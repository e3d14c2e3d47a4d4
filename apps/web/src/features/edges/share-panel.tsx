'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { Facts, Panel } from '../../components/panel'
import { Tag } from '../../components/tag'
import { countOf, formatDuration } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { ShareDialog } from './share-dialog'

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
          <Button className="h-7!" onClick={() => setChanging(true)}>
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
