import { formatCount } from '../../lib/format-quantity.ts'

/** A count of a sample as that of all boots: two digits of an estimate are known, and `about` says that it is one. */
export function countText(count: number, share: number): string {
  if (share >= 1 || count === 0) return formatCount(count)
  return `≈\u00a0${formatCount(roundedEstimate(count / share))}`
}

function roundedEstimate(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1)
  return Math.round(value / unit) * unit
}

/** What the figures of a page are made of. */
export function sampleText({
  bootCount,
  share,
  estimatedCount,
}: {
  bootCount: number
  share: number
  estimatedCount: number
}): string {
  const boots = (count: number) => `${formatCount(count)} ${count === 1 ? 'boot' : 'boots'}`
  if (share >= 1) return `All ${boots(bootCount)} of these filters.`
  const percent = (share * 100).toLocaleString('en', { maximumSignificantDigits: 2 })
  return `From a random sample of ${boots(bootCount)}: ${percent}\u00a0% of about ${boots(roundedEstimate(estimatedCount))}.`
}
