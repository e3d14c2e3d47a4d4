import type { RouterInputs, RouterOutputs } from '../../lib/trpc'

export type MenuDetail = RouterOutputs['bootMenu']['get']
export type MenuFields = Pick<RouterInputs['bootMenu']['create'], 'name' | 'timeoutMs' | 'entries' | 'defaultEntry'>
type Starts = MenuFields['entries'][number]['starts']

export const entriesMax = 16
const timeoutSecondsMin = 1
const timeoutSecondsMax = 3600

/** An entry while it is edited: it keeps its key when it moves. */
export interface DraftEntry {
  key: number
  title: string
  starts: Starts
}

/** A menu while it is edited, with everything as it stands in the form. */
export interface MenuDraft {
  name: string
  timeoutSeconds: string
  entries: DraftEntry[]
  defaultKey: number
}

export function draftOf(menu: MenuDetail): MenuDraft {
  return {
    name: menu.name,
    timeoutSeconds: String(menu.timeoutMs / 1000),
    entries: menu.entries.map(({ title, starts }, key) => ({ key, title, starts: bare(starts) })),
    defaultKey: menu.defaultEntry,
  }
}

function bare(starts: MenuDetail['entries'][number]['starts']): Starts {
  if (starts.kind === 'local_disk') return { kind: 'local_disk' }
  return { kind: 'version', vdiskId: starts.vdiskId, versionId: starts.versionId }
}

/** A new menu starts with the machine's own disk, which exists on every farm. */
export function emptyDraft(): MenuDraft {
  return { name: '', timeoutSeconds: '10', entries: [localDisk(0)], defaultKey: 0 }
}

function localDisk(key: number): DraftEntry {
  return { key, title: 'Local disk', starts: { kind: 'local_disk' } }
}

export function withEntry(draft: MenuDraft, entry: Omit<DraftEntry, 'key'>): MenuDraft {
  const key = Math.max(-1, ...draft.entries.map((one) => one.key)) + 1
  return { ...draft, entries: [...draft.entries, { ...entry, key }] }
}

/** If the default entry is removed, the first remaining one becomes the default. */
export function withoutEntry(draft: MenuDraft, key: number): MenuDraft {
  const entries = draft.entries.filter((entry) => entry.key !== key)
  const defaultKey = draft.defaultKey === key ? (entries[0]?.key ?? 0) : draft.defaultKey
  return { ...draft, entries, defaultKey }
}

export function withChangedEntry(draft: MenuDraft, key: number, change: Partial<DraftEntry>): MenuDraft {
  return {
    ...draft,
    entries: draft.entries.map((entry) => (entry.key === key ? { ...entry, ...change } : entry)),
  }
}

/** One place up (-1) or down (1); at the end of the list it stays. */
export function withMovedEntry(draft: MenuDraft, key: number, by: -1 | 1): MenuDraft {
  const from = draft.entries.findIndex((entry) => entry.key === key)
  const to = from + by
  const [moved, other] = [draft.entries[from], draft.entries[to]]
  if (!moved || !other) return draft
  const entries = draft.entries.map((entry, index) => (index === from ? other : index === to ? moved : entry))
  return { ...draft, entries }
}

/** The API's input, or the reason why it is invalid, as a sentence. */
export function fieldsOf(draft: MenuDraft): { fields: MenuFields } | { problem: string } {
  const name = draft.name.trim()
  if (name === '') return { problem: 'Enter a name for the menu.' }
  const seconds = Number(draft.timeoutSeconds)
  const isRight = Number.isInteger(seconds) && seconds >= timeoutSecondsMin && seconds <= timeoutSecondsMax
  if (!isRight) return { problem: 'Enter a timeout from 1 to 3600 seconds.' }
  const defaultEntry = draft.entries.findIndex(({ key }) => key === draft.defaultKey)
  if (defaultEntry < 0) return { problem: 'Add at least one entry.' }
  for (const [index, entry] of draft.entries.entries()) {
    const problem = titleProblem(entry.title)
    if (problem) return { problem: `Entry ${index + 1}: ${problem}` }
  }
  const entries = draft.entries.map(({ title, starts }) => ({ title: title.trim(), starts }))
  return { fields: { name, timeoutMs: seconds * 1000, entries, defaultEntry } }
}

/** Why a loader could not show this; null where it can. */
export function titleProblem(title: string): string | null {
  if (title.trim() === '') return 'enter a title.'
  if (title.trim().length > 64) return 'shorten the title to 64 characters.'
  const strange = [...title].find((letter) => letter < ' ' || letter > '~')
  return strange ? `remove “${strange}”: boot loaders show plain ASCII letters, digits and signs only.` : null
}
