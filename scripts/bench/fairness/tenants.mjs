import { randomUUID } from 'node:crypto'
import { addOwner } from '../../../apps/api/test/add-owner.ts'
import { bootReports, bootWith, EdgeClient, guestWith } from '../../../apps/api/test/edge-client.ts'
import { callProcedure } from '../../../apps/api/test/test-client.ts'
import { createTenant, makeJoinToken, sessionCookie, signInAs } from '../../../apps/api/test/test-tenant.ts'

const devicesOfSite = 2_000

/**
 * Makes an organization whose site has 2,000 devices and an edge.
 * @param {{ db: import('@bootfarm/db').Db, url: string, clock: { read(): Date } }} api
 * @param {string} slug
 */
export async function makeTenant(api, slug) {
  const tenant = await createTenant(api, slug)
  const { organizationId, siteId, collectionId } = tenant
  await api.db.$executeRaw`
    insert into device (organization_id, id, site_id, collection_id, name, mac)
    select ${organizationId}::uuid, gen_random_uuid(), ${siteId}::uuid, ${collectionId}::uuid, 'desk-' || number,
      regexp_replace('06' || lpad(to_hex(number), 10, '0'), '(..)(?!$)', '\\1:', 'g')
    from generate_series(1, ${devicesOfSite}::int) as number`
  const { userId } = await addOwner(api, organizationId, 'Owner')
  const owner = await sessionCookie(api, userId)
  await api.db.session.updateMany({ where: { userId }, data: { confirmedAt: api.clock.read() } })
  const viewers = []
  for (let number = 0; number < 4; number++) viewers.push(await signInAs(api, organizationId, 'viewer'))
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const { data } = await callProcedure(api, {
    path: 'apiKey.create',
    type: 'mutation',
    input: { name: 'Key', role: 'admin', requestsPerMinute: 6_000 },
    cookie: owner,
  })
  return { ...tenant, owner, viewers, apiKey: data.secret, edge: new SiteEdge(edge, tenant.macs) }
}

/** Reports boots, one batch after the other. */
export class SiteEdge {
  #client
  #macs
  #nextSeq

  constructor(client, macs, nextSeq = 1) {
    this.#client = client
    this.#macs = macs
    this.#nextSeq = nextSeq
  }

  /** @returns what another process needs to go on in its place */
  get place() {
    const { edgeId, bootEpoch, counter, seed } = this.#client
    return {
      identity: { edgeId, bootEpoch, counter },
      seed: Buffer.from(seed).toString('base64'),
      nextSeq: this.#nextSeq,
    }
  }

  /**
   * Reports so many boots that became ready.
   * @returns {Promise<number>} the status of the answer
   */
  async report(count) {
    const startedUnixMs = Date.now() - 60_000
    const boots = Array.from({ length: count }, (_, index) =>
      bootWith({ id: randomUUID(), mac: this.#macs[index % this.#macs.length], startedUnixMs, guest: guestWith() }),
    )
    const { status } = await this.#client.reports(this.#nextSeq, bootReports(this.#nextSeq, boots))
    if (status === 200) this.#nextSeq += count
    return status
  }
}
