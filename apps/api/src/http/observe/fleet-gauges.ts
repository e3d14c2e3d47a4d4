import { Counter, Gauge, type Registry } from 'prom-client'
import type { FleetFigures } from '../../platform/read-fleet-figures.ts'

/** However often it is scraped, and by however many: the database is asked so seldom. */
const keptMs = 10_000

interface FleetGaugesOptions {
  read: () => Promise<FleetFigures>
  /** Monotonic milliseconds. */
  now: () => number
}

/**
 * Adds the gauges over all organizations. While the database does not answer they are absent, and the failure is
 * counted.
 */
export function addFleetGauges(registry: Registry, { read, now }: FleetGaugesOptions): void {
  const failures = new Counter({
    name: 'bootfarm_fleet_read_errors_total',
    help: 'Scrapes for which the database did not tell the numbers of the fleet.',
    registers: [registry],
  })
  let kept: { at: number; figures: Promise<FleetFigures | null> } | undefined
  const figures = () => {
    if (kept === undefined || now() - kept.at >= keptMs)
      kept = {
        at: now(),
        figures: read().catch(() => {
          failures.inc()
          return null
        }),
      }
    return kept.figures
  }
  for (const { name, help, labelNames, values } of gauges)
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const found = await figures()
        this.reset()
        if (found) for (const { labels = {}, value } of values(found)) this.set(labels, value)
        // A gauge without labels would be 0 after a reset, which nobody reported.
        else if (labelNames.length === 0) this.set(Number.NaN)
      },
    })
}

interface FleetGauge {
  name: string
  help: string
  labelNames: string[]
  values: (figures: FleetFigures) => { labels?: Record<string, string>; value: number }[]
}

function one(name: string, help: string, pick: (figures: FleetFigures) => number): FleetGauge {
  return { name, help, labelNames: [], values: (figures) => [{ value: pick(figures) }] }
}

const gauges: FleetGauge[] = [
  {
    name: 'bootfarm_edges',
    help: 'Edges that are not revoked, by whether their heartbeats come.',
    labelNames: ['state'],
    values: ({ edgesOnline, edgesOffline }) => [
      { labels: { state: 'online' }, value: edgesOnline },
      { labels: { state: 'offline' }, value: edgesOffline },
    ],
  },
  one('bootfarm_edges_skewed', 'Edges online whose clock is more than 5 s off.', ({ edgesSkewed }) => edgesSkewed),
  one(
    'bootfarm_edges_refused',
    'Edges that are refused for the version that they speak.',
    ({ edgesRefused }) => edgesRefused,
  ),
  one(
    'bootfarm_devices_booting',
    'Boots that go on at edges online, as their last heartbeats say.',
    ({ devicesBooting }) => devicesBooting,
  ),
  one(
    'bootfarm_report_backlog',
    'Reports that edges online have kept and not sent yet, as their last heartbeats say.',
    ({ reportBacklog }) => reportBacklog,
  ),
  one(
    'bootfarm_states_waiting',
    'Desired states that were signed and not taken by their edge yet.',
    ({ statesWaiting }) => statesWaiting,
  ),
  one(
    'bootfarm_oldest_state_waiting_seconds',
    'Age of the oldest of them.',
    ({ oldestStateSeconds }) => oldestStateSeconds,
  ),
  one(
    'bootfarm_webhook_deliveries_waiting',
    'Messages to webhooks that are still to be delivered.',
    ({ deliveriesWaiting }) => deliveriesWaiting,
  ),
  one(
    'bootfarm_oldest_webhook_delivery_overdue_seconds',
    'How long the oldest of them is due.',
    ({ oldestDeliverySeconds }) => oldestDeliverySeconds,
  ),
  {
    name: 'bootfarm_jobs',
    help: 'Jobs that are due or run, by queue.',
    labelNames: ['queue', 'state'],
    values: ({ jobs }) => jobs.map(({ queue, state, count }) => ({ labels: { queue, state }, value: count })),
  },
  {
    name: 'bootfarm_oldest_job_seconds',
    help: 'How long the oldest of them waits, or runs.',
    labelNames: ['queue', 'state'],
    values: ({ jobs }) =>
      jobs.map(({ queue, state, oldestSeconds }) => ({ labels: { queue, state }, value: oldestSeconds })),
  },
]
