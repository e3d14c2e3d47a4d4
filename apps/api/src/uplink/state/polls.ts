import { type Db, sendPrepared } from '@bootfarm/db'
import type { Heartbeat } from '@bootfarm/proto/uplink'
import type { PlatformContext } from '../../context/service-context.ts'
import type { RememberedEdge } from '../enrol/known-edges.ts'
import type { StateLook } from './current-state.ts'

/** Polls that arrive within this time are decided together. An edge asks every half minute: it does not notice. */
const togetherMs = 50
/** 64 KiB each at most. */
const togetherMax = 200

const text = 'select edge_id::text, incarnation, counter, is_acknowledged, is_current from take_polls($1::jsonb, $2)'

interface TakenPoll {
  edge_id: string
  incarnation: number | null
  counter: string | null
  is_acknowledged: boolean
  is_current: boolean
}

interface WaitingPoll {
  edge: RememberedEdge
  heartbeat: Heartbeat
  decide: (look: StateLook | null) => void
}

/**
 * Takes polls that carry heartbeats, all that arrive together in one statement: it keeps the heartbeats and compares
 * versions (the migration `polls_with_heartbeats`). One statement runs at a time in each process.
 */
export class Polls {
  readonly #context: PlatformContext
  #waiting: WaitingPoll[] = []
  #isPlanned = false

  constructor(context: PlatformContext) {
    this.#context = context
  }

  /**
   * @returns null, and keeps nothing, if the edge is not any more what this process remembers, or if it could not be
   *   known without waiting; the caller then takes the heartbeat by itself
   */
  take(edge: RememberedEdge, heartbeat: Heartbeat): Promise<StateLook | null> {
    const { promise, resolve } = Promise.withResolvers<StateLook | null>()
    this.#waiting.push({ edge, heartbeat, decide: resolve })
    this.#plan()
    return promise
  }

  #plan(): void {
    if (this.#isPlanned || this.#waiting.length === 0) return
    this.#isPlanned = true
    setTimeout(() => {
      void this.#decide(this.#waiting.splice(0, togetherMax)).finally(() => {
        this.#isPlanned = false
        this.#plan()
      })
    }, togetherMs)
  }

  async #decide(polls: WaitingPoll[]): Promise<void> {
    const { db, clock } = this.#context
    // One for each edge: the statement keeps one heartbeat of each. An earlier one was given up by its edge.
    const byEdge = new Map(polls.map((poll) => [poll.edge.edgeId, poll]))
    // One that PostgreSQL refuses must not take the others with it: each is tried by itself then.
    const taken = await takeTogether(db, [...byEdge.values()], clock()).catch(() => [])
    const lookOf = new Map(taken.map((row) => [row.edge_id, lookFrom(row)]))
    for (const poll of polls)
      poll.decide(byEdge.get(poll.edge.edgeId) === poll ? (lookOf.get(poll.edge.edgeId) ?? null) : null)
  }
}

function takeTogether(db: Db, polls: WaitingPoll[], now: Date): Promise<TakenPoll[]> {
  const rows = polls.map(({ edge: { organizationId, siteId, edgeId, publicKey, bootEpoch, counter }, heartbeat }) => ({
    organizationId,
    siteId,
    edgeId,
    publicKey,
    bootEpoch,
    counter,
    heartbeat,
  }))
  return sendPrepared<TakenPoll>(db, { name: 'take_polls', text, values: [JSON.stringify(rows), now] })
}

function lookFrom({
  incarnation,
  counter,
  is_acknowledged: isAcknowledged,
  is_current: isCurrent,
}: TakenPoll): StateLook {
  const pair = incarnation === null || counter === null ? null : { incarnation, counter: Number(counter) }
  return { pair, isAcknowledged, isCurrent }
}
