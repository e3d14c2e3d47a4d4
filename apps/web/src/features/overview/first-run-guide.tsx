'use client'

import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import { Panel } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { useTRPC } from '../../lib/trpc'
import { AddEdge } from '../edges/add-edge'
import { useMay } from '../session/use-may'
import { type GuideStep, guideSteps } from './guide-steps'
import { firstFarmInput, firstReadyInput } from './overview-inputs'

/** How soon a completed step turns green. */
const lookAgainMs = 3_000
const dismissedKey = 'bootfarm-guide-dismissed'
const skippedKey = 'bootfarm-guide-skipped'

/** From an empty organization to its first boot: each step checks the real state. Hidden after the first ready boot. */
export function FirstRunGuide() {
  const trpc = useTRPC()
  const [dismissed, setDismissed] = useState(isDismissed)
  const may = useMay('site.change')
  const ready = useQuery(trpc.boot.list.queryOptions(firstReadyInput))
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

/** It does not exist when the page is rendered on the server. */
function isDismissed(): boolean {
  return typeof window !== 'undefined' && localStorage.getItem(dismissedKey) === 'yes'
}

/** Keys of steps, as this browser has kept them. */
function skippedSteps(): string[] {
  return typeof window === 'undefined' ? [] : (localStorage.getItem(skippedKey) ?? '').split(' ')
}

function Steps({ onDismiss }: { onDismiss: () => void }) {
  const steps = useSteps()
  const [skipped, setSkipped] = useState(skippedSteps)
  const skip = (keys: string[]) => {
    localStorage.setItem(skippedKey, keys.join(' '))
    setSkipped(keys)
  }
  if (steps === null) return null
  const next = steps.findIndex(({ key, done }) => !done && !skipped.includes(key))
  return (
    <Panel
      title="Get started"
      aside={
        <Button small onClick={onDismiss}>
          Hide guide
        </Button>
      }
    >
      <ol className="flex flex-col gap-3">
        {steps.map((step, index) => {
          const isSkipped = !step.done && skipped.includes(step.key)
          const others = skipped.filter((key) => key !== step.key)
          return (
            <li key={step.key} className="flex gap-3 text-sm">
              <StepMark number={index + 1} done={step.done} skipped={isSkipped} />
              <div className="min-w-0 flex-1">
                <p className={step.done || isSkipped ? 'text-ink-soft' : 'font-medium text-ink'}>{step.title}</p>
                {index === next && <p className="mt-0.5 text-ink-soft text-xs">{step.help}</p>}
              </div>
              {!step.done && (
                <StepActions
                  step={step}
                  skipped={isSkipped}
                  onSkip={() => skip(isSkipped ? others : [...others, step.key])}
                />
              )}
            </li>
          )
        })}
      </ol>
    </Panel>
  )
}

interface StepActionsProps {
  step: GuideStep
  skipped: boolean
  onSkip: () => void
}

/** An unneeded step is skipped, and can be resumed. */
function StepActions({ step, skipped, onSkip }: StepActionsProps) {
  const isLast = step.key === 'ready'
  return (
    <div className="flex shrink-0 items-center gap-3">
      {!skipped &&
        (step.key === 'edge' ? <AddEdge look="quiet" /> : <StepLink href={step.href}>{step.action}</StepLink>)}
      {!isLast && (
        <button
          type="button"
          className="rounded text-ink-soft text-sm underline underline-offset-4"
          aria-label={`${skipped ? 'Undo skip' : 'Skip'}: ${step.title}`}
          onClick={onSkip}
        >
          {skipped ? 'Undo skip' : 'Skip'}
        </button>
      )}
    </div>
  )
}

function StepMark({ number, done, skipped }: { number: number; done: boolean; skipped: boolean }) {
  return (
    <span
      className={`mt-px flex size-5 shrink-0 items-center justify-center rounded-full text-2xs ${done ? 'bg-ready-soft text-ready' : 'border border-line-strong text-ink-soft'}`}
    >
      {done ? <Icon name="check" size={12} /> : <span aria-hidden="true">{skipped ? '–' : number}</span>}
      <span className="sr-only">{done ? 'done' : skipped ? 'skipped' : 'to do'}</span>
    </span>
  )
}

function StepLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <PageLink href={href} className="shrink-0 rounded text-sm underline underline-offset-4">
      {children}
    </PageLink>
  )
}

/** The steps once all of them are known; null until then. */
function useSteps(): GuideStep[] | null {
  const trpc = useTRPC()
  const look = { refetchInterval: lookAgainMs }
  const farms = useQuery(trpc.farm.list.queryOptions(firstFarmInput, look))
  const sites = useQuery(trpc.site.list.queryOptions({ limit: 1 }, look))
  const edges = useQuery(trpc.edge.list.queryOptions({ limit: 100 }, look))
  const vdisks = useQuery(trpc.vdisk.list.queryOptions({ limit: 100 }, look))
  const collections = useQuery(trpc.collection.list.queryOptions({ limit: 100 }, look))
  const devices = useQuery(trpc.device.list.queryOptions({ limit: 1 }, look))
  const boots = useQuery(trpc.boot.list.queryOptions({ limit: 1 }, look))
  useQuery(trpc.boot.list.queryOptions(firstReadyInput, look))
  // Steps that turn green one after the other would move the buttons of those below them away under the pointer.
  if ([farms, sites, edges, vdisks, collections, devices, boots].some(({ isPending }) => isPending)) return null
  return guideSteps({
    farms: farms.data?.items ?? [],
    sites: sites.data?.items ?? [],
    edges: edges.data?.items ?? [],
    vdisks: vdisks.data?.items ?? [],
    collections: collections.data?.items ?? [],
    devices: devices.data?.items ?? [],
    boots: boots.data?.items ?? [],
  })
}
