import { describe, expect, test } from 'vitest'
import {
  draftOf,
  emptyDraft,
  fieldsOf,
  type MenuDetail,
  type MenuDraft,
  titleProblem,
  withChangedEntry,
  withEntry,
  withMovedEntry,
  withoutEntry,
} from './menu-draft.ts'

const local = { title: 'Local disk', starts: { kind: 'local_disk' as const } }
const linux = { title: 'Linux', starts: { kind: 'version' as const, vdiskId: 'v', versionId: null } }
const draft: MenuDraft = withEntry(withEntry({ ...emptyDraft(), name: 'Lab' }, linux), {
  ...linux,
  title: 'Old',
})
const titles = ({ entries }: MenuDraft) => entries.map(({ title }) => title)

describe('a menu in the form', () => {
  test('is what the API takes, without what only pages show', () => {
    const menu: MenuDetail = {
      id: 'm',
      farmId: 'f',
      farmName: 'Farm',
      name: 'Lab',
      timeoutMs: 30_000,
      defaultEntry: 1,
      entryCount: 2,
      defaultTitle: 'Linux',
      collectionCount: 0,
      deviceCount: 0,
      updatedAt: 'then',
      revision: 1,
      entries: [local, { ...linux, starts: { ...linux.starts, vdiskName: 'Linux', versionNumber: 3 } }],
      collections: [],
      devices: [],
    }
    const fields = { name: 'Lab', timeoutMs: 30_000, entries: [local, linux], defaultEntry: 1 }
    expect(fieldsOf(draftOf(menu))).toEqual({ fields })
  })

  test('keeps its default where entries move', () => {
    const moved = withMovedEntry({ ...draft, defaultKey: 1 }, 1, -1)
    expect(titles(moved)).toEqual(['Linux', 'Local disk', 'Old'])
    expect(fieldsOf(moved)).toMatchObject({ fields: { defaultEntry: 0 } })
  })

  test('stays as it is where an entry cannot move further', () => {
    expect(titles(withMovedEntry(draft, 0, -1))).toEqual(titles(draft))
    expect(titles(withMovedEntry(draft, 2, 1))).toEqual(titles(draft))
  })

  test('gives the default to the first one left where its entry is taken out', () => {
    const left = withoutEntry({ ...draft, defaultKey: 2 }, 2)
    expect([titles(left), left.defaultKey]).toEqual([['Local disk', 'Linux'], 0])
    expect(withEntry(left, local).entries.at(-1)?.key).toBe(2)
  })

  test.each([
    [{ name: '  ' }, 'Enter a name for the menu.'],
    [{ timeoutSeconds: '0' }, 'Enter a timeout from 1 to 3600 seconds.'],
    [{ timeoutSeconds: '1.5' }, 'Enter a timeout from 1 to 3600 seconds.'],
    [{ timeoutSeconds: '' }, 'Enter a timeout from 1 to 3600 seconds.'],
    [{ entries: [] }, 'Add at least one entry.'],
  ])('with %j has a problem', (change, problem) => {
    expect(fieldsOf({ ...draft, ...change })).toEqual({ problem })
  })

  test('says which entry has a title that a loader cannot show', () => {
    expect(fieldsOf(withChangedEntry(draft, 1, { title: 'Café' }))).toEqual({
      problem: expect.stringMatching(/^Entry 2: remove “é”/),
    })
    expect(titleProblem('x'.repeat(65))).toContain('64')
    expect(titleProblem('a ~!"{}')).toBeNull()
  })
})
