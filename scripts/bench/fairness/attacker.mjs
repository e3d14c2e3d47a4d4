// `node attacker.mjs` attacks one organization until its input ends, as its first line says; then it prints what it
// did. It runs apart from the measuring process and at the lowest priority, as on a machine of its own.
import { createInterface } from 'node:readline'
import { EdgeClient } from '../../../apps/api/test/edge-client.ts'
import { attacks } from './attacks.mjs'
import { SiteEdge } from './tenants.mjs'

const lines = createInterface({ input: process.stdin })
const stopping = new AbortController()
lines.once('close', () => stopping.abort())
lines.once('line', async (text) => {
  const { name, url, origin, tenant } = JSON.parse(text)
  const client = Object.assign(new EdgeClient(url, Buffer.from(tenant.edge.seed, 'base64')), tenant.edge.identity)
  const edge = new SiteEdge(client, tenant.macs, tenant.edge.nextSeq)
  const counts = {}
  const count = (status) => {
    counts[status] = (counts[status] ?? 0) + 1
  }
  const { signal } = stopping
  await attacks[name].run({ url, origin, tenant: { ...tenant, edge }, signal, count }).catch((error) => {
    if (!signal.aborted) throw error
  })
  const { user, system } = process.cpuUsage()
  const result = { counts, seconds: (user + system) / 1e6 }
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
})
