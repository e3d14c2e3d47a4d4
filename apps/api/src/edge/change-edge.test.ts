import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { seenEdge, useTestSite } from '../../test/test-site.ts'
import type { EdgeDetail } from './schema.ts'

const site = useTestSite('admin')
const own = () => seenEdge(site().api, site().edge.edgeId)
const get = (edgeId: string) => site().query<EdgeDetail>('edge.get', { edgeId })

async function refusal(procedure: string, input: unknown) {
  const { status, text } = await site().tryMutation(procedure, input)
  return [status, text]
}

describe('an edge is renamed', () => {
  test('and has the new name from then on, with a new revision', async () => {
    const seen = await own()
    const renamed = await site().mutate('edge.update', { ...seen, name: ' vm in the cellar ' })
    expect(renamed).toEqual({ id: seen.edgeId, name: 'vm in the cellar', revision: seen.revision + 1 })
    expect(await get(seen.edgeId)).toMatchObject({ name: 'vm in the cellar' })
    // Its next start does not bring the host name back.
    await site().edge.heartbeat()
    expect(await get(seen.edgeId)).toMatchObject({ name: 'vm in the cellar', revision: seen.revision + 1 })
  })

  test('to a name that no other edge of its site has, unless that one is revoked', async () => {
    const other = await site().enrolEdge()
    await site().mutate('edge.update', { ...(await seenEdge(site().api, other.edgeId)), name: 'first' })
    const name = 'first'
    expect(await refusal('edge.update', { ...(await own()), name })).toEqual([
      409,
      expect.stringContaining('already has an edge named first'),
    ])
    await site().revokeEdge(other.edgeId)
    expect(await site().mutate('edge.update', { ...(await own()), name })).toMatchObject({ name })
  })

  test('by its revision, and only if there is a name', async () => {
    const seen = await own()
    await site().mutate('edge.update', { ...seen, name: 'new' })
    expect(await refusal('edge.update', { ...seen, name: 'newer' })).toEqual([
      409,
      expect.stringContaining('changed name'),
    ])
    expect(await refusal('edge.update', { ...seen, name: ' ' })).toEqual([
      400,
      expect.stringContaining('Enter a name for the edge.'),
    ])
    const absent = { edgeId: randomUUID(), revision: 1, name: 'x' }
    expect((await refusal('edge.update', absent))[0]).toBe(404)
  })
})

describe('an edge is revoked', () => {
  test('by its revision and its name, and by nothing less', async () => {
    const seen = await own()
    for (const [input, status, text] of [
      [{ edgeId: seen.edgeId }, 400, ''],
      [{ ...seen, name: 'edge-2' }, 400, `This edge is named ${seen.name}.`],
      [{ ...seen, revision: seen.revision + 1 }, 409, 'was changed in the meantime'],
    ] as const)
      expect(await refusal('edge.revoke', input)).toEqual([status, expect.stringContaining(text)])
    expect(await get(seen.edgeId)).toMatchObject({ revokedAt: null })
    const first = await site().mutate<{ revokedAt: string }>('edge.revoke', seen)
    expect(await get(seen.edgeId)).toMatchObject({ revokedAt: first.revokedAt })
  })

  test('only once', async () => {
    const first = await site().mutate('edge.revoke', await own())
    expect(await site().mutate('edge.revoke', await own())).toEqual(first)
  })
})
