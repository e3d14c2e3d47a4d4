import { setTimeout as delay } from 'node:timers/promises'
import { addOwner } from '../../../apps/api/test/add-owner.ts'
import { testOrigin } from '../../../apps/api/test/test-constants.ts'
import { createTenant, sessionCookie } from '../../../apps/api/test/test-tenant.ts'
import { quantile } from '../cases.mjs'
import { withControlPlane } from '../control-plane.mjs'
import { PollingEdge } from './polling-edge.mjs'

const deviceCount = 9_000
const changeCount = 30
const warmUpCount = 3
/** Until the poll waits in the API. */
const settleMs = 300
const goals = { ms: 300, bytes: 10_240 }

/**
 * Renames one device of a site of 9,000 after the other, and takes the time until the poll of the site's edge has the
 * change.
 * @returns {Promise<{ ms: number[], apiMs: number[], bytes: number[], stateBytes: number }>}
 */
export function measureDevice() {
  return withControlPlane('state', async (place) => {
    const tenant = await createTenant(place, 'large')
    const { organizationId, siteId, collectionId } = tenant
    await place.db.$executeRaw`
      insert into device (organization_id, id, site_id, collection_id, name, mac)
      select ${organizationId}::uuid, gen_random_uuid(), ${siteId}::uuid, ${collectionId}::uuid, 'desk-' || number,
        regexp_replace('06' || lpad(to_hex(number), 10, '0'), '(..)(?!$)', '\\1:', 'g')
      from generate_series(1, ${deviceCount - tenant.deviceIds.length}::int) as number`
    await place.db.$executeRawUnsafe('analyze')
    const { userId } = await addOwner(place, organizationId, 'Owner')
    const cookie = await sessionCookie(place, userId)
    const edge = await PollingEdge.enrolled(place, tenant)
    const first = await edge.poll()
    const devices = await place.db.device.findMany({
      where: { organizationId, siteId },
      take: changeCount + warmUpCount,
      orderBy: { mac: 'desc' },
      select: { id: true, revision: true },
    })
    const measured = { ms: [], apiMs: [], bytes: [], stateBytes: first.bytes }
    for (const [index, device] of devices.entries()) {
      const name = `renamed-${index}`
      const polled = edge.poll()
      await delay(settleMs)
      const begin = performance.now()
      await rename(place.url, { ...device, name, cookie })
      const apiMs = performance.now() - begin
      const { at, bytes } = await polled
      if (!edge.payload.includes(`"${name}"`)) throw new Error(`the state of the edge has no device ${name}.`)
      if (index < warmUpCount) continue
      measured.ms.push(at - begin)
      measured.apiMs.push(apiMs)
      measured.bytes.push(bytes)
    }
    return measured
  })
}

async function rename(url, { id, revision, name, cookie }) {
  const answer = await fetch(`${url}/api/v1/devices/${id}`, {
    method: 'PATCH',
    headers: { cookie, origin: testOrigin, 'content-type': 'application/json' },
    body: JSON.stringify({ name, revision }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`the change was refused: ${text}`)
}

/** @param {Awaited<ReturnType<typeof measureDevice>>[]} rounds */
export function deviceTable(rounds) {
  const all = (field) => rounds.flatMap((round) => round[field])
  const [ms, bytes] = [all('ms'), all('bytes')]
  const cells = (values) => [0.5, 0.95, 1].map((part) => quantile(values, part).toFixed(0)).join(' | ')
  const isReached = quantile(ms, 0.95) <= goals.ms && Math.max(...bytes) <= goals.bytes
  return `## One device of a site of ${deviceCount.toLocaleString('en')}

${ms.length} devices are renamed by the API, one after the other, while the site's edge waits in a poll. Its state has ${rounds[0]?.stateBytes.toLocaleString('en')} bytes.

| | p50 | p95 | longest |
| --- | --- | --- | --- |
| from the request until the edge has the change, ms | ${cells(ms)} |
| from the request to its answer, ms | ${cells(all('apiMs'))} |
| bytes of the change | ${cells(bytes)} |

Goal: at most ${goals.ms} ms (p95) and ${goals.bytes.toLocaleString('en')} bytes: **${isReached ? 'reached' : 'missed'}**.
`
}
