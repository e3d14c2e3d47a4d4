import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import { type DoneJob, type EndedQuery, openDb, requireApiRole } from '@bootfarm/db'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { openNotifications } from './context/notifications.ts'
import type { PlatformContext } from './context/service-context.ts'
import { Objects } from './difference/objects.ts'
import { openObjectStore } from './difference/open-store.ts'
import { type Environment, readEnvironment } from './env.ts'
import { ApiMetrics } from './http/observe/api-metrics.ts'
import { addFleetGauges } from './http/observe/fleet-gauges.ts'
import { startMetricsServer } from './http/observe/metrics-server.ts'
import type { InstallationSettings } from './installation/edge-releases.ts'
import type { UpdateSettings } from './installation/update-repository.ts'
import { type RunningJobs, startJobs } from './jobs/run-jobs.ts'
import { createMailer } from './mail/mailer.ts'
import { deliverQueued, queueMails, queueMailsWithin } from './mail/queued-mailer.ts'
import { readFleetFigures } from './platform/read-fleet-figures.ts'
import { systemClock } from './rules/clock.ts'
import type { Mail } from './rules/mail.ts'
import { type Telemetry, tellAll } from './rules/telemetry.ts'
import type { TenancySettings } from './rules/tenancy.ts'
import { loadSecretKeys } from './secrets/load-secret-keys.ts'
import { requireSecretKeys } from './secrets/reseal-secrets.ts'
import { createServer } from './server.ts'
import { type OidcSettings, parseDomainRules } from './session/oidc.ts'
import { offerSetupLink } from './session/setup-link.ts'
import { type UploadSettings, Uploads } from './upload/uploads.ts'

const { version: apiVersion } = createRequire(import.meta.url)('../package.json') as { version: string }

const gib = 1024 ** 3

/** Starts the API and stops it in order at SIGTERM or SIGINT: requests, subscriptions, database. */
async function main(): Promise<void> {
  const environment = readEnvironment()
  const tracing = await openTracing(environment)
  const onQuery = (ended: EndedQuery) => {
    metrics.queryEnded(ended.text, ended.durationMs, ended.isFailed)
    tracing?.queryEnded(ended)
  }
  const { db, pool } = openDb(environment.DATABASE_URL, onQuery, environment.DATABASE_CONNECTIONS)
  const metrics = new ApiMetrics({
    version: apiVersion,
    pool: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  })
  const tracer = tracing ?? undefined
  const telemetry = tracing ? tellAll([metrics, tracing]) : metrics
  const readFigures = () => readFleetFigures({ db, clock: systemClock })
  addFleetGauges(metrics.registry, { read: readFigures, now: () => performance.now() })
  const notifications = await openNotifications(environment.DATABASE_URL)
  await requireApiRole(db)
  const bootRetention = retentionOf(environment)
  const webhookTargets = { allowedNetworks: environment.WEBHOOK_ALLOW_NETWORKS }
  const uploads = new Uploads(uploadSettings(environment))
  const objects = await objectsOf(environment, metrics)
  const keep: RunningJobs['keepMail'] = (sealed, transaction) => jobs.keepMail(sealed, transaction)
  const { deliverMail, keepMail, sendMail, ...people } = peopleOptions(environment, telemetry, keep)
  const shared = { db, clock: systemClock, bootRetention, webhookTargets, uploads, objects }
  const app = await createServer({
    ...people,
    ...shared,
    sendMail,
    telemetry,
    tracer,
    notifications,
    webUrl: environment.WEB_URL,
    trustedProxies: environment.TRUSTED_PROXIES,
    secret: environment.BETTER_AUTH_SECRET,
    secretKeys: await loadSecretKeys(environment),
    ...consoleOptions(environment),
    ...releaseOptions(environment),
    logLevel: environment.LOG_LEVEL,
    checkJobs: () => jobs.check(),
    drain: () => delay(environment.API_DRAIN_SECONDS * 1000),
  })
  await requireSecretKeys({ db, clock: systemClock })
  const jobContext = { ...shared, telemetry, tracer, sendMail, keepMail, deliverMail, webUrl: environment.WEB_URL }
  const jobs = await startJobs(environment.DATABASE_URL, jobContext, {
    onDone: (done) => jobDone(done, app.log, telemetry),
    onError: (error) => app.log.error({ detail: textOf(error) }, 'jobs'),
  })
  const metricsServer = await openMetricsServer(metrics, environment)
  app.addHook('onClose', async () => {
    await metricsServer?.close()
    await tracing?.close()
    await jobs.stop()
    await notifications.close()
    await db.$disconnect()
  })
  closeAtSignals(app)
  await app.listen({ host: environment.API_HOST, port: environment.API_PORT })
  await offerSetup({ db, clock: systemClock }, environment.WEB_URL)
}

function closeAtSignals(app: FastifyInstance): void {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.once(signal, () => {
      app.close().then(
        () => process.exit(0),
        () => process.exit(1),
      )
    })
}

function consoleOptions(environment: Environment) {
  return {
    consolesDirectory: environment.BOOTFARM_CONSOLES || null,
    consolesOrganization: environment.BOOTFARM_CONSOLES_ORGANIZATION,
  }
}

function retentionOf({ BOOTFARM_BOOT_SUMMARY_DAYS: summaryDays, BOOTFARM_BOOT_DETAIL_DAYS: detailDays }: Environment) {
  return { summaryDays, detailDays }
}

function uploadSettings(environment: Environment): UploadSettings {
  return {
    directory: environment.BOOTFARM_UPLOADS || null,
    sizeBytesMax: environment.UPLOAD_GIB_MAX * gib,
    organizationBytesMax: environment.UPLOADS_ORGANIZATION_GIB_MAX * gib,
    freeBytesMin: environment.UPLOADS_FREE_GIB * gib,
  }
}

async function objectsOf(environment: Environment, metrics: ApiMetrics): Promise<Objects> {
  return new Objects({
    store: await openObjectStore(environment),
    organizationBytesMax: environment.OBJECTS_ORGANIZATION_GIB_MAX * gib,
    onTrouble: (operation) => metrics.objectStoreFailed(operation),
  })
}

function releaseOptions(environment: Environment): { installation: InstallationSettings; updates: UpdateSettings } {
  return {
    installation: {
      directory: environment.BOOTFARM_EDGE_BINARIES || null,
      publicKey: environment.BOOTFARM_RELEASE_KEY || null,
      url: (environment.EDGE_URL || environment.WEB_URL).replace(/\/+$/, ''),
    },
    updates: {
      directory: environment.BOOTFARM_EDGE_UPDATES || null,
      timestampKey: environment.BOOTFARM_TIMESTAMP_KEY || null,
    },
  }
}

/** With a mail server, mails wait in the queue until it takes them; without one, they are logged at once. */
function peopleOptions(environment: Environment, telemetry: Telemetry, keep: RunningJobs['keepMail']) {
  const { SMTP_URL: smtpUrl, MAIL_FROM: from, BETTER_AUTH_SECRET: secret } = environment
  const mailer = createMailer({ smtpUrl: smtpUrl || null, from, log: say })
  const send = async (mail: Mail) => {
    const isSent = await mailer(mail)
    telemetry.mailSent(isSent)
    return isSent
  }
  return {
    sendMail: smtpUrl ? queueMails({ secret, keep, log: say }) : send,
    keepMail: smtpUrl ? queueMailsWithin({ secret, keep }) : async (mail: Mail) => void (await send(mail)),
    deliverMail: smtpUrl ? (sealed: string) => deliverQueued(sealed, { secret, send }) : null,
    tenancy: tenancySettings(environment),
    oidc: oidcSettings(environment),
  }
}

function tenancySettings(environment: Environment): TenancySettings {
  return {
    isSelfService: environment.SELF_SERVICE === 'on',
    quotas: environment.SELF_SERVICE_QUOTAS,
    organizationsPerPersonMax: environment.SELF_SERVICE_ORGANIZATIONS,
    deletionGraceDays: environment.ORGANIZATION_GRACE_DAYS,
    contact: environment.PLATFORM_CONTACT || null,
  }
}

function oidcSettings(environment: Environment): OidcSettings | null {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = environment
  if (!issuer && !clientId && !clientSecret) return null
  if (!issuer || !clientId || !clientSecret)
    throw new Error('OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET go together; one of them is not set.')
  const rules = parseDomainRules(environment.OIDC_MEMBERS)
  return { issuer, clientId, clientSecret, name: environment.OIDC_NAME, rules }
}

/** Prints the link with which the first owner of an installation creates an account. */
async function offerSetup(context: PlatformContext, webUrl: string): Promise<void> {
  const offer = await offerSetupLink(context, webUrl)
  if (!offer) return
  if ('link' in offer) say(`Nobody has an account yet. Make the first owner within 24 hours: ${offer.link}`)
  else
    say(
      `Nobody has an account yet. The link for the first owner that was printed before holds until ${offer.heldUntil.toISOString()}; a new one in its place: node apps/api/src/cli.ts owner-link`,
    )
}

/** Null where no port is set. */
async function openMetricsServer({ registry }: ApiMetrics, environment: Environment) {
  const { METRICS_HOST: host, METRICS_PORT: port, METRICS_TOKEN: token } = environment
  return port === null ? null : startMetricsServer(registry, { host, port, token })
}

/** The modules for traces are not even loaded if no traces are collected. */
async function openTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName }: Environment) {
  if (!endpoint) return null
  const { startTracing } = await import('./http/observe/tracing.ts')
  return startTracing({ endpoint, serviceName, version: apiVersion })
}

function jobDone(done: DoneJob, log: FastifyBaseLogger, telemetry: Telemetry): void {
  const { error, ...facts } = done
  telemetry.jobEnded(done)
  if (error === null) log.debug(facts, 'job')
  else log.error({ ...facts, detail: textOf(error) }, 'job')
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

main().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message || String((error as NodeJS.ErrnoException).code) : String(error)
  process.stderr.write(`The API did not start: ${reason}\n`)
  process.exit(1)
})
