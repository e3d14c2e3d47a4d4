import { edgeOnlineWithinMs } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import { cutPage, decodeCursor, decodeInstantCursor } from '../context/keyset.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { QuotaView } from '../rules/quotas.ts'
import type {
  platformEventPage,
  platformEventsInput,
  platformHealthView,
  platformListInput,
  platformOrganizationView,
  platformPage,
} from './schema.ts'

interface UsageRow {
  organization_id: string
  name: string
  slug: string
  created_at: Date
  suspended_at: Date | null
  delete_after: Date | null
  is_self_service: boolean
  edges_online: bigint
  last_report_at: Date | null
  edge_versions: Record<string, number>
  usage: QuotaView[]
}

/** Organizations with their figures, the oldest first; `search` is a part of the name or the slug. */
export async function listPlatformOrganizations(
  context: PlatformContext,
  { cursor, limit, search }: z.output<typeof platformListInput>,
): Promise<z.infer<typeof platformPage>> {
  const afterId = decodeCursor(cursor)?.[1] ?? null
  const rows = await readUsage(context, { afterId, search: search?.trim() || null, countMax: limit + 1 })
  return cutPage(rows, limit, { item: viewOf, key: (row) => ['', row.organization_id] })
}

/** Throws `not_found`. */
export async function getPlatformOrganization(
  context: PlatformContext,
  organizationId: string,
): Promise<z.infer<typeof platformOrganizationView>> {
  // Ids are compared as they are ordered: the one after its predecessor is itself.
  const [row] = await readUsage(context, { afterId: before(organizationId), search: null, countMax: 1 })
  if (row?.organization_id !== organizationId) throw new AppError('not_found')
  return viewOf(row)
}

/** Sums over the installation, and how its jobs went. */
export async function getPlatformHealth(context: PlatformContext): Promise<z.infer<typeof platformHealthView>> {
  const { db } = context
  const [row] = await db.$queryRaw<Record<string, bigint>[]>`
    select * from platform_figures(${onlineSince(context)})`
  const figure = (name: string) => Number(row?.[name] ?? 0)
  const jobs = await db.jobState.findMany({ orderBy: { name: 'asc' } })
  return {
    organizations: figure('organizations'),
    suspended: figure('suspended'),
    beingDeleted: figure('being_deleted'),
    people: figure('people'),
    edges: figure('edges'),
    edgesOnline: figure('edges_online'),
    databaseSizeBytes: figure('database_size_bytes'),
    jobs: jobs.map(({ lastSucceededAt, lastFailedAt, ...job }) => ({
      ...job,
      lastSucceededAt: lastSucceededAt?.toISOString() ?? null,
      lastFailedAt: lastFailedAt?.toISOString() ?? null,
    })),
  }
}

function readUsage(
  context: PlatformContext,
  { afterId, search, countMax }: { afterId: string | null; search: string | null; countMax: number },
): Promise<UsageRow[]> {
  return context.db.$queryRaw<UsageRow[]>`
    select organization_id::text, name, slug, created_at, suspended_at, delete_after, is_self_service, edges_online,
      last_report_at, edge_versions, usage
    from organization_usage(${onlineSince(context)}, ${afterId}::uuid, ${search}::text, ${countMax}::integer)`
}

function onlineSince({ clock }: PlatformContext): Date {
  return new Date(clock().getTime() - edgeOnlineWithinMs)
}

function before(id: string): string | null {
  const number = BigInt(`0x${id.replaceAll('-', '')}`)
  if (number === 0n) return null
  const digits = (number - 1n).toString(16).padStart(32, '0')
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

function viewOf(row: UsageRow): z.infer<typeof platformOrganizationView> {
  return {
    id: row.organization_id,
    name: row.name,
    slug: row.slug,
    isSelfService: row.is_self_service,
    createdAt: row.created_at.toISOString(),
    suspendedAt: row.suspended_at?.toISOString() ?? null,
    deleteAfter: row.delete_after?.toISOString() ?? null,
    edgesOnline: Number(row.edges_online),
    lastReportAt: row.last_report_at?.toISOString() ?? null,
    edgeVersions: row.edge_versions,
    quotas: row.usage,
  }
}

/** The platform's own log, newest first. */
export async function listPlatformEvents(
  { db }: PlatformContext,
  { cursor, limit }: z.output<typeof platformEventsInput>,
): Promise<z.infer<typeof platformEventPage>> {
  const after = decodeInstantCursor(cursor)
  const rows = await db.platformEvent.findMany({
    where: after ? { OR: [{ at: { lt: after.at } }, { at: after.at, id: { lt: after.id } }] } : {},
    orderBy: [{ at: 'desc' }, { id: 'desc' }],
    take: limit + 1,
  })
  return cutPage(rows, limit, {
    item: ({ at, subjectId, before, after: changed, ...row }) => ({
      ...row,
      at: at.toISOString(),
      organizationId: subjectId,
      before: before as Record<string, unknown> | null,
      after: changed as Record<string, unknown> | null,
    }),
    key: (row) => [row.at.toISOString(), row.id],
  })
}
