import type { Writable } from 'node:stream'
import type { Db } from '@bootfarm/db'
import { migrationNames } from '@bootfarm/db/migrate'
import { printableUrl, uplinkVersionsAccepted } from '@bootfarm/proto/uplink'
import { type FastifyTRPCPluginOptions, fastifyTRPCPlugin } from '@trpc/server/adapters/fastify'
import Fastify, { type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import { applicationChecks, type Checks } from './access/checks.ts'
import { findApiKeyActor } from './api-key/find-api-key-actor.ts'
import { BootFeeds, type FindActors } from './boot/boot-feed.ts'
import type { BootRetention } from './boot/boot-retention.ts'
import type { Notifications } from './context/notifications.ts'
import type { PlatformContext } from './context/service-context.ts'
import { defaultObjectSettings, Objects } from './difference/objects.ts'
import { AppError, errorTable } from './errors/app-error.ts'
import { toAppError } from './errors/to-app-error.ts'
import { setListeners } from './events/event-bus.ts'
import type { Auth } from './http/auth/auth.ts'
import { authRoutes } from './http/auth/auth-routes.ts'
import { openAuth } from './http/auth/open-auth.ts'
import { readSession, renewCookies } from './http/auth/read-session.ts'
import { verifyCode } from './http/auth/verify-code.ts'
import { healthRoutes } from './http/observe/health-routes.ts'
import { escapeForTerminals, logRequests, makeRequestId } from './http/observe/request-log.ts'
import { installRoutes } from './http/rest/install-routes.ts'
import { openApiRoutes } from './http/rest/openapi-routes.ts'
import { refuseBytes, sendProblem } from './http/rest/problem.ts'
import { restRoutes } from './http/rest/rest-routes.ts'
import { apiKeyOf, protectWebSurface } from './http/rest/web-surface.ts'
import type { TrpcContext } from './http/trpc/context.ts'
import { currentActors } from './http/trpc/current-actors.ts'
import { procedurePolicies } from './http/trpc/policies.ts'
import { type AppRouter, appRouter } from './http/trpc/router.ts'
import { Rates } from './http/turns/rates.ts'
import { type Governor, newGovernor, takeTurns } from './http/turns/take-turns.ts'
import { EdgeReleases, type InstallationSettings } from './installation/edge-releases.ts'
import { UpdateRepository, type UpdateSettings } from './installation/update-repository.ts'
import { listeners } from './listeners.ts'
import { createMailer, defaultSender } from './mail/mailer.ts'
import { databaseProblem, migrationsProblem, type ReadinessCheck } from './platform/check-readiness.ts'
import { type Actor, actorIdOf } from './rules/actor.ts'
import type { Clock } from './rules/clock.ts'
import type { SendMail } from './rules/mail.ts'
import type { Person } from './rules/person.ts'
import { type AnsweredRequest, noTelemetry, type Telemetry } from './rules/telemetry.ts'
import { defaultTenancy, type TenancySettings } from './rules/tenancy.ts'
import type { Tracer } from './rules/tracer.ts'
import { setSecretKeys } from './secrets/kept-secrets.ts'
import { type SecretKeys, secretKeysFrom } from './secrets/secret-keys.ts'
import type { OidcSettings } from './session/oidc.ts'
import type { AcceptedVersions } from './uplink/enrol/require-version.ts'
import { edgeRoutes } from './uplink/routes/edge-routes.ts'
import { defaultUploadSettings, Uploads } from './upload/uploads.ts'
import type { TargetPolicy } from './webhook/target-guard.ts'

/** Long poll of an edge (25 s) and a subscription's silence between pings both fit. */
const keepAliveTimeoutMs = 65_000
/** From a request's first byte to its last; a table of devices comes over a slow line, too. */
const requestTimeoutMs = 60_000
const headersTimeoutMs = 10_000
/** How often sockets are looked at for that. */
const timeoutCheckMs = 5_000
/**
 * Procedures that a person calls: at once, such as twenty pages that are opened together, and in the long run. A page
 * that refreshes itself calls up to two a second.
 */
const personRate = { burstMax: 400, perSecond: 50 }
/** Procedures of one request. The dashboard sends no more. */
const batchSizeMax = 20
/** tRPC puts the names of batched procedures into the path. */
const pathParameterLengthMax = 5_000

export interface ServerOptions {
  db: Db
  notifications: Notifications
  clock: Clock
  webUrl: string
  /** Proxies whose `x-forwarded-for` is trusted, besides this machine. */
  trustedProxies?: string[]
  secret: string
  /** Seal secrets in the database; derived from `secret` where they are left out. */
  secretKeys?: SecretKeys
  /** Where devices' serial consoles are kept; null where nobody does. */
  consolesDirectory: string | null
  /** The slug of the organization whose consoles those are; all organizations' where a test leaves it out. */
  consolesOrganization?: string
  bootRetention: BootRetention
  /** How long a request may take to arrive; 60 s except in tests. */
  requestTimeoutMs?: number
  /** How often downloads are held against the least rate; 15 s except in tests. */
  downloadCheckMs?: number
  /** Tests alone give others. */
  personRates?: Rates
  /** Tests alone give others. */
  governor?: Governor
  /** Accepted versions of the uplink; those of UPLINK.md except in tests. */
  acceptedVersions?: AcceptedVersions
  /** The settings that "Add edge" uses. */
  installation: InstallationSettings
  /** Edges are not updated from here where it is left out. */
  updates?: UpdateSettings
  /** Nobody uploads where it is left out. */
  uploads?: Uploads
  /** Differences go only between edges of a site where it is left out. */
  objects?: Objects
  /** Public addresses alone without it. */
  webhookTargets?: TargetPolicy
  logLevel: string
  /** Standard output where it is left out. */
  log?: Writable
  /** The log where it is left out. */
  sendMail?: SendMail
  /** `defaultTenancy` where it is left out. */
  tenancy?: TenancySettings
  /** Tests alone give others. */
  checks?: Checks
  /** None where it is left out. */
  oidc?: OidcSettings | null
  /** Throws while jobs cannot run in this process; they run elsewhere where it is left out. */
  checkJobs?: () => Promise<void>
  /** Nobody counts where it is left out. */
  telemetry?: Telemetry
  /** Nobody collects traces where it is left out. */
  tracer?: Tracer | undefined
  /** Runs between the start of a shutdown, when `/readyz` reports it, and the shutdown itself. */
  drain?: () => Promise<void>
}

/** What all requests of the process share. */
function prepareProcess({ secretKeys, secret }: ServerOptions): void {
  procedurePolicies()
  setListeners(listeners)
  setSecretKeys(secretKeys ?? secretKeysFrom('', secret))
}

/** A table of 10,000 devices. */
const bodySizeMax = 6 * 1024 * 1024

/** The whole API, not listening yet. Throws when a procedure has no policy. */
export async function createServer(options: ServerOptions): Promise<FastifyInstance> {
  prepareProcess(options)
  const { db, clock, notifications, webUrl, checks = applicationChecks, telemetry = noTelemetry } = options
  const releases = new EdgeReleases(options.installation)
  const repository = new UpdateRepository(options.updates ?? { directory: null, timestampKey: null })
  const app = newApp(options)
  const sendMail =
    options.sendMail ?? createMailer({ smtpUrl: null, from: defaultSender, log: (line) => app.log.warn(line) })
  const tenancy = options.tenancy ?? defaultTenancy
  const oidc = options.oidc ?? null
  const { isSelfService } = tenancy
  const ofAuth = { db, webUrl, secret: options.secret, clock, sendMail, isSelfService, oidc }
  const { auth, providerAuth } = openAuth(ofAuth, app.log)
  setFallbacks(app)
  logRequests(app, { onAnswered: (answered) => countRequest(telemetry, answered), tracer: options.tracer })
  protectWebSurface(app, webUrl)
  renewCookies(app)
  const governor = options.governor ?? newGovernor((kind, waitedMs) => telemetry.turnStarted(kind, waitedMs))
  takeTurns(app, governor, () => telemetry.rateLimited('turns'))
  const drain = options.drain ?? (async () => undefined)
  await app.register(healthRoutes, { checks: readinessChecks(options), drain })
  await app.register(authRoutes, { auth, providerAuth, webUrl })
  const accepted = options.acceptedVersions ?? uplinkVersionsAccepted
  const uploads = options.uploads ?? new Uploads(defaultUploadSettings)
  const objects = options.objects ?? new Objects(defaultObjectSettings)
  const edges = { context: { db, clock }, notifications, accepted, telemetry, repository, uploads, objects }
  await app.register(edgeRoutes, { prefix: '/edge/v1', dashboardUrl: dashboardUrlOf(webUrl), ...edges })
  await app.register(installRoutes, { prefix: '/install', releases, checkMs: options.downloadCheckMs })
  const personRates = options.personRates ?? new Rates(personRate)
  const bootFeeds = openFeeds({ db, clock, notifications, checks })
  const contextOf = (request: FastifyRequest) =>
    createContext(request, {
      db,
      clock,
      checks,
      bootFeeds,
      personRates,
      governor,
      consolesDirectory: options.consolesDirectory,
      consolesOrganization: options.consolesOrganization ?? null,
      bootRetention: options.bootRetention,
      releases,
      repository,
      auth,
      sendMail,
      webUrl,
      telemetry,
      tracer: options.tracer,
      verifyCode: (given) => verifyCode(auth, given),
      uploads,
      objects,
      webhookTargets: options.webhookTargets ?? { allowedNetworks: [] },
      tenancy,
      oidcName: oidc?.name ?? null,
    })
  await app.register(openApiRoutes, { prefix: '/api' })
  await app.register(restRoutes, { prefix: '/api/v1', createContext: contextOf, secret: options.secret })
  await app.register(fastifyTRPCPlugin, { prefix: '/api/trpc', trpcOptions: trpcOptions(contextOf) })
  return app
}

/** Null: devices cannot print it. */
function dashboardUrlOf(webUrl: string): string | null {
  return printableUrl.safeParse(webUrl.replace(/\/+$/, '')).data ?? null
}

function openFeeds({
  checks,
  ...parts
}: PlatformContext & { notifications: Notifications; checks: Checks }): BootFeeds {
  const { clock } = parts
  const findActors: FindActors = (db, watchers) => currentActors(db, { clock, checks }, watchers)
  return new BootFeeds({ ...parts, findActors })
}

type ContextParts = Omit<
  TrpcContext,
  'address' | 'requestId' | 'findActor' | 'findPerson' | 'takeTurn' | 'holdRefusal' | 'idempotency'
> & { auth: Auth; governor: Governor }

function createContext(request: FastifyRequest, { auth, governor, ...parts }: ContextParts): TrpcContext {
  let actor: Promise<Actor | null> | undefined
  return {
    ...parts,
    address: request.ip,
    requestId: request.id,
    idempotency: null,
    findActor() {
      actor ??= findSignedIn(request, { ...parts, auth })
      return actor
    },
    findPerson: () => findPerson(request, { ...parts, auth }),
    takeTurn: () => governor.turns.take(governor.accounts.of(request), 'call'),
    holdRefusal: (left) => governor.refusals.hold(governor.accounts.of(request), left),
  }
}

async function findSignedIn(
  request: FastifyRequest,
  { auth, checks, telemetry, ...context }: Pick<ContextParts, 'db' | 'clock' | 'checks' | 'auth' | 'telemetry'>,
): Promise<Actor | null> {
  const secret = apiKeyOf(request)
  const actor =
    secret === null
      ? (await readSession(request, { ...context, auth }))?.actor
      : await findKey(request, { ...context, telemetry }, secret)
  if (!actor) return null
  const { kind, organizationId } = actor
  request.caller = { kind, id: actorIdOf(actor), organizationId }
  return checks.actorOf(actor)
}

async function findPerson(
  request: FastifyRequest,
  { auth, db, clock }: Pick<ContextParts, 'db' | 'clock' | 'auth'>,
): Promise<Person | null> {
  const session = await readSession(request, { db, clock, auth })
  if (!session) return null
  request.caller ??= { kind: 'person', id: session.person.userId, organizationId: null }
  return session.person
}

async function findKey(
  request: FastifyRequest,
  { telemetry, ...context }: PlatformContext & { telemetry: Telemetry },
  secret: string,
): Promise<Actor> {
  // Each request counts as one.
  if (isBatch(request))
    throw new AppError('invalid', { public: 'With an API key, send each procedure in a request of its own.' })
  const found = await findApiKeyActor(context, secret)
  if (!found)
    throw new AppError('unauthenticated', {
      public: 'This API key is unknown, has expired or was revoked, or its owner has left or is disabled.',
    })
  request.rateLimit = found.rateLimit
  if (found.rateLimit.isExceeded) {
    telemetry.rateLimited('api_key')
    throw new AppError('rate_limited')
  }
  return found.actor
}

function isBatch(request: FastifyRequest): boolean {
  return request.url.startsWith('/api/trpc/') && (request.url.split('?', 1)[0] ?? '').includes(',')
}

const signInRoute = '/api/auth/*'

/** A refusal of sign-in is known by its status alone: better-auth answers directly. */
function countRequest(telemetry: Telemetry, answered: AnsweredRequest): void {
  telemetry.requestAnswered(answered)
  if (answered.route === signInRoute && answered.status === errorTable.rate_limited.status)
    telemetry.rateLimited('sign_in')
}

function readinessChecks({ db, notifications, checkJobs }: ServerOptions): ReadinessCheck[] {
  const names = migrationNames()
  const lost = 'have lost their connection to the database, and are connecting again'
  return [
    { part: 'database', problemOf: () => databaseProblem({ db }) },
    { part: 'migrations', problemOf: () => migrationsProblem({ db }, names) },
    { part: 'notifications', problemOf: async () => (notifications.isListening() ? null : lost) },
    { part: 'jobs', problemOf: async () => (await checkJobs?.()) ?? null },
  ]
}

/** Answers unknown routes and Fastify's own refusals: never with more than the table's sentence. */
function setFallbacks(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) => sendProblem(new AppError('not_found'), request, reply))
  app.setErrorHandler(sendProblem)
}

/** Node takes the lesser of the two limits for headers, so both are set. */
function arrivalLimits(requestTimeout: number) {
  const headersTimeout = Math.min(headersTimeoutMs, requestTimeout)
  return {
    requestTimeout,
    http: { headersTimeout, connectionsCheckingInterval: Math.min(timeoutCheckMs, requestTimeout) },
  }
}

function newApp(options: ServerOptions): FastifyInstance {
  return Fastify({
    logger: {
      level: options.logLevel,
      hooks: { streamWrite: escapeForTerminals },
      ...(options.log ? { stream: options.log } : {}),
    },
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: makeRequestId,
    forceCloseConnections: true,
    trustProxy: ['loopback', ...(options.trustedProxies ?? [])],
    // Requests that arrive while it drains are served.
    return503OnClosing: false,
    keepAliveTimeout: keepAliveTimeoutMs,
    ...arrivalLimits(options.requestTimeoutMs ?? requestTimeoutMs),
    bodyLimit: bodySizeMax,
    frameworkErrors: sendProblem,
    clientErrorHandler: refuseBytes,
    routerOptions: { maxParamLength: pathParameterLengthMax },
  })
}

function trpcOptions(contextOf: (request: FastifyRequest) => TrpcContext) {
  return {
    router: appRouter,
    maxBatchSize: batchSizeMax,
    createContext: ({ req }) => contextOf(req),
    onError({ error, path, req }) {
      const { code, message } = toAppError(error.cause ?? error)
      if (error.code !== 'INTERNAL_SERVER_ERROR' && code === 'internal') return
      req.log[errorTable[code].log]({ code, path, detail: message }, 'procedure failed')
    },
  } satisfies FastifyTRPCPluginOptions<AppRouter>['trpcOptions']
}
