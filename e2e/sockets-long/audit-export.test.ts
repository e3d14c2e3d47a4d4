import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createPerson, createTenant } from '@bootfarm/api/testing/tenant'
import { createDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '../lib/control-plane/api-client.ts'
import { ControlPlane, migrate } from '../lib/control-plane/control-plane.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const entryCount = 100_000
/** The size of each entry's fields: the file is larger than the whole heap that the API may have. */
const noteSize = 1_200
/** The API itself needs some 60 MiB. */
const heapMaxMib = 96
const growthMaxKib = 80 * 1024
const limitMs = 300_000

const scratch = scratchDirectory()
let plane: ControlPlane
let client: ApiClient

beforeAll(async () => {
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'), migrate, {
    NODE_OPTIONS: `--max-old-space-size=${heapMaxMib}`,
  })
  const db = createDb(plane.databaseUrl)
  const clock = { now: new Date(), advance: () => {}, read: () => new Date() }
  const { organizationId } = await createTenant({ db, clock }, 'audited')
  const { email, password } = await createPerson({ db }, organizationId, 'auditor')
  await db.$executeRaw`
    insert into audit_entry (organization_id, id, at, actor_kind, actor_name, action, object_kind, after)
    select ${organizationId}::uuid, gen_random_uuid(), now() - make_interval(secs => number), 'system', 'set-up', 'farm.create',
      'farm', jsonb_build_object('note', repeat('x', ${noteSize}::int), 'number', number)
    from generate_series(1, ${entryCount}::int) number`
  await db.$disconnect()
  client = await ApiClient.signIn(plane.webUrl, email, password)
}, limitMs)
afterAll(async () => {
  await plane?.stop()
  scratch.remove()
})

/** Returns the API's peak memory so far (proc(5): VmHWM). */
function peakKib(): number {
  const status = readFileSync(`/proc/${plane.api.pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1])
}

test.each(['jsonl', 'csv'])(
  `an API exports more of the audit log than fits into its memory, as %s`,
  async (format) => {
    const before = peakKib()
    const file = await client.text(`/api/v1/audit-exports?format=${format}`)
    expect(file.length).toBeGreaterThan(heapMaxMib * 2 ** 20)
    expect(file.trimEnd().split('\n').length).toBeGreaterThanOrEqual(entryCount)
    expect(peakKib() - before).toBeLessThan(growthMaxKib)
    expect(plane.api.isRunning, plane.api.output).toBe(true)
  },
  limitMs,
)
