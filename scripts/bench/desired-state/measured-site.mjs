import { readFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { TenantEdge } from '../../../e2e/lib/tenant-edge.ts'
import { createDb } from '../../../packages/db/src/index.ts'
import { UserError } from '../../lib/fail.mjs'

const pauseMs = 2
const limitMs = 30_000
/** A boot keeps the version that it began with: each look at what a new version changed is another device's. */
const devicesPerVersion = 400
const files = { sizeBytes: 64 * 512, diskPath: 'disk', kernelPath: 'kernel' }

/** A site with a real edge, whose devices' boot scripts are asked for. */
export class MeasuredSite {
  #edge
  #agent = new http.Agent({ keepAlive: true })
  #assigned
  #stateFile

  static async start(plane, { uplinkUrl, folder, changes }) {
    const site = new MeasuredSite()
    site.databaseUrl = plane.databaseUrl
    const { webUrl, databaseUrl } = plane
    site.#edge = await TenantEdge.start({ webUrl, databaseUrl, apiUrl: uplinkUrl }, folder)
    site.#stateFile = path.join(site.#edge.data, 'state.json')
    site.tenant = site.#edge.tenant
    await site.#addDevices(changes)
    return site
  }

  async #addDevices(changes) {
    const { organizationId, siteId, collectionId, farmId } = this.tenant
    const db = createDb(this.databaseUrl)
    try {
      const bare = await db.collection.create({ data: { organizationId, siteId, name: 'Without a vDisk' } })
      const rows = (kind, count, of) =>
        Array.from({ length: count }, (_, index) => ({
          organizationId,
          siteId,
          collectionId: of,
          name: `${kind}-${String(index).padStart(5, '0')}`,
          mac: macOf(kind, index),
        }))
      await db.device.createMany({ data: rows('assigned', changes, bare.id) })
      await db.device.createMany({ data: rows('versioned', devicesPerVersion, collectionId) })
      this.#assigned = await db.device.findMany({
        where: { organizationId, collectionId: bare.id },
        orderBy: { name: 'asc' },
        select: { id: true },
      })
    } finally {
      await db.$disconnect()
    }
    const vdisk = await this.#edge.api.mutate('vdisk.create', { farmId, name: 'Assigned' })
    const version = { ...files, vdiskId: vdisk.id, commandLine: 'quiet assigned' }
    await this.#edge.api.mutate('vdisk.registerVersion', version)
    this.vdiskId = vdisk.id
    // It has the site as it is now.
    await this.#until(() => this.#script('versioned', devicesPerVersion - 1))
  }

  /** The n-th device gets a vDisk; before it, the edge has nothing for it. */
  async assign(index) {
    const device = { deviceId: this.#assigned[index].id, revision: 1, vdiskId: this.vdiskId }
    return this.#measure('device.update', device, async () =>
      (await this.#script('assigned', index))?.includes('quiet assigned'),
    )
  }

  /** What devices of this site, and of the sites of all long polls, boot gets a new version. */
  async register(index) {
    const commandLine = `quiet version-${index}-`
    const version = { ...files, vdiskId: this.tenant.vdiskId, commandLine }
    return this.#measure('vdisk.registerVersion', version, async () => {
      if (!readFileSync(this.#stateFile, 'utf8').includes(commandLine)) return false
      // It has been kept; the edge's next answers show when it acts on it.
      const script = await this.#script('versioned', this.#looks % (devicesPerVersion - 1))
      this.#looks += 1
      return script?.includes(commandLine)
    })
  }
  #looks = 0

  /** @returns {Promise<{ beganAtMs: number, answeredAtMs: number, seenAtMs: number }>} */
  async #measure(procedure, input, isSeen) {
    const beganAtMs = performance.now()
    const change = this.#edge.api.mutate(procedure, input).then(() => performance.now())
    const seenAtMs = await this.#until(isSeen)
    return { beganAtMs, answeredAtMs: await change, seenAtMs }
  }

  async #until(isSeen) {
    const deadline = performance.now() + limitMs
    while (!(await isSeen())) {
      if (performance.now() > deadline)
        throw new UserError(`the edge has not acted within ${limitMs / 1000} s:\n${this.#edge.process.output}`)
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    return performance.now()
  }

  /** What iPXE of the device would run; null where the edge has nothing for it. */
  #script(kind, index) {
    return new Promise((resolve, reject) => {
      const url = `${this.#edge.httpUrl}/m/${macOf(kind, index)}/boot.ipxe`
      http
        .get(url, { agent: this.#agent }, (response) => {
          const parts = []
          response.on('data', (part) => parts.push(part))
          response.once('end', () => resolve(response.statusCode === 200 ? Buffer.concat(parts).toString() : null))
        })
        .once('error', reject)
    })
  }

  async stop() {
    this.#agent.destroy()
    await this.#edge.stop()
  }
}

function macOf(kind, index) {
  const hex = index.toString(16).padStart(4, '0')
  return `02:bf:${kind === 'assigned' ? '0a' : '0b'}:00:${hex.slice(0, 2)}:${hex.slice(2)}`
}
