import { edgeOnlineWithinMs } from '@bootfarm/proto/uplink'
import type { PlatformContext } from '../context/service-context.ts'

/** An edge whose clock is this far off is shown as skewed. */
const clockSkewMs = 5_000

/** Over all organizations, without anybody's content. */
export interface FleetFigures {
  edgesOnline: number
  edgesOffline: number
  edgesSkewed: number
  edgesRefused: number
  devicesBooting: number
  reportBacklog: number
  statesWaiting: number
  /** Age of the oldest state that no edge has applied; 0 if all are. */
  oldestStateSeconds: number
  deliveriesWaiting: number
  /** How long the oldest delivery is overdue. */
  oldestDeliverySeconds: number
  jobs: { queue: string; state: 'waiting' | 'running'; count: number; oldestSeconds: number }[]
}

interface FiguresRow {
  edges_online: bigint
  edges_offline: bigint
  edges_skewed: bigint
  edges_refused: bigint
  devices_booting: bigint
  report_backlog: bigint
  states_waiting: bigint
  oldest_state_waiting_at: Date | null
  deliveries_waiting: bigint
  oldest_delivery_due_at: Date | null
}

/** Two statements for any number of organizations. */
export async function readFleetFigures({ db, clock }: PlatformContext): Promise<FleetFigures> {
  const now = clock()
  const [row] = await db.$queryRaw<FiguresRow[]>`
    select * from fleet_figures(${now}, ${`${edgeOnlineWithinMs} milliseconds`}::interval, ${clockSkewMs}::bigint)`
  if (!row) throw new Error('fleet_figures has no row')
  const seconds = (at: Date | null) => (at ? Math.max(0, (now.getTime() - at.getTime()) / 1000) : 0)
  // Names of queues are of this build; what waits is found by an index.
  const jobs = await db.$queryRaw<{ name: string; is_running: boolean; count: bigint; oldest: number }[]>`
    select name, state = 'active' as is_running, count(*) as count,
      extract(epoch from now() - min(case when state = 'active' then started_on else created_on end))::float8 as oldest
    from pgboss.job where state < 'completed' and start_after <= now() group by 1, 2`
  return {
    edgesOnline: Number(row.edges_online),
    edgesOffline: Number(row.edges_offline),
    edgesSkewed: Number(row.edges_skewed),
    edgesRefused: Number(row.edges_refused),
    devicesBooting: Number(row.devices_booting),
    reportBacklog: Number(row.report_backlog),
    statesWaiting: Number(row.states_waiting),
    oldestStateSeconds: seconds(row.oldest_state_waiting_at),
    deliveriesWaiting: Number(row.deliveries_waiting),
    oldestDeliverySeconds: seconds(row.oldest_delivery_due_at),
    jobs: jobs.map(({ name, is_running, count, oldest }) => ({
      queue: name,
      state: is_running ? 'running' : 'waiting',
      count: Number(count),
      oldestSeconds: Math.max(0, oldest),
    })),
  }
}
