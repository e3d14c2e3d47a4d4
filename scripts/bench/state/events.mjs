import { randomUUID } from 'node:crypto'
import { addOwner } from '../../../apps/api/test/add-owner.ts'
import { createTenant, sessionCookie } from '../../../apps/api/test/test-tenant.ts'
import { quantile } from '../cases.mjs'
import { withControlPlane } from '../control-plane.mjs'

/** As many as are kept of an organization. */
const eventCount = 1_000_000
const siteCount = 1_000
const devicesPerSite = 50
const timesEach = 20
const warmUpCount = 3
const goalMs = 100

/**
 * Reads the list of events of an organization that has as many as are kept, one request after the other.
 * @returns {Promise<Record<string, { ms: number[] }>>} by name
 */
export function measureEvents() {
  return withControlPlane('state', async (place) => {
    const tenant = await createTenant(place, 'eventful')
    const { organizationId, farmId, siteId: quietSiteId } = tenant
    const { userId } = await addOwner(place, organizationId, 'Owner')
    const owner = await sessionCookie(place, userId)
    const { siteId, deviceId } = await plant(place.db, tenant)
    const [viewer, quietViewer] = [await viewerOf(place, tenant, siteId), await viewerOf(place, tenant, quietSiteId)]
    const requests = {
      'newest first': [owner, 'sort=-number'],
      'oldest first': [owner, 'sort=number'],
      'of a rare type, newest first': [owner, 'sort=-number&types=device.key_alarm'],
      'of two rare types, newest first': [owner, 'sort=-number&types=device.key_alarm&types=version.promoted'],
      'of a type that never happened': [owner, 'sort=number&types=rollout.paused'],
      'of a farm': [owner, `sort=-number&farmId=${farmId}`],
      'of a site': [owner, `sort=-number&siteId=${siteId}`],
      'of a site without any': [owner, `sort=-number&siteId=${quietSiteId}`],
      'of a device': [owner, `sort=-number&deviceId=${deviceId}`],
      'of a rare type at a site': [owner, `sort=-number&siteId=${siteId}&types=device.key_alarm`],
      'of an hour in the middle': [owner, `sort=number&since=${hoursAgo(360)}&until=${hoursAgo(359)}`],
      'for a viewer of a site': [viewer, 'sort=-number'],
      'for a viewer of a site without any': [quietViewer, 'sort=-number'],
    }
    const measured = {}
    for (const [name, [cookie, query]] of Object.entries(requests))
      measured[name] = { ms: await repeat(`${place.url}/api/v1/events?limit=50&${query}`, cookie) }
    return measured
  })
}

/** @returns the cookie of a person who sees one site */
async function viewerOf({ db }, { organizationId }, siteId) {
  const data = { name: 'A viewer', email: `${randomUUID()}@example.test`, emailVerified: true }
  const { id: userId } = await db.user.create({ data, select: { id: true } })
  await db.membership.create({ data: { organizationId, userId } })
  await db.roleGrant.create({ data: { organizationId, userId, role: 'viewer', siteId } })
  return sessionCookie({ db }, userId)
}

const hoursAgo = (hours) => new Date(Date.now() - hours * 3_600_000).toISOString()

/** A month of events, nearly all of failed boots. @returns a site and a device with events */
async function plant(db, { organizationId, farmId, collectionId }) {
  await db.$executeRawUnsafe(
    `insert into site (organization_id, id, farm_id, name, time_zone)
    select $1::uuid, gen_random_uuid(), $2::uuid, 'Site ' || number, 'UTC' from generate_series(1, ${siteCount}) as number`,
    organizationId,
    farmId,
  )
  await db.$executeRawUnsafe(
    `insert into webhook_event (organization_id, id, type, subject, payload, created_at, number, farm_id, site_id, collection_id, device_id)
    select $1::uuid, gen_random_uuid(), type, 'planted ' || number,
      jsonb_build_object('type', type, 'data', jsonb_build_object('phase', 'stage2', 'cause', 'guest_reported_failure', 'deviceName', 'pc-' || number)),
      now() - make_interval(secs => (${eventCount} - number) * 2.592), number, $2::uuid, site.id, $3::uuid,
      overlay(overlay(md5('device ' || number % ${siteCount * devicesPerSite}) placing '4' from 13) placing '8' from 17)::uuid
    from (select number, case when number % 200000 = 7 then 'device.key_alarm' when number % 300000 = 9 then 'version.promoted'
        when number % 10 = 0 then 'write_cache.filling' else 'boot.failed' end as type from generate_series(1, ${eventCount}) as number) as event
      join (select id, row_number() over () as place from site where organization_id = $1::uuid and name like 'Site %') as site
        on site.place = event.number % ${siteCount} + 1`,
    organizationId,
    farmId,
    collectionId,
  )
  await db.$executeRawUnsafe(
    `insert into event_numbering (organization_id, last_number) values ($1::uuid, ${eventCount})`,
    organizationId,
  )
  await db.$executeRawUnsafe('vacuum analyze webhook_event')
  const [row] = await db.$queryRawUnsafe(
    `select site_id::text as "siteId", device_id::text as "deviceId" from webhook_event
    where organization_id = $1::uuid and number = ${eventCount}`,
    organizationId,
  )
  return row
}

async function repeat(url, cookie) {
  const ms = []
  for (let count = 0; count < timesEach + warmUpCount; count++) {
    const begin = performance.now()
    const answer = await fetch(url, { headers: { cookie } })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`)
    if (count >= warmUpCount) ms.push(performance.now() - begin)
  }
  return ms
}

/** @param {Awaited<ReturnType<typeof measureEvents>>[]} rounds */
export function eventsTable(rounds) {
  const rows = Object.keys(rounds[0] ?? {}).map((name) => {
    const ms = rounds.flatMap((round) => round[name].ms)
    const cells = [quantile(ms, 0.5), quantile(ms, 0.95), Math.max(...ms)].map((one) => one.toFixed(0))
    return { name, isReached: quantile(ms, 0.95) <= goalMs, text: `| ${name} | ${cells.join(' | ')} |` }
  })
  const missed = rows.filter(({ isReached }) => !isReached).map(({ name }) => name)
  return `## List of events

One organization with ${eventCount.toLocaleString('en')} events of 30 days at ${siteCount.toLocaleString('en')} sites. Each page of 50 is read ${timesEach} times, one after the other.

| page | p50 ms | p95 ms | longest |
| --- | --- | --- | --- |
${rows.map(({ text }) => text).join('\n')}

Goal: p95 of each at most ${goalMs} ms: ${missed.length === 0 ? '**reached**' : `**missed** by ${missed.join('; ')}`}.
`
}
