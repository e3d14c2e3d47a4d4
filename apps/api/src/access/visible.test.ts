import { randomUUID } from 'node:crypto'
import { inOrganization } from '@bootfarm/db'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pcapOf } from '../../test/captures/pcap.ts'
import { EdgeClient } from '../../test/edge-client.ts'
import { ask, askByRest, inTurns, type Procedure, type Told } from '../../test/matrix/ask.ts'
import { apiKey, type Caller, person } from '../../test/matrix/callers.ts'
import { crossingsOf } from '../../test/matrix/crossings.ts'
import { rowsOf, secretsOf } from '../../test/matrix/tenant-secrets.ts'
import { inputOfSample, samples } from '../../test/procedure-samples.ts'
import type { SampleTenant } from '../../test/sample.ts'
import { createSampleTenant } from '../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { makeJoinToken } from '../../test/test-tenant.ts'
import { procedurePolicies } from '../http/trpc/policies.ts'
import { isMemberPolicy } from '../http/trpc/policy.ts'
import { organizationPlace } from '../rules/place.ts'
import type { ServerOptions } from '../server.ts'
import type { Checks } from './checks.ts'

// Another organization at every procedure, before both walls and before each of them alone. With the checks off the
// server takes the other organization's owner for the victim's, and lets everything pass: nothing but row-level
// security is left.

type Wall = 'both' | 'only its checks' | 'only row-level security' | 'neither'

interface Arena {
  api: TestApi
  victim: SampleTenant
  other: SampleTenant
  /** A person first, then an API key where there is one. */
  callers: Caller[]
  secrets: string[]
  rowsBefore: unknown
}

async function openArena(wall: Wall): Promise<Arena> {
  const border = { otherId: '', victimId: '' }
  const isChecked = wall === 'both' || wall === 'only its checks'
  const api = await startTestApi({
    rowSecurity: wall === 'both' || wall === 'only row-level security' ? 'on' : 'off',
    change: isChecked ? (options) => options : (options) => unchecked(options, border),
  })
  const victim = await createSampleTenant(api, `victim-${randomUUID()}`)
  const other = await createSampleTenant(api, `other-${randomUUID()}`)
  await nameUniquely(api, victim)
  const { organizationId } = other
  const callers = [await person(api, organizationId, { role: 'owner' })]
  if (wall === 'both') callers.push(await apiKey(api, organizationId, 'owner'))
  const secrets = await secretsOf(api.db, victim.organizationId, [organizationId])
  const rowsBefore = await rowsOf(api.db, victim.organizationId)
  Object.assign(border, { otherId: organizationId, victimId: victim.organizationId })
  return { api, victim, other, callers, secrets, rowsBefore }
}

/** A server without its own checks: every caller is the victim's owner, in the other organization's transactions. */
function unchecked(options: ServerOptions, border: { otherId: string; victimId: string }): ServerOptions {
  const { db } = options
  const transaction = (work: never, limits: never) =>
    border.otherId ? inOrganization(db, border.otherId, work, limits) : db.$transaction(work, limits)
  const foreignDb = new Proxy(db, {
    get: (target, name) => (name === '$transaction' ? transaction : Reflect.get(target, name, target)),
  })
  const checks: Checks = {
    authorise: async () => organizationPlace,
    actorOf: (actor) => ({
      ...actor,
      organizationId: border.victimId,
      grants: [{ role: 'owner', scope: organizationPlace }],
      onlyPermissions: null,
    }),
  }
  return { ...options, db: foreignDb, checks }
}

/** Names that nobody else has, so that they are known again wherever they turn up. */
async function nameUniquely({ db }: TestApi, tenant: SampleTenant): Promise<void> {
  const { organizationId, vdiskId, collectionId, edgeId, deviceIds } = tenant
  const of = (id: string) => ({ where: { organizationId, id }, data: { name: `secret-${randomUUID()}` } })
  await db.vdisk.updateMany(of(vdiskId))
  await db.collection.updateMany(of(collectionId))
  await db.edge.updateMany(of(edgeId))
  for (const id of deviceIds) await db.device.updateMany(of(id))
}

const procedures = procedurePolicies()

const isConfirmed = ({ policy }: Procedure) => isMemberPolicy(policy) && policy.confirmed === true

/** Returns the victim's secrets in an answer. The identity of the arena's actor is none. */
const leaksIn = ({ victim, secrets }: Arena, { text }: Told) =>
  secrets.filter((secret) => secret !== victim.organizationId && text.includes(secret))

async function download(url: string, headers: Record<string, string>): Promise<Told> {
  const answer = await fetch(url, { headers })
  const text = (await answer.text()).replace(/"requestId":"[0-9a-f-]+"/, '')
  return { status: answer.status, code: undefined, text }
}

/** Asks with the victim's id, and with one that nobody has. */
async function askForForeign(
  arena: Arena,
  procedure: Procedure,
  doors: (typeof ask | typeof askByRest)[] = [ask],
): Promise<[Told, Told, isKey: boolean][]> {
  const { api, victim, callers } = arena
  const { path } = procedure
  const { ownId, isLast } = samples[path] ?? {}
  const foreignId = ownId?.(victim)
  const answers: [Told, Told, isKey: boolean][] = []
  for (const [index, caller] of callers.entries())
    for (const door of doors) {
      const isKey = index > 0
      // A caller whose request ends his own membership is replaced each time.
      const { headers } = samples[path]?.isLast ? await person(api, caller.organizationId, caller.grant) : caller
      // With the victim's own ids in all other places too.
      const foreign = await door(api, procedure, { headers, input: inputOfSample(path, victim, foreignId) })
      if (foreign && isLast) answers.push([foreign, foreign, isKey])
      if (isLast) continue
      const absent = await door(api, procedure, { headers, input: inputOfSample(path, victim, randomUUID()) })
      if (foreign && absent) answers.push([foreign, absent, isKey])
    }
  return answers
}

/** Asks at home, with one of the further ids foreign, and absent. */
async function askAcross(arena: Arena, procedure: Procedure): Promise<[Told, Told][]> {
  const { api, victim, other, callers } = arena
  const { path } = procedure
  const { idName, ownId, isLast } = samples[path] ?? {}
  if (isLast) return []
  const input = inputOfSample(path, other, ownId?.(other)) as Record<string, unknown> | undefined
  const [headers = {}] = callers.map((caller) => caller.headers)
  const answers: [Told, Told][] = []
  for (const crossing of crossingsOf(path, { input: input ?? {}, idName, own: other, foreign: victim })) {
    const foreign = await ask(api, procedure, { headers, input: crossing.foreign })
    const absent = await ask(api, procedure, { headers, input: crossing.absent })
    answers.push([foreign, absent])
  }
  return answers
}

describe.each(['both', 'only its checks', 'only row-level security'] as const)('behind %s', (wall) => {
  let arena: Arena
  beforeAll(async () => {
    arena = await openArena(wall)
  })
  afterAll(() => arena.api.close())

  // First: a log holds what its own people asked with afterwards.
  test('files and the doors of edges keep the border too', async () => {
    const { api, victim, other, callers } = arena
    const [headers = {}] = callers.map((caller) => caller.headers)
    const [kept, absent, ...lists] = await Promise.all(
      [
        `boots/${victim.bootId}/capture.pcap`,
        `boots/${randomUUID()}/capture.pcap`,
        ...['audit-exports', 'device-exports', 'network-exports'].flatMap((path) => [
          `${path}?format=csv`,
          `${path}?format=jsonl`,
        ]),
      ].map((path) => download(`${api.url}/api/v1/${path}`, headers)),
    )
    expect([kept?.status, kept?.text]).toEqual([404, absent?.text])
    for (const list of lists) expect([list.status, ...leaksIn(arena, list)]).toEqual([200])
    const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, other))
    const pcap = pcapOf([])
    const foreign = await edge.capture(victim.bootId, pcap)
    expect(foreign).toEqual(await edge.capture(randomUUID(), pcap))
    expect(await rowsOf(api.db, victim.organizationId)).toEqual(arena.rowsBefore)
  })

  test('no answer contains anything of another organization, and foreign ids are answered like absent ones', async () => {
    const wrong: unknown[] = []
    await inTurns(procedures, async (procedure) => {
      const takesId = samples[procedure.path]?.idName !== undefined
      const direct = await askForForeign(arena, procedure, wall === 'both' ? [ask, askByRest] : [ask])
      const across = wall === 'only row-level security' ? [] : await askAcross(arena, procedure)
      for (const [foreign, absent] of [...direct, ...across]) {
        const leaks = [...leaksIn(arena, foreign), ...leaksIn(arena, absent)]
        if (leaks.length > 0) wrong.push({ path: procedure.path, leaks, text: foreign.text.slice(0, 500) })
        const isToldApart =
          foreign.status !== absent.status ||
          foreign.code !== absent.code ||
          (foreign.status >= 400 && foreign.text !== absent.text)
        if (isToldApart) wrong.push({ path: procedure.path, foreign, absent })
      }
      if (wall === 'only row-level security' || !takesId) return
      for (const [foreign, , isKey] of direct) {
        // A key is refused before anything is looked up where a person has to confirm.
        const expected = isKey && isConfirmed(procedure) ? 403 : 404
        if (foreign.status !== expected) wrong.push({ path: procedure.path, expected, foreign })
      }
    })
    expect(wrong).toEqual([])
    expect(await rowsOf(arena.api.db, arena.victim.organizationId)).toEqual(arena.rowsBefore)
  })
})

test('with neither wall this test sees leaks', async () => {
  const arena = await openArena('neither')
  const open = ['site.get', 'device.list', 'boot.get', 'audit.list', 'edge.get']
  const leaking: string[] = []
  await inTurns(procedures, async (procedure) => {
    if (!open.includes(procedure.path)) return
    const answers = await askForForeign(arena, procedure)
    if (answers.some(([foreign, absent]) => [foreign, absent].some((told) => leaksIn(arena, told).length > 0)))
      leaking.push(procedure.path)
  })
  await arena.api.close()
  expect(leaking.sort()).toEqual(open.sort())
})
