import { Readable } from 'node:stream'
import { inOrganization } from '@bootfarm/db'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Checks } from '../../access/checks.ts'
import { listAudit } from '../../audit/list-audit.ts'
import { type AuditEntryView, auditFilter, type auditListInput, type auditPage } from '../../audit/schema.ts'
import { readCaptureFile } from '../../boot/get-boot-capture.ts'
import type { PlatformContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Actor } from '../../rules/actor.ts'
import { csvLine } from '../../rules/csv.ts'

interface AuditExportOptions {
  context: PlatformContext
  checks: Checks
  findActor: (request: FastifyRequest) => Promise<Actor | null>
}

/** Read in pages, each in a separate transaction: an export never holds more than this in memory. */
const entriesPerRead = 500
const exportQuery = auditFilter.extend({ format: z.enum(['csv', 'jsonl']).default('csv') })
type ExportQuery = z.output<typeof exportQuery>

const columns = [
  'at',
  'actorKind',
  'actorName',
  'actorId',
  'action',
  'objectKind',
  'objectName',
  'objectId',
  'siteId',
  'before',
  'after',
  'address',
  'requestId',
] as const

/** The audit log as a file: all entries that the filters of the list leave, newest first. */
export async function auditExportRoutes(app: FastifyInstance, { context, checks, findActor }: AuditExportOptions) {
  app.get('/audit/export', async (request, reply) => {
    const actor = await findActor(request)
    if (!actor) throw new AppError('unauthenticated')
    const { success, data, error } = exportQuery.safeParse(request.query)
    if (!success) throw new AppError('invalid', { public: z.prettifyError(error) })
    await inOrganization(context.db, actor.organizationId, (db) =>
      checks.authorise({ db, actor }, { permission: 'audit.read' }, 'visible'),
    )
    const day = context.clock().toISOString().slice(0, 10)
    return reply
      .type(data.format === 'csv' ? 'text/csv; charset=utf-8' : 'application/jsonl')
      .header('content-disposition', `attachment; filename="audit-${day}.${data.format}"`)
      .header('cache-control', 'no-store')
      .header('x-content-type-options', 'nosniff')
      .send(Readable.from(linesOf({ ...context, actor }, data)))
  })
}

async function* linesOf(
  { db, actor }: PlatformContext & { actor: Actor },
  { format, ...filter }: ExportQuery,
): AsyncGenerator<string> {
  if (format === 'csv') yield csvLine([...columns])
  let cursor: string | null = null
  do {
    const page: AuditPage = await readPage({ db, actor }, { ...filter, cursor, limit: entriesPerRead })
    yield page.items.map((entry) => (format === 'csv' ? csvOf(entry) : `${JSON.stringify(entry)}\n`)).join('')
    cursor = page.nextCursor
  } while (cursor !== null)
}

type AuditPage = z.infer<typeof auditPage>

function readPage(
  { db, actor }: Pick<PlatformContext, 'db'> & { actor: Actor },
  input: z.output<typeof auditListInput>,
): Promise<AuditPage> {
  return inOrganization(db, actor.organizationId, (tenant) => listAudit({ db: tenant, actor }, input))
}

function csvOf(entry: AuditEntryView): string {
  return csvLine(
    columns.map((name) => {
      const value = entry[name]
      return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
    }),
  )
}

interface CaptureRoutesOptions {
  context: PlatformContext
  checks: Checks
  findActor: (request: FastifyRequest) => Promise<Actor | null>
}

const parameters = z.object({ bootId: z.uuid() })

/** The one thing that the dashboard saves as a file. */
export async function captureRoutes(app: FastifyInstance, { context, checks, findActor }: CaptureRoutesOptions) {
  app.get('/boots/:bootId/capture.pcap', async (request, reply) => {
    const actor = await findActor(request)
    if (!actor) throw new AppError('unauthenticated')
    const { success, data } = parameters.safeParse(request.params)
    if (!success) throw new AppError('invalid', { public: 'This is not the ID of a boot.' })
    const places = [{ kind: 'boot' as const, ids: [data.bootId] }]
    const { name, pcap } = await inOrganization(context.db, actor.organizationId, async (db) => {
      await checks.authorise({ db, actor }, { permission: 'boot.inspect' }, places)
      return readCaptureFile({ db, actor }, data.bootId)
    })
    return reply
      .type('application/vnd.tcpdump.pcap')
      .header('content-disposition', `attachment; filename="${name}"`)
      .header('cache-control', 'no-store')
      .header('x-content-type-options', 'nosniff')
      .send(Buffer.from(pcap))
  })
}
