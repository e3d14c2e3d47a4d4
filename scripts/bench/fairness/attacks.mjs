import { randomUUID } from 'node:crypto'
import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * What members, keys, edges and strangers of one organization do to hold up the others: the reproductions of a review
 * of the control plane. Each one goes on until its signal ends it, and counts what it did.
 * @type {Record<string, { what: string, run: (attack: Attack) => Promise<unknown> }>}
 * @typedef {{ url: string, tenant: Awaited<ReturnType<typeof import('./tenants.mjs').makeTenant>>,
 *   signal: AbortSignal, count: (status: number) => void }} Attack
 */
export const attacks = {
  'idle sockets': {
    what: '300 connections send a byte of a report or of a sign-in, and then nothing',
    run: (attack) =>
      many(300, attack, (number) => holdOpen(attack, number % 2 ? '/edge/v1/reports' : '/api/auth/sign-in/email')),
  },
  hashing: {
    what: 'strangers send batches of 20 invitations to accept, and wrong passwords',
    run: (attack) =>
      many(16, attack, (number) => (number % 2 ? guessPassword(attack) : acceptMadeUpInvitations(attack))),
  },
  batches: {
    what: 'four viewers read their 2,000 devices in batches of 20 lists, four at a time each',
    run: (attack) => many(16, attack, (number) => readBatch(attack, attack.tenant.viewers[number % 4])),
  },
  'a key that writes': {
    what: 'an API key creates farms in batches of 20, eight at a time',
    run: (attack) => many(8, attack, () => createFarms(attack)),
  },
  exports: {
    what: 'an owner exports all devices and the audit log, 16 at a time, and reads slowly',
    run: (attack) => many(16, attack, (number) => exportSlowly(attack, number % 2 ? 'audit' : 'device')),
  },
  webhooks: {
    what: '20 webhooks lead to a server that never answers, and are tested all the time',
    run: floodWebhooks,
  },
  'live updates': {
    what: 'a viewer opens 200 pages with live updates, while the own edge reports boot after boot',
    run: (attack) =>
      Promise.all([many(200, attack, () => subscribe(attack)), many(1, attack, () => reportBoots(attack, 1))]),
  },
  reports: {
    what: 'an edge reports 100 boots at a time without a pause',
    run: (attack) => many(1, attack, () => reportBoots(attack, 100)),
  },
  'large bodies': {
    what: 'an owner sends tables of 3 MB, and JSON that is nested 100,000 deep, eight at a time',
    run: (attack) => many(8, attack, (number) => sendLarge(attack, number)),
  },
}

/** So many at a time, each over and over; one that was refused tries again soon, as whoever wishes harm does. */
async function many(count, { signal }, once) {
  const loop = async (number) => {
    while (!signal.aborted) await once(number).catch(() => delay(20, undefined, { signal }).catch(() => undefined))
  }
  await Promise.all(Array.from({ length: count }, (_, number) => loop(number)))
}

async function send({ url, signal, count }, path, { method = 'POST', headers = {}, body } = {}) {
  const answer = await fetch(url + path, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal,
  })
  count(answer.status)
  if (answer.status === 429 || answer.status === 503) await delay(20, undefined, { signal })
  return answer
}

async function holdOpen({ url, signal, count }, path) {
  const { hostname, port } = new URL(url)
  const socket = net.connect({ host: hostname, port: Number(port), signal })
  const over = new Promise((resolve) => {
    socket.once('close', resolve)
    socket.once('error', resolve)
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: api\r\ncontent-type: application/json\r\ncontent-length: 400000\r\n\r\n{`,
  )
  socket.resume()
  await over
  count(0)
}

const trpcBatch = (procedure, inputs) => [
  `/api/trpc/${inputs.map(() => procedure).join(',')}?batch=1`,
  Object.fromEntries(inputs.map((input, index) => [index, input])),
]
const twenty = (make) => Array.from({ length: 20 }, make)

async function acceptMadeUpInvitations(attack) {
  const inputs = twenty(() => ({ token: randomUUID(), name: 'Nobody', password: randomUUID() }))
  const [path, body] = trpcBatch('invitation.accept', inputs)
  await (await send(attack, path, { body })).text()
}

async function guessPassword(attack) {
  const body = { email: `${randomUUID()}@example.test`, password: randomUUID() }
  await (await send(attack, '/api/auth/sign-in/email', { body, headers: { origin: attack.origin } })).text()
}

async function readBatch(attack, cookie) {
  const inputs = twenty(() => ({ limit: 100 }))
  const [path, input] = trpcBatch('device.list', inputs)
  const answer = await send(attack, `${path}&input=${encodeURIComponent(JSON.stringify(input))}`, {
    method: 'GET',
    headers: { cookie },
  })
  await answer.text()
}

async function createFarms(attack) {
  const body = { name: randomUUID() }
  const headers = { authorization: `Bearer ${attack.tenant.apiKey}` }
  await (await send(attack, '/api/v1/farms', { body, headers })).text()
}

async function exportSlowly(attack, kind) {
  const { body } = await send(attack, `/api/v1/${kind}-exports`, {
    method: 'GET',
    headers: { cookie: attack.tenant.owner },
  })
  for await (const part of body) await delay(part.length / 1_000, undefined, { signal: attack.signal })
}

async function floodWebhooks(attack) {
  const { tenant } = attack
  const silent = net.createServer(() => {})
  await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const headers = { authorization: `Bearer ${tenant.apiKey}` }
  const ids = []
  for (let number = 0; number < 20; number++) {
    const body = {
      name: `Hook ${randomUUID()}`,
      url: `http://127.0.0.1:${silent.address().port}/`,
      events: ['boot.failed'],
    }
    const { id, webhook } = await (await send(attack, '/api/v1/webhooks', { body, headers })).json()
    if (id ?? webhook?.id) ids.push(id ?? webhook.id)
  }
  if (ids.length === 0) throw new Error('no webhook could be made')
  await many(8, attack, async (number) => {
    const id = ids[number % ids.length]
    await (await send(attack, `/api/v1/webhooks/${id}/ping`, { headers, body: {} })).text()
  })
  silent.close()
}

async function subscribe(attack) {
  const answer = await send(attack, '/api/trpc/boot.onChange', {
    method: 'GET',
    headers: { cookie: attack.tenant.viewers[0], accept: 'text/event-stream' },
  })
  for await (const _ of answer.body);
}

async function reportBoots({ tenant, count }, boots) {
  count(await tenant.edge.report(boots))
}

async function sendLarge(attack, number) {
  const headers = { cookie: attack.tenant.owner, origin: attack.origin }
  const path = `/api/v1/sites/${attack.tenant.siteId}/device-imports`
  const body =
    number % 2
      ? JSON.stringify({ csv: 'name,mac\n'.padEnd(2_900_000, 'x'), preview: true })
      : `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  await (await send(attack, path, { body, headers })).text()
}
