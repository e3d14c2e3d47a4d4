import { bootPhases } from '@bootfarm/proto/boot-phases'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { outcomeOfReport } from '../../rules/boot-outcome.ts'
import type {
  AnsweredRequest,
  AppliedReports,
  EndedBoot,
  EndedJob,
  EndedProcedure,
  Telemetry,
} from '../../rules/telemetry.ts'
import { statementName } from './statement-name.ts'

const requestBuckets = [0.01, 0.05, 0.15, 0.5, 2, 10, 30]
const queryBuckets = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10]
const jobBuckets = [0.01, 0.1, 1, 10, 60, 600]
const bootBuckets = [5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600]
const phaseBuckets = [0.1, 0.5, 1, 2, 5, 10, 20, 40, 80, 160]
/** From "waited for nobody" to the longest wait that fairness allows several times over. */
const turnBuckets = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1, 5]
const stateBuckets = [0.05, 0.2, 1, 5, 30, 300]
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The database's connections in this process. */
interface PoolFigures {
  total: number
  idle: number
  waiting: number
}

/**
 * The API's own counters. Every label's values are of a set that this build knows: routes, procedures, codes, outcomes.
 * No id, name or text of a caller becomes one, so that memory does not grow with the requests.
 */
export class ApiMetrics implements Telemetry {
  readonly registry = new Registry()
  readonly #requests = this.#histogram({
    name: 'bootfarm_http_request_duration_seconds',
    help: 'Requests by the template of their route; 4xx has 499, where the caller left.',
    labelNames: ['route', 'method', 'status'],
    buckets: requestBuckets,
  })
  readonly #procedures = this.#histogram({
    name: 'bootfarm_procedure_duration_seconds',
    help: 'Procedures, of the dashboard and of the REST API.',
    labelNames: ['procedure'],
    buckets: requestBuckets,
  })
  readonly #procedureErrors = this.#counter({
    name: 'bootfarm_procedure_errors_total',
    help: 'Procedures that were refused or failed, by code.',
    labelNames: ['procedure', 'code'],
  })
  readonly #objectErrors = this.#counter({
    name: 'bootfarm_object_store_errors_total',
    help: 'Requests to the object store of differences that failed or gave other bytes, by what was asked.',
    labelNames: ['operation'],
  })
  readonly #queries = this.#histogram({
    name: 'bootfarm_db_query_duration_seconds',
    help: 'Statements sent to PostgreSQL, by their first word: from when the connection was free for it until its answer was read.',
    labelNames: ['statement'],
    buckets: queryBuckets,
  })
  readonly #queryErrors = this.#counter({
    name: 'bootfarm_db_query_errors_total',
    help: 'Statements that PostgreSQL refused, or that found no connection.',
  })
  readonly #batches = this.#counter({
    name: 'bootfarm_report_batches_total',
    help: 'Batches of edges: applied, repeated (applied before), refused.',
    labelNames: ['result'],
  })
  readonly #reports = this.#counter({
    name: 'bootfarm_reports_applied_total',
    help: 'Reports that were news, by type.',
    labelNames: ['type'],
  })
  readonly #lost = this.#counter({
    name: 'bootfarm_reports_lost_total',
    help: 'Reports that edges declared lost, or that could not be read.',
  })
  readonly #boots = this.#counter({
    name: 'bootfarm_boots_total',
    help: 'Boots that ended, by outcome, counted once each when it became known.',
    labelNames: ['outcome'],
  })
  readonly #bootDurations = this.#histogram({
    name: 'bootfarm_boot_duration_seconds',
    help: 'From the first packet to ready, of boots that got ready.',
    buckets: bootBuckets,
  })
  readonly #phaseDurations = this.#histogram({
    name: 'bootfarm_boot_phase_duration_seconds',
    help: 'Phases of boots that got ready.',
    labelNames: ['phase'],
    buckets: phaseBuckets,
  })
  readonly #states = this.#histogram({
    name: 'bootfarm_state_acknowledge_duration_seconds',
    help: 'From the signing of a desired state to the request of its edge that shows it was taken.',
    buckets: stateBuckets,
  })
  readonly #jobs = this.#histogram({
    name: 'bootfarm_job_duration_seconds',
    help: 'Jobs that ended in this process.',
    labelNames: ['queue', 'outcome'],
    buckets: jobBuckets,
  })
  readonly #deliveries = this.#counter({
    name: 'bootfarm_webhook_deliveries_total',
    help: 'Tries to deliver a message.',
    labelNames: ['outcome'],
  })
  readonly #mails = this.#counter({
    name: 'bootfarm_mails_total',
    help: 'Mails; failed ones are in the log.',
    labelNames: ['outcome'],
  })
  readonly #rateLimited = this.#counter({
    name: 'bootfarm_rate_limited_requests_total',
    help: 'Requests refused since too many came from the same.',
    labelNames: ['kind'],
  })
  readonly #turns = this.#histogram({
    name: 'bootfarm_turn_wait_duration_seconds',
    help: 'How long requests, large bodies and calls of a batch waited for their turn at the event loop.',
    labelNames: ['kind'],
    buckets: turnBuckets,
  })

  constructor({ version, pool }: { version: string; pool: () => PoolFigures }) {
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: 10 })
    const { registry } = this
    new Gauge({
      name: 'bootfarm_build_info',
      help: 'Always 1; what runs here.',
      labelNames: ['version'],
      registers: [registry],
    }).set({ version }, 1)
    new Gauge({
      name: 'bootfarm_db_pool_connections',
      help: 'Connections of this process by state, and requests that wait for one.',
      labelNames: ['state'],
      registers: [registry],
      collect() {
        const { total, idle, waiting } = pool()
        this.set({ state: 'busy' }, total - idle)
        this.set({ state: 'idle' }, idle)
        this.set({ state: 'waiting' }, waiting)
      },
    })
  }

  requestAnswered({ route, method, status, durationMs }: AnsweredRequest): void {
    const labels = {
      route,
      method: route !== 'none' && methods.has(method) ? method : 'other',
      status: `${Math.floor(status / 100)}xx`,
    }
    this.#requests.observe(labels, durationMs / 1000)
  }

  procedureEnded({ path, outcome, durationMs }: EndedProcedure): void {
    this.#procedures.observe({ procedure: path }, durationMs / 1000)
    if (outcome !== 'ok') this.#procedureErrors.inc({ procedure: path, code: outcome })
  }

  /** @param text of the statement; no more than its first word is kept */
  queryEnded(text: string, durationMs: number, isFailed: boolean): void {
    this.#queries.observe({ statement: statementName(text).operation }, durationMs / 1000)
    if (isFailed) this.#queryErrors.inc()
  }

  objectStoreFailed(operation: string): void {
    this.#objectErrors.inc({ operation })
  }

  reportsApplied({ counts, lostCount, endedBoots }: AppliedReports): void {
    this.#batches.inc({ result: counts.size > 0 ? 'applied' : 'repeated' })
    for (const [type, count] of counts) this.#reports.inc({ type }, count)
    this.#lost.inc(lostCount)
    for (const ended of endedBoots) this.#countBoot(ended)
  }

  reportsRefused(): void {
    this.#batches.inc({ result: 'refused' })
  }

  stateAcknowledged(afterMs: number): void {
    this.#states.observe(Math.max(0, afterMs) / 1000)
  }

  jobEnded({ job, durationMs, error }: EndedJob): void {
    this.#jobs.observe({ queue: job, outcome: error === null ? 'done' : 'failed' }, durationMs / 1000)
  }

  deliveryTried(isTaken: boolean): void {
    this.#deliveries.inc({ outcome: isTaken ? 'delivered' : 'failed' })
  }

  mailSent(isSent: boolean): void {
    this.#mails.inc({ outcome: isSent ? 'sent' : 'failed' })
  }

  rateLimited(kind: 'api_key' | 'person' | 'turns' | 'sign_in'): void {
    this.#rateLimited.inc({ kind })
  }

  turnStarted(kind: 'upload' | 'large' | 'request' | 'call', waitedMs: number): void {
    this.#turns.observe({ kind }, waitedMs / 1000)
  }

  /** History that the demo makes up never happened. */
  #countBoot({ boot }: EndedBoot): void {
    const outcome = outcomeOfReport(boot)
    if (boot.generated || outcome === null) return
    this.#boots.inc({ outcome })
    if (outcome !== 'ready') return
    const ends = boot.phases.map(({ startUs, durationUs = 0 }) => startUs + durationUs)
    this.#bootDurations.observe(Math.max(0, ...ends) / 1e6)
    for (const { name, durationUs } of boot.phases)
      if (durationUs !== undefined && bootPhases.includes(name))
        this.#phaseDurations.observe({ phase: name }, durationUs / 1e6)
  }

  #histogram<T extends string>(options: Omit<ConstructorParameters<typeof Histogram<T>>[0], 'registers'>) {
    return new Histogram<T>({ ...options, registers: [this.registry] })
  }

  #counter<T extends string>(options: Omit<ConstructorParameters<typeof Counter<T>>[0], 'registers'>) {
    return new Counter<T>({ ...options, registers: [this.registry] })
  }
}
