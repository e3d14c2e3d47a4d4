import { countOf, formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type Retention = RouterOutputs['retention']['get']
export type RetentionPreview = RouterOutputs['retention']['preview']

const keptReleasesMax = 1000
const trashDaysMax = 30
/** The first of them; all are in the API. */
const keptShownMax = 12

export function retentionSentence({ keptReleases, trashDays }: Retention): string {
  if (keptReleases === null) return 'All versions stay until somebody deletes them.'
  const stays =
    keptReleases === 1 ? 'The version released last stays' : `The last ${keptReleases} released versions stay`
  const then =
    trashDays === 0 ? 'cannot be restored' : `can be restored from the trash for ${countOf(trashDays, 'day')}`
  return `${stays}, and so does every version in use. Older ones are deleted, and ${then}.`
}

interface RetentionForm {
  choice: string
  keptReleases: string
  trashDays: string
}

export function formOf({ keptReleases, trashDays }: Retention): RetentionForm {
  const choice = keptReleases === null ? 'all' : 'last'
  return { choice, keptReleases: String(keptReleases ?? 5), trashDays: String(trashDays) }
}

/** Reads the fields; `problem` says which one is wrong. */
export function readForm(
  form: RetentionForm,
): { keptReleases: number | null; trashDays: number } | { problem: string } {
  const trashDays = wholeNumber(form.trashDays)
  if (form.choice === 'all') return { keptReleases: null, trashDays: trashDays ?? 7 }
  const keptReleases = wholeNumber(form.keptReleases)
  if (keptReleases === null || keptReleases < 1 || keptReleases > keptReleasesMax)
    return { problem: `Enter how many versions stay: 1 to ${keptReleasesMax}.` }
  if (trashDays === null || trashDays > trashDaysMax) return { problem: `Enter 0 to ${trashDaysMax} days.` }
  return { keptReleases, trashDays }
}

function wholeNumber(text: string): number | null {
  return /^\d{1,6}$/.test(text.trim()) ? Number(text) : null
}

/** What a run would do: versions that go first, then why the others stay. */
export function previewSentences({ versions, waitingCount, edges }: RetentionPreview): string[] {
  const going = versions.filter(({ goes }) => goes)
  const kept = versions.filter(({ goes }) => !goes)
  const later = waitingCount > 0 ? [`Checks ${countOf(waitingCount, 'more version')} in later runs.`] : []
  const numbers = going.map(({ number }) => number).join(', ')
  return [
    going.length === 0 ? 'Deletes no version now.' : `Deletes ${countOf(going.length, 'version')} now: ${numbers}.`,
    ...later,
    ...edges.map(
      ({ edgeName, siteName, reclaimableBytes }) =>
        `Frees at least ${formatBytes(reclaimableBytes)} at ${edgeName} (${siteName}), once they have left the trash.`,
    ),
    ...kept
      .slice(0, keptShownMax)
      .map(({ number, reasons }) => `Version ${number} stays. ${reasons.map(({ text }) => text).join(' ')}`),
    ...(kept.length > keptShownMax ? [`And ${kept.length - keptShownMax} more stay.`] : []),
  ]
}
