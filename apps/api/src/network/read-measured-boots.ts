import { Prisma } from '@bootfarm/db'
import { visibleBoots } from '../access/visible.ts'
import { bootWhereSql, readBootDays } from '../boot/public.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { withStatementLimit } from '../context/statement-limit.ts'
import type { TimeSpan } from '../context/time-span.ts'
import { dayMs } from '../rules/utc-day.ts'
import type { StoredNetwork } from './stored-network.ts'

/** The newest so many boots are read: their rows are some 10 MB of JSON. */
export const measuredMax = 20_000
const statementLimitMs = 2_500

export interface MeasuredBoot {
  id: string
  startedMs: number
  siteId: string
  /** Null for an unregistered device. */
  deviceId: string | null
  mac: string
  segment: string | null
  /** Driver and PCI ids. */
  card: string | null
  network: StoredNetwork
}

type Tuple = [
  id: string,
  startedMs: number,
  siteId: string,
  deviceId: string | null,
  mac: string,
  segment: string | null,
  card: string | null,
  network: StoredNetwork,
]

/** Of a request, or of a file that is sent page by page. */
export type ReadContext = Pick<ServiceContext, 'db' | 'actor' | 'clock'>

interface Boots {
  siteId: string | undefined
  span: TimeSpan
}

/** Reads boots whose device measured its network, the newest first, at most `measuredMax` + 1. */
export async function readMeasuredBoots(context: ReadContext, { siteId, span }: Boots): Promise<MeasuredBoot[]> {
  const { db, actor } = context
  const visible = bootWhereSql(await visibleBoots(context))
  const days = (await readBootDays(context))
    .filter((day) => day.receivedOn.getTime() + dayMs > span.since.getTime() && day.earliestStartedAt < span.until)
    .map(({ receivedOn }) => receivedOn.toISOString().slice(0, 10))
  const ofSite = siteId === undefined ? Prisma.sql`true` : Prisma.sql`boot.site_id = ${siteId}::uuid`
  return withStatementLimit(db, {
    limitMs: statementLimitMs,
    tooLong: 'These boots take too long to read. Choose a shorter period, or one site.',
    work: async () => {
      const [row] = await db.$queryRaw<{ boots: string }[]>`
        select coalesce(json_agg(json_build_array(id, floor(extract(epoch from started_at) * 1000)::bigint, site_id,
          device_id, mac, segment, network_card, network) order by started_at desc, id), '[]')::text as boots
        from (select * from boot where boot.organization_id = ${actor.organizationId}::uuid
          and boot.started_at >= ${span.since} and boot.started_at < ${span.until}
          and boot.received_on = any(${days}::date[]) and boot.network is not null and not boot.generated
          and ${ofSite} and ${visible}
          order by boot.started_at desc, boot.id limit ${measuredMax + 1}) as measured`
      return (JSON.parse(row?.boots ?? '[]') as Tuple[]).map(bootOf)
    },
  })
}

function bootOf([id, startedMs, siteId, deviceId, mac, segment, card, network]: Tuple): MeasuredBoot {
  return { id, startedMs, siteId, deviceId, mac, segment, card, network }
}
