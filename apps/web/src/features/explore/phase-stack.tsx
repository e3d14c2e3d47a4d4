'use client'

import { type BootPhase, bootPhaseText } from '@bootfarm/proto/boot-phases'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Table } from '../../components/table'
import { formatDuration } from '../../lib/format-quantity'
import { formatInstant } from '../../lib/format-time'
import { phaseColour } from '../boots/phase-colour'
import type { Exploration } from './heat-layout'
import { PromotionLines } from './promotions'

const heightPx = 150
const otherColour = 'var(--line-strong)'

interface Part {
  title: string
  colour: string
}

function phaseParts(phases: BootPhase[]): Part[] {
  return [
    ...phases.map((name) => ({ title: bootPhaseText(name).title, colour: phaseColour(name) })),
    { title: 'In no phase', colour: otherColour },
  ]
}

interface KnownPart extends Part {
  index: number
}
type Step = Exploration['steps'][number]

/** The mean of each phase of ready boots, one column for each step. */
export function PhaseStack({ exploration }: { exploration: Exploration }) {
  const { phases, steps } = exploration
  const [isTable, setIsTable] = useState(false)
  const parts = phaseParts(phases)
    .map((part, index) => ({ ...part, index }))
    .filter(({ index }) => steps.some(({ phasesUs }) => phasesUs[index]))
  return (
    <figure aria-label="Phases" className="flex min-w-0 flex-col gap-1.5">
      <figcaption className="flex items-start justify-between gap-3">
        <div>
          <h3 className="font-medium text-ink text-sm">Phases</h3>
          <p className="text-ink-faint text-xs">Mean of boots that became ready.</p>
        </div>
        <Button
          small
          look="bare"
          aria-label="Phases as a table"
          aria-pressed={isTable}
          onClick={() => setIsTable(!isTable)}
        >
          Table
        </Button>
      </figcaption>
      {isTable ? <PhaseTable parts={parts} steps={steps} /> : <PhaseColumns parts={parts} exploration={exploration} />}
    </figure>
  )
}

function PhaseTable({ parts, steps }: { parts: KnownPart[]; steps: Step[] }) {
  return (
    <div className="max-h-64 overflow-y-auto rounded-md border border-line">
      <Table
        label="Phases, as a table"
        rows={steps.filter(({ readyCount }) => readyCount > 0).toReversed()}
        rowKey={({ at }) => at}
        columns={[
          { title: 'Time', wide: true, cell: ({ at }) => instant(at) },
          ...parts.map(({ title, index }) => ({
            title,
            align: 'right' as const,
            cell: ({ phasesUs }: Step) => formatDuration(phasesUs[index] ?? 0),
          })),
        ]}
      />
    </div>
  )
}

function PhaseColumns({ parts, exploration }: { parts: KnownPart[]; exploration: Exploration }) {
  const { steps } = exploration
  const [chosen, setChosen] = useState<number | null>(null)
  const last = steps.length - 1
  const most = Math.max(1, ...steps.map(({ phasesUs }) => sum(phasesUs)))
  const index = Math.min(chosen ?? steps.findLastIndex(({ readyCount }) => readyCount > 0), last)
  const shown = steps[index]
  const choose = (next: number) => setChosen(Math.max(0, Math.min(last, next)))
  return (
    <>
      <Legend parts={parts} step={shown} at={instant(shown?.at)} />
      <div
        role="slider"
        tabIndex={0}
        aria-label="Phases: instant"
        aria-valuemin={1}
        aria-valuemax={steps.length}
        aria-valuenow={index + 1}
        aria-valuetext={`${instant(shown?.at)}: ${stepText(parts, shown)}`}
        className="relative flex items-end gap-px rounded-md"
        style={{ height: heightPx }}
        onKeyDown={(event) => {
          const move = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0
          if (move === 0) return
          event.preventDefault()
          choose(index + move)
        }}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect()
          choose(Math.floor(((event.clientX - box.left) / box.width) * steps.length))
        }}
      >
        {steps.map(({ at, phasesUs }, column) => (
          <span
            key={at}
            className={`flex min-w-0 flex-1 flex-col-reverse ${column === index ? 'outline outline-1 outline-ink' : ''}`}
          >
            {parts.map(({ title, colour, index: part }) => (
              <span key={title} style={{ background: colour, height: ((phasesUs[part] ?? 0) / most) * heightPx }} />
            ))}
          </span>
        ))}
        <PromotionLines {...exploration} />
      </div>
    </>
  )
}

function instant(at: string | undefined): string {
  return at === undefined ? '' : formatInstant(new Date(at), new Date())
}

function stepText(parts: KnownPart[], step: Step | undefined): string {
  if (step === undefined || step.readyCount === 0) return 'no boots'
  return parts.map(({ title, index }) => `${title} ${formatDuration(step.phasesUs[index] ?? 0)}`).join(', ')
}

interface LegendProps {
  parts: KnownPart[]
  step: Step | undefined
  at: string
}

function Legend({ parts, step, at }: LegendProps) {
  return (
    <div aria-hidden="true" className="flex min-h-4.5 flex-wrap gap-x-4 gap-y-0.5 text-ink-soft text-xs">
      {parts.map(({ title, colour, index }) => (
        <span key={title} className="flex items-center gap-1.5">
          <span className="size-2.5 rounded-xs" style={{ background: colour }} />
          {title}
          <b className="font-medium text-ink">
            {step && step.readyCount > 0 ? formatDuration(step.phasesUs[index] ?? 0) : '–'}
          </b>
        </span>
      ))}
      <span className="ml-auto whitespace-nowrap text-ink-faint">{at}</span>
    </div>
  )
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
