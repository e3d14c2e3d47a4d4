import { setTimeout as delay } from 'node:timers/promises'
import { testOrigin } from '../../../apps/api/test/test-constants.ts'
import { quantile } from '../cases.mjs'
import { siteCount } from './plant-large.mjs'
import { PollingEdge } from './polling-edge.mjs'

const revertCount = 5
const settleMs = 1_000
const goalMs = 1_000

/**
 * Reverts a vDisk that all sites boot to one of two versions in turns.
 * @returns {Promise<{ ms: number[], edgeMs: number[] }>} until the API answered, and until the edge of one site had it
 */
export async function measureRevert(place, tenant) {
  const { cookie, vdiskId, versionIds } = tenant
  const edge = await PollingEdge.enrolled(place, tenant)
  await edge.poll()
  const measured = { ms: [], edgeMs: [] }
  for (let count = 0; count < revertCount; count++) {
    const polled = edge.poll()
    await delay(settleMs)
    const { revision: vdiskRevision } = await send(place.url, `vdisks/${vdiskId}`, { cookie })
    const begin = performance.now()
    const body = JSON.stringify({ vdiskRevision })
    await send(place.url, `versions/${versionIds[1 + (count % 2)]}/revert`, { cookie, method: 'POST', body })
    measured.ms.push(performance.now() - begin)
    measured.edgeMs.push((await polled).at - begin)
  }
  return measured
}

async function send(url, path, { cookie, method = 'GET', body }) {
  const headers = { cookie, origin: testOrigin, ...(body ? { 'content-type': 'application/json' } : {}) }
  const answer = await fetch(`${url}/api/v1/${path}`, { method, headers, body })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`)
  return JSON.parse(text)
}

/** @param {Awaited<ReturnType<typeof measureRevert>>[]} rounds */
export function revertTable(rounds) {
  const row = (field) => {
    const values = rounds.flatMap((round) => round[field])
    return `${quantile(values, 0.5).toFixed(0)} | ${Math.max(...values).toFixed(0)}`
  }
  const isReached = rounds.every(({ ms }) => Math.max(...ms) <= goalMs)
  return `## Revert at ${siteCount.toLocaleString('en')} sites

${rounds.length * revertCount} reverts of a vDisk that all sites boot, while the edge of one of them waits in a poll.

| | p50 | longest |
| --- | --- | --- |
| from the request to its answer, ms | ${row('ms')} |
| from the request until that edge has its new state, ms | ${row('edgeMs')} |

Goal: the answer within ${goalMs / 1000} s: **${isReached ? 'reached' : 'missed'}**.
`
}
