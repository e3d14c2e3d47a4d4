'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { type ReactNode, useState } from 'react'
import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import { Panel } from '../../components/panel'
import { useTRPC } from '../../lib/trpc'
import { AddEdge } from '../edges/add-edge'
import { useMay } from '../session/use-may'
import { guideSteps } from './guide-steps'

/** How soon a step that is done turns green. */
const lookAgainMs = 3_000
const dismissedKey = 'bootfarm-guide-dismissed'

/** From an empty organization to its first boot: each step looks at what is really there. Gone with the first ready boot. */
export function FirstRunGuide() {
  const trpc = useTRPC()
  const [dismissed, setDismissed] = useState(isDismissed)
  const may = useMay('site.change')
  const ready = useQuery(trpc.boot.list.queryOptions({ outcome: 'ready', limit: 1 }))
  const isNew = ready.data?.items.length === 0
  if (!may || dismissed || !isNew) return null
  return (
    <Steps
      onDismiss={() => {
        localStorage.setItem(dismissedKey, 'yes')
        setDismissed(true)
      }}
    />
  )
}

/** There is no such thing where the page is made on the server. */
function isDismissed(): boolean {
  return typeof window !== 'undefined' && localStorage.getItem(dismissedKey) === 'yes'
}

function Steps({ onDismiss }: { onDismiss: () => void }) {
  const trpc = useTRPC()
  const look = { refetchInterval: lookAgainMs }
  const farms = useQuery(trpc.farm.list.queryOptions({ limit: 1 }, look))
  const sites = useQuery(trpc.site.list.queryOptions({ limit: 1 }, look))
  const edges = useQuery(trpc.edge.list.queryOptions({ limit: 100 }, look))
  const vdisks = useQuery(trpc.vdisk.list.queryOptions({ limit: 100 }, look))
  const collections = useQuery(trpc.collection.list.queryOptions({ limit: 100 }, look))
  const devices = useQuery(trpc.device.list.queryOptions({ limit: 1 }, look))
  const boots = useQuery(trpc.boot.list.queryOptions({ limit: 1 }, look))
  useQuery(trpc.boot.list.queryOptions({ outcome: 'ready', limit: 1 }, look))
  const steps = guideSteps({
    farms: farms.data?.items ?? [],
    sites: sites.data?.items ?? [],
    edges: edges.data?.items ?? [],
    vdisks: vdisks.data?.items ?? [],
    collections: collections.data?.items ?? [],
    devices: devices.data?.items ?? [],
    boots: boots.data?.items ?? [],
  })
  const next = steps.findIndex(({ done }) => !done)
  return (
    <Panel
      title="To your first boot"
      aside={
        <Button className="h-7!" onClick={onDismiss}>
          Hide this guide
        </Button>
      }
    >
      <ol className="flex flex-col gap-3">
        {steps.map(({ key, title, help, done, href, action }, index) => (
          <li key={key} className="flex gap-3 text-sm">
            <StepMark number={index + 1} done={done} />
            <div className="min-w-0 flex-1">
              <p className={done ? 'text-ink-soft' : 'font-medium text-ink'}>{title}</p>
              {index === next && <p className="mt-0.5 text-ink-soft text-xs">{help}</p>}
            </div>
            {!done && (key === 'edge' ? <AddEdge look="quiet" /> : <StepLink href={href}>{action}</StepLink>)}
          </li>
        ))}
      </ol>
    </Panel>
  )
}

function StepMark({ number, done }: { number: number; done: boolean }) {
  return (
    <span
      className={`mt-px flex size-5 shrink-0 items-center justify-center rounded-full text-2xs ${done ? 'bg-ready-soft text-ready' : 'border border-line-strong text-ink-soft'}`}
    >
      {done ? <Icon name="check" size={12} /> : <span aria-hidden="true">{number}</span>}
      <span className="sr-only">{done ? 'done' : 'to do'}</span>
    </span>
  )
}

function StepLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <Link href={href} className="shrink-0 rounded text-sm underline underline-offset-4">
      {children}
    </Link>
  )
}
