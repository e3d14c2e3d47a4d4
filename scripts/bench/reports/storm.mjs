import { createHash, randomUUID } from 'node:crypto'
import http from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { createTenant } from '../../../apps/api/test/test-tenant.ts'
import { publicKeyOf, signText, uplinkSignedText } from '../../../packages/proto/src/uplink-signature.ts'
import { newBoot, reportOf, reportsPerBoot } from './real-boot.mjs'

const edgeCount = 40
/** They boot together: a batch has one report of each, so that none replaces another one within it. */
export const devicesPerSite = 100
/** Fewer than an organization has places for batches, so that none is refused. */
const sendersCount = 6
const reportsPath = '/edge/v1/reports'
const compress = promisify(gzip)

/** An organization whose sites boot all at once: as many reports as the API takes, in full batches. */
export class Storm {
  #place
  #edges
  #agent = new http.Agent({ keepAlive: true, maxSockets: sendersCount })
  /** Reports that are acknowledged. */
  reportCount = 0

  constructor(place, edges) {
    this.#place = place
    this.#edges = edges
  }

  /** @param {{ isFailed: boolean }} options whether the boots fail at their end */
  static async planted(place, { isFailed }) {
    const { db } = place
    const { organizationId, farmId, vdiskId, versionId } = await createTenant(place, `storm-${isFailed}`)
    const edges = Array.from({ length: edgeCount }, (_, number) => {
      const [id, siteId, collectionId] = [randomUUID(), randomUUID(), randomUUID()]
      const seed = createHash('sha256').update(`${organizationId} ${number}`).digest()
      const devices = Array.from({ length: devicesPerSite }, (_unused, index) => ({
        deviceId: randomUUID(),
        mac: `02:bf:00:00:${(number + 16).toString(16)}:${index.toString(16).padStart(2, '0')}`,
      }))
      return {
        id,
        siteId,
        collectionId,
        seed,
        devices,
        vdiskId,
        versionId,
        isFailed,
        boots: [],
        step: 0,
        seq: 1,
        counter: 0,
      }
    })
    await plant(db, { organizationId, farmId, vdiskId, edges })
    return new Storm(place, edges)
  }

  get bootCount() {
    return this.reportCount / reportsPerBoot
  }

  /** Each edge sends one batch after the other, some edges at a time. */
  async blow(untilMs) {
    const waiting = [...this.#edges]
    const send = async () => {
      while (performance.now() < untilMs) {
        const edge = waiting.shift()
        await this.#sendBatch(edge)
        waiting.push(edge)
      }
    }
    await Promise.all(Array.from({ length: sendersCount }, send))
    // So that the next one begins with the first edge again.
    this.#edges = waiting
  }

  close() {
    this.#agent.destroy()
  }

  async #sendBatch(edge) {
    if (edge.step === 0) edge.boots = edge.devices.map((device) => newBoot({ ...device, ...bootedBy(edge) }))
    const reports = edge.boots.map((boot, index) => ({
      seq: edge.seq + index,
      type: 'boot',
      boot: reportOf(boot, edge.step),
    }))
    const body = await compress(JSON.stringify({ bootEpoch: 1, fromSeq: edge.seq, reports }))
    edge.counter += 1
    const facts = { method: 'POST', path: reportsPath, edgeId: edge.id, bootEpoch: 1, counter: edge.counter, body }
    const headers = {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-length': String(body.length),
      'bootfarm-edge': edge.id,
      'bootfarm-epoch': '1',
      'bootfarm-counter': String(edge.counter),
      'bootfarm-signature': signText(uplinkSignedText(facts), edge.seed),
      'bootfarm-uplink': '5',
    }
    const { status, text } = await this.#request(headers, body)
    if (status !== 200) throw new Error(`a batch of reports was answered with ${status}: ${text}`)
    edge.seq += reports.length
    edge.step = (edge.step + 1) % reportsPerBoot
    this.reportCount += reports.length
  }

  #request(headers, body) {
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', agent: this.#agent, headers }
      const request = http.request(this.#place.url + reportsPath, options, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part) => {
          text += part
        })
        response.once('end', () => resolve({ status: response.statusCode, text }))
        response.once('error', reject)
      })
      request.once('error', reject)
      request.end(body)
    })
  }
}

const bootedBy = ({ vdiskId, versionId, isFailed }) => ({ vdiskId, versionId, isFailed })

/** By SQL: enrolling the edges is not what is measured. */
async function plant(db, { organizationId, farmId, vdiskId, edges }) {
  const column = (read) => edges.map(read)
  const siteIds = column(({ siteId }) => siteId)
  await db.$executeRawUnsafe(
    `insert into site (organization_id, id, farm_id, name, time_zone)
    select $1::uuid, id, $3::uuid, 'Hall ' || place, 'UTC' from unnest($2::uuid[]) with ordinality as added (id, place)`,
    organizationId,
    siteIds,
    farmId,
  )
  await db.$executeRawUnsafe(
    `insert into collection (organization_id, id, site_id, name, vdisk_id)
    select $1::uuid, id, site_id, 'All', $4::uuid from unnest($2::uuid[], $3::uuid[]) as added (site_id, id)`,
    organizationId,
    siteIds,
    column(({ collectionId }) => collectionId),
    vdiskId,
  )
  await db.$executeRawUnsafe(
    `insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at, boot_epoch)
    select $1::uuid, id, site_id, 'edge-' || place, key, 'x86_64', '0.1.0', now(), 1
    from unnest($2::uuid[], $3::uuid[], $4::text[]) with ordinality as added (id, site_id, key, place)`,
    organizationId,
    column(({ id }) => id),
    siteIds,
    column(({ seed }) => publicKeyOf(seed)),
  )
  for (const { siteId, collectionId, devices } of edges)
    await db.$executeRawUnsafe(
      `insert into device (organization_id, id, site_id, collection_id, name, mac)
      select $1::uuid, id, $2::uuid, $3::uuid, 'pc-' || mac, mac from unnest($4::uuid[], $5::text[]) as added (id, mac)`,
      organizationId,
      siteId,
      collectionId,
      devices.map(({ deviceId }) => deviceId),
      devices.map(({ mac }) => mac),
    )
  await db.$executeRawUnsafe('analyze')
}
