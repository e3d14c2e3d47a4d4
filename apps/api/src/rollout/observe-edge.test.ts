import type { Heartbeat } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { heartbeatWith } from '../../test/edge-client.ts'
import {
  type EdgeFacts,
  type KnownEdge,
  lateAfterMs,
  type Observation,
  observeEdge,
  silentAfterMs,
  waveHealthyAt,
} from './observe-edge.ts'

const orderedAt = new Date('2026-11-20T12:00:00Z')
const after = (ms: number) => new Date(orderedAt.getTime() + ms)
const version = '0.2.0'
const order: KnownEdge = { state: 'ordered', cause: null, attempt: 3, orderedAt, healthySince: null }

const facts = (changes: Partial<EdgeFacts> = {}): EdgeFacts => ({
  revokedAt: null,
  wantedRelease: version,
  releaseAttempt: 3,
  agentVersion: '0.1.0',
  heartbeatAt: after(10_000),
  heartbeat: null,
  ...changes,
})
const says = (state: string, cause?: string, attempt = 3): Heartbeat =>
  heartbeatWith({ update: { version, attempt, state, ...(cause ? { cause } : {}) } })

function seen(changes: {
  known?: Partial<KnownEdge>
  edge?: Partial<EdgeFacts> | null
  at?: number
  watched?: number
}) {
  const { known = {}, edge = {}, at = 10_000, watched = -60_000 } = changes
  const situation = { version, watchedSince: after(watched), now: after(at) }
  return observeEdge({ ...order, ...known }, edge && facts(edge), situation)
}

describe('an edge in a rollout', () => {
  test('is updating until it runs the release and is healthy', () => {
    expect(seen({})).toMatchObject({ state: 'ordered', cause: null })
    expect(seen({ edge: { heartbeat: says('fetching', 'no_answer') } })).toMatchObject({
      state: 'ordered',
      cause: 'no_answer',
    })
    expect(seen({ edge: { agentVersion: version, heartbeat: says('probation') } })).toMatchObject({ state: 'ordered' })
    expect(seen({ edge: { agentVersion: version, heartbeat: says('healthy') } })).toEqual({
      state: 'running',
      cause: null,
      healthySince: after(10_000),
    })
  })

  test('is not taken for healthy by what it said of an earlier order', () => {
    const healthy = { agentVersion: version, heartbeat: says('healthy', undefined, 2) }
    expect(seen({ edge: healthy })).toMatchObject({ state: 'ordered' })
    expect(seen({ edge: { heartbeat: says('failed', 'ended', 2) } })).toMatchObject({ state: 'ordered' })
  })

  test('stays healthy since the first time, and begins again after a heartbeat was missed', () => {
    const running: Partial<KnownEdge> = { state: 'running', healthySince: after(5_000) }
    const edge = { agentVersion: version, heartbeat: says('healthy') }
    expect(seen({ known: running, edge })).toMatchObject({ healthySince: after(5_000) })
    expect(seen({ known: running, edge, at: 100_000 })).toEqual({ state: 'running', cause: null, healthySince: null })
  })

  test('has failed when it says so, and when it runs another program without a word', () => {
    expect(seen({ edge: { heartbeat: says('failed', 'cannot_start') } })).toMatchObject({
      state: 'failed',
      cause: 'cannot_start',
    })
    expect(seen({ known: { state: 'running' }, edge: { heartbeat: says('fetching') } })).toMatchObject({
      state: 'failed',
      cause: 'returned',
    })
  })

  test('is silent when its heartbeats stop, counted from its order and from when the control plane listened', () => {
    const edge = { heartbeatAt: after(-3_600_000) }
    expect(seen({ edge, at: silentAfterMs })).toMatchObject({ state: 'ordered' })
    expect(seen({ edge, at: silentAfterMs + 1 })).toMatchObject({ state: 'silent' })
    expect(seen({ edge, at: 3_600_000, watched: 3_590_000 })).not.toMatchObject({ state: 'silent' })
    const running: Partial<KnownEdge> = { state: 'running', healthySince: orderedAt }
    const healthy = { agentVersion: version, heartbeat: says('healthy') }
    expect(seen({ known: running, edge: healthy, at: 10_001 + silentAfterMs })).toMatchObject({ state: 'silent' })
  })

  test('is late when it reports and does not run the release for too long', () => {
    const at = lateAfterMs + 1
    const edge = { heartbeatAt: after(at), heartbeat: says('fetching', 'not_listed') }
    expect(seen({ edge, at })).toMatchObject({ state: 'late', cause: 'not_listed' })
    expect(seen({ edge, at: at - 1 })).toMatchObject({ state: 'ordered' })
    expect(seen({ edge, at, watched: at - 1000 })).toMatchObject({ state: 'ordered' })
  })

  test.each([
    ['deleted', null],
    ['revoked', { revokedAt: orderedAt }],
    ['other_order', { wantedRelease: '0.3.0' }],
    ['other_order', { releaseAttempt: 4 }],
  ])('is left when it is %s', (cause, edge) => {
    expect(seen({ edge })).toEqual({ state: 'left', cause, healthySince: null })
  })

  test('waits without an order, and stays left', () => {
    const waiting = { state: 'waiting', attempt: null, orderedAt: null } as const
    expect(seen({ known: waiting, at: 10 * lateAfterMs })).toMatchObject({ state: 'waiting' })
    expect(seen({ known: waiting, edge: { revokedAt: orderedAt } })).toMatchObject({ state: 'left', cause: 'revoked' })
    const left = { state: 'left', cause: 'silent' } as const
    expect(seen({ known: left, edge: { agentVersion: version, heartbeat: says('healthy') } })).toMatchObject(left)
  })
})

describe('a wave', () => {
  const running = (ms: number): Observation => ({ state: 'running', cause: null, healthySince: after(ms) })
  const left: Observation = { state: 'left', cause: 'revoked', healthySince: null }

  test('is healthy so many minutes after its last edge', () => {
    expect(waveHealthyAt([running(1_000), running(9_000), left], orderedAt, 2)).toEqual(after(129_000))
  })

  test('is not healthy while an edge is not', () => {
    for (const state of ['waiting', 'ordered', 'failed', 'silent', 'late'] as const)
      expect(waveHealthyAt([running(0), { state, cause: null, healthySince: null }], orderedAt, 0)).toBeNull()
    expect(waveHealthyAt([{ state: 'running', cause: null, healthySince: null }], orderedAt, 0)).toBeNull()
  })

  test('without edges is over after its minutes', () => {
    expect(waveHealthyAt([left], orderedAt, 1)).toEqual(after(60_000))
  })
})
