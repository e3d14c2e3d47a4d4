import { countOf, formatCount } from '../../lib/format-quantity'
import type { RouterInputs, RouterOutputs } from '../../lib/trpc'

export type ObjectiveView = RouterOutputs['objective']['ofSite']
export type Objective = RouterInputs['objective']['setOfSite']['objective']

export function objectiveSentence({ objective }: ObjectiveView): string {
  if (!objective) return 'No objective. Failed boots have alerts without one, slow boots do not.'
  const { percent, seconds, days } = objective
  return `${percent} % of boots are ready within ${seconds} s, over ${countOf(days, 'day')}.`
}

/** How the objective is met. */
export function attainmentSentence({ boots, missed, budgetLeftPercent }: ObjectiveView): string {
  if (budgetLeftPercent === null) return 'No boots have been counted yet.'
  // Rounded down: 99.96 % is not 100 %.
  const share = Math.floor(((boots - missed) / boots) * 1000) / 10
  const left =
    budgetLeftPercent < 0
      ? 'The objective is missed.'
      : `${budgetLeftPercent} % of the boots that may miss it are left.`
  return `${share} % of ${formatCount(boots)} were. ${left}`
}

export interface ObjectiveForm {
  choice: string
  percent: string
  seconds: string
  days: string
}

export function objectiveFormOf({ objective }: ObjectiveView): ObjectiveForm {
  const { percent = 95, seconds = 30, days = 30 } = objective ?? {}
  return { choice: objective ? 'on' : 'off', percent: String(percent), seconds: String(seconds), days: String(days) }
}

/** Reads the fields; `problem` says which one is wrong. */
export function readObjectiveForm(form: ObjectiveForm): { objective: Objective } | { problem: string } {
  if (form.choice === 'off') return { objective: null }
  const percent = /^\d{2}([.,]\d)?$/.test(form.percent.trim()) ? Number(form.percent.replace(',', '.')) : 0
  if (percent < 50) return { problem: 'Enter a share of 50 to 99.9 %.' }
  const [seconds, days] = [wholeNumber(form.seconds), wholeNumber(form.days)]
  if (seconds < 1 || seconds > 1800) return { problem: 'Enter a time of 1 to 1800 s.' }
  if (days < 1 || days > 90) return { problem: 'Enter 1 to 90 days.' }
  return { objective: { percent, seconds, days } }
}

function wholeNumber(text: string): number {
  return /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0
}
