import { createHmac, createPrivateKey, randomUUID, sign } from 'node:crypto'
import http from 'node:http'
import { seedEdgeKey, seedId, seedSessionToken } from '../../../packages/db/src/seed.ts'
import { uplinkSignedText } from '../../../packages/proto/src/uplink-signature.ts'
import { pick, reads } from './reads.mjs'

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const reportsPerBatch = 10
const reportsName = `POST /edge/v1/reports (${reportsPerBatch} boots)`

/**
 * Requests at fixed instants, whether or not earlier ones are answered: a slow answer delays nobody's begin, and its time counts from
 * the instant at which it was due.
 */
export class Load {
  /** @type {Map<string, number[]>} milliseconds by procedure */
  times = new Map()
  failures = new Map()
  reportsName = reportsName
  bootsPerBatch = reportsPerBatch
  #agent = new http.Agent({ keepAlive: true, maxSockets: 256 })
  #apiPort
  #secret
  #size
  #random
  #edges = new Map()
  /** A later run goes on with edges that have started again. */
  #bootEpoch = Math.floor(Date.now() / 1000)

  /** @param {{ apiPort: number, secret: string, size: import('../../../packages/db/src/seed.ts').SeedSize, seed: number }} options */
  constructor({ apiPort, secret, size, seed }) {
    this.#apiPort = apiPort
    this.#secret = secret
    this.#size = size
    this.#random = randomNumbers(seed)
  }

  /** @param {{ seconds: number, readsPerSecond: number, bootsPerSecond: number }} rates */
  async run({ seconds, readsPerSecond, bootsPerSecond }) {
    const batchesPerSecond = bootsPerSecond / reportsPerBatch
    await Promise.all([
      atRate(readsPerSecond, seconds, (dueMs) => this.#read(dueMs)),
      atRate(batchesPerSecond, seconds, (dueMs) => this.#report(dueMs)),
    ])
  }

  close() {
    this.#agent.destroy()
  }

  /** One of the reads after the other, each `count` times: for what one request costs whatever else goes on. */
  async readInTurn(request, count) {
    for (let done = 0; done < count; done += 1) await this.#read(performance.now(), request)
  }

  async reportInTurn(count) {
    for (let done = 0; done < count; done += 1) await this.#report(performance.now())
  }

  async #read(dueMs, request = pick(this.#random, reads)) {
    const organization = 1 + this.#random(this.#size.organizations)
    const input = request.input(this.#placesIn(organization))
    const path = `/api/trpc/${request.procedure}?input=${encodeURIComponent(JSON.stringify(input))}`
    await this.#measure(request.name, dueMs, { path, headers: { cookie: this.#cookie(organization) } })
  }

  /** Ids of the organization's own rows. */
  #placesIn(organization) {
    const { organizations, sites, devices, boots } = this.#size
    const site = Math.floor(((organization - 1) * sites) / organizations) + 1 + this.#random(sites / organizations)
    const device = Math.floor(((site - 1) * devices) / sites) + 1 + this.#random(devices / sites)
    // Boot n is of device n * 7919 mod devices + 1: those of one device lie `devices` apart.
    const first = Number((BigInt(device - 1) * inverse(7919n, BigInt(devices))) % BigInt(devices)) || devices
    const boot = first + devices * this.#random(Math.max(1, Math.floor((boots - first) / devices) + 1))
    return {
      farmId: seedId('farm', organization),
      siteId: seedId('site', site),
      edgeId: seedId('edge', site),
      collectionId: seedId('collection', site),
      deviceId: seedId('device', device),
      bootId: seedId('boot', boot),
      search: `pc-${String(device).padStart(6, '0').slice(0, 5)}`,
    }
  }

  #cookie(organization) {
    const token = seedSessionToken(organization)
    const signature = createHmac('sha256', this.#secret).update(token).digest('base64')
    return `better-auth.session_token=${encodeURIComponent(`${token}.${signature}`)}`
  }

  /** A batch of boots that got ready just now, from an edge that sends one batch after the other. */
  async #report(dueMs) {
    const number = 1 + this.#random(this.#size.sites)
    const edge = this.#edges.get(number) ?? newEdge(number)
    this.#edges.set(number, edge)
    const send = async () => {
      const size = this.#size
      const firstDevice = Math.floor(((number - 1) * size.devices) / size.sites) + 1
      const reports = Array.from({ length: reportsPerBatch }, (_, index) => ({
        seq: edge.seq + index,
        type: 'boot',
        boot: bootOf(firstDevice + this.#random(size.devices / size.sites)),
      }))
      const body = JSON.stringify({ bootEpoch: this.#bootEpoch, fromSeq: edge.seq, reports })
      const path = '/edge/v1/reports'
      edge.counter += 1
      const text = uplinkSignedText({
        method: 'POST',
        path,
        edgeId: edge.id,
        bootEpoch: this.#bootEpoch,
        counter: edge.counter,
        body: Buffer.from(body),
      })
      const headers = {
        'content-type': 'application/json',
        'bootfarm-edge': edge.id,
        'bootfarm-epoch': String(this.#bootEpoch),
        'bootfarm-counter': String(edge.counter),
        'bootfarm-signature': sign(null, Buffer.from(text), edge.key).toString('base64'),
      }
      await this.#measure(reportsName, dueMs, { path, headers, body })
      edge.seq += reportsPerBatch
    }
    edge.last = edge.last.then(send)
    await edge.last
  }

  async #measure(name, dueMs, { path, headers, body }) {
    const status = await this.#request({ path, headers, body })
    if (status !== 200) {
      const failure = `${name}: ${status}`
      this.failures.set(failure, (this.failures.get(failure) ?? 0) + 1)
    }
    const times = this.times.get(name) ?? []
    times.push(performance.now() - dueMs)
    this.times.set(name, times)
  }

  #request({ path, headers, body }) {
    return new Promise((resolve) => {
      const request = http.request(
        {
          host: '127.0.0.1',
          port: this.#apiPort,
          path,
          headers,
          agent: this.#agent,
          method: body ? 'POST' : 'GET',
        },
        (response) => {
          response.resume()
          response.once('end', () => resolve(response.statusCode))
          response.once('error', (error) => resolve(error.code))
        },
      )
      request.once('error', (error) => resolve(error.code))
      request.end(body)
    })
  }
}

function newEdge(number) {
  const der = Buffer.concat([pkcs8Prefix, seedEdgeKey(number)])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  return { id: seedId('edge', number), key, seq: 1, counter: 0, last: Promise.resolve() }
}

const phaseNames = ['dhcp', 'nbp', 'loader', 'stage1', 'stage2']

function bootOf(device) {
  const mac = `02:bf${device.toString(16).padStart(8, '0').replace(/(..)/g, ':$1')}`
  const numbers = {
    bytesIn: 1200,
    bytesOut: 36e6,
    packetsIn: 20,
    packetsOut: 25e3,
    retries: 1,
    missingFragments: 2,
  }
  return {
    id: randomUUID(),
    revision: 9,
    mac,
    simulated: false,
    generated: false,
    reconnects: 0,
    startedUnixMs: Date.now() - 20_000,
    clientArch: 7,
    ip: '10.1.2.3',
    mtu: 1500,
    vendorClass: 'PXEClient:Arch:00007:UNDI:003016',
    phases: phaseNames.map((name, index) => ({
      name,
      startUs: index * 4e6,
      durationUs: 4e6,
      source: 'observed',
      reads: 100,
      readSizes: [1, 2, 3, 90],
      ...numbers,
    })),
    outcome: { kind: 'ready' },
  }
}

/** Calls `begin` at instants that lie 1 / rate apart, with each one's instant; returns when all have ended. */
async function atRate(rate, seconds, begin) {
  const count = Math.round(rate * seconds)
  const startMs = performance.now()
  const ended = []
  await new Promise((resolve) => {
    const next = () => {
      while (ended.length < count && startMs + (ended.length * 1000) / rate <= performance.now())
        ended.push(begin(startMs + (ended.length * 1000) / rate))
      if (ended.length === count) resolve()
      else setTimeout(next, Math.max(0, startMs + (ended.length * 1000) / rate - performance.now()))
    }
    next()
  })
  await Promise.all(ended)
}

/** xorshift32 */
function randomNumbers(seed) {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return Math.floor((state >>> 0) % below)
  }
}

/** Of `value` modulo `modulus`, which have no common factor. */
function inverse(value, modulus) {
  let [a, b, x, y] = [value % modulus, modulus, 1n, 0n]
  while (a > 1n) {
    const quotient = a / b
    ;[a, b] = [b, a % b]
    ;[x, y] = [y, x - quotient * y]
    if (b === 0n) break
  }
  return ((x % modulus) + modulus) % modulus
}
