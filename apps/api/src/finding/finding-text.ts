import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import type { Factor } from './detect/class-watch.ts'
import type { FindingEvidence } from './schema.ts'

/** A finding in words. */

const partTitles = { storage: 'storage', send: 'sending', network: 'the network', turnaround: 'the device' } as const
/** A smaller part does not explain a phase. */
const explainingShare = 0.5

export function sentenceOf(kind: 'slower' | 'failing', valueName: string, evidence: FindingEvidence): string {
  return kind === 'slower' ? slowerSentence(valueName, evidence) : failingSentence(valueName, evidence)
}

function slowerSentence(valueName: string, { total, phases }: FindingEvidence): string {
  if (!total) return `Boots take longer since ${valueName}.`
  const grown = total.afterUs - total.beforeUs
  const percent = Math.round((100 * grown) / Math.max(1, total.beforeUs))
  const whole = `Boots take ${secondsText(grown)} (${percent} %) longer since ${valueName}`
  const [worst] = phases.toSorted((a, b) => growth(b) - growth(a))
  if (!worst || growth(worst) <= 0) return `${whole}.`
  const [part] = worst.parts.toSorted((a, b) => growth(b) - growth(a))
  const isExplained = part && growth(part) >= explainingShare * growth(worst)
  const of = isExplained
    ? `, of which ${partTitles[part.name]} +${secondsText(Math.min(growth(part), growth(worst)))}`
    : ''
  return `${whole}: ${bootPhaseText(worst.name).title} +${secondsText(growth(worst))}${of}.`
}

function failingSentence(valueName: string, evidence: FindingEvidence): string {
  const { failedAfter, after, failedBefore, before, failedPhase } = evidence
  const where = failedPhase ? `, most of them in ${bootPhaseText(failedPhase).title}` : ''
  const since = `${failedAfter} of ${after.length} boots failed since ${valueName}${where}`
  return `${since}; before, ${failedBefore} of ${before.length}.`
}

function growth({ beforeUs, afterUs }: { beforeUs: number; afterUs: number }): number {
  return afterUs - beforeUs
}

function secondsText(us: number): string {
  const seconds = us / 1_000_000
  return seconds >= 10 ? `${Math.round(seconds)} s` : `${seconds.toFixed(1)} s`
}

/** @param known names of versions and of changes, by id */
export function valueNameOf(factor: Factor, value: string, known: ReadonlyMap<string, string>): string {
  switch (factor) {
    case 'version':
      return known.get(value) ?? 'a version that is gone'
    case 'edge_release':
      return `edge release ${value}`
    case 'setting':
      return known.get(value) ?? 'a change of settings'
    case 'segment':
      return `the boots in segment ${value}`
  }
}
