import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Writable } from 'node:stream'
import { createDb, type Db, type OnQuery, openDb } from '@bootfarm/db'
import { createTestDatabase, type TestDatabase } from '@bootfarm/db/testing'
import type { FastifyInstance } from 'fastify'
import { defaultBootRetention } from '../src/boot/boot-retention.ts'
import { type Notifications, openNotifications } from '../src/context/notifications.ts'
import { DirectoryStore } from '../src/difference/object-store.ts'
import { Objects } from '../src/difference/objects.ts'
import { Rates } from '../src/http/turns/rates.ts'
import { Refusals } from '../src/http/turns/refusals.ts'
import { newGovernor } from '../src/http/turns/take-turns.ts'
import type { InstallationSettings } from '../src/installation/edge-releases.ts'
import type { Mail } from '../src/rules/mail.ts'
import { secretKeysFrom } from '../src/secrets/secret-keys.ts'
import { createServer, type ServerOptions } from '../src/server.ts'
import type { AcceptedVersions } from '../src/uplink/enrol/require-version.ts'
import { Uploads } from '../src/upload/uploads.ts'
import { makeTestReleases } from './matrix/test-releases.ts'
import { testOrigin, testSecret, testSecretsKey } from './test-constants.ts'
import type { RunningApi } from './test-tenant.ts'

/** Receivers of tests listen on this machine. */
export const testWebhookTargets = { allowedNetworks: ['127.0.0.0/8'] }

/** The API on a separate port, over a separate database, with a clock that stands until a test moves it. */
export interface TestApi extends RunningApi {
  app: FastifyInstance
  /** The server's own connection, with the rights that the API has. */
  serverDb: Db
  databaseUrl: string
  /** The address with which the server signs in to the database. */
  serverDatabaseUrl: string
  /** Empty until a test keeps a console in it. */
  consolesDirectory: string
  /** Of the bytes of uploads. */
  uploadsDirectory: string
  uploads: Uploads
  objects: Objects
  /** The sent mails, oldest first. */
  mails: Mail[]
  /** Resolves when somebody listens for the next time: an edge's long poll, a subscription. */
  nextListener(): Promise<void>
  close(): Promise<void>
}

const fixed = {
  secret: testSecret,
  secretKeys: secretKeysFrom(testSecretsKey, testSecret),
  webUrl: testOrigin,
  webhookTargets: testWebhookTargets,
  bootRetention: defaultBootRetention,
}

/** Small ones, on any disk. */
export const testUploadSettings = { sizeBytesMax: 8 << 20, organizationBytesMax: 24 << 20, freeBytesMin: 0 }

/** Tests of the matrix ask faster than a person may. */
const unlimited = new Rates({ burstMax: Number.POSITIVE_INFINITY, perSecond: 1 })

function unhurried() {
  return { personRates: unlimited, governor: { ...newGovernor(), refusals: new Refusals({ rates: unlimited }) } }
}

interface TestApiOptions {
  /**
   * `off`: the server signs in as the owner, whom row-level security does not bind; its own checks have to hold alone.
   */
  rowSecurity?: 'on' | 'off'
  /** Gets all that the server can log. */
  log?: Writable
  installation?: Partial<InstallationSettings>
  /** One more API process in all but the process: it shares this one's database and clock, and nothing else. */
  beside?: TestApi
  /** Replaces a new one; the caller drops it. */
  database?: TestDatabase
  acceptedVersions?: AcceptedVersions
  /** Changes the options with which the server is started. */
  change?: (options: ServerOptions) => ServerOptions
  people?: Pick<ServerOptions, 'tenancy' | 'oidc'>
  /** Hears of the server's statements. */
  onQuery?: OnQuery
}

export async function startTestApi({
  rowSecurity = 'on',
  log,
  installation,
  beside,
  database: given,
  acceptedVersions,
  change = (options) => options,
  people = {},
  onQuery,
}: TestApiOptions = {}): Promise<TestApi> {
  const database = beside ? databaseOf(beside) : (given ?? (await createTestDatabase()))
  const db = createDb(database.url)
  const serverUrl = rowSecurity === 'on' ? database.apiUrl : database.url
  const serverDb = openDb(serverUrl, onQuery).db
  const clock = beside?.clock ?? newClock()
  const notifications = await openNotifications(serverUrl)
  const listening = observe(notifications)
  const consolesDirectory = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-consoles-'))
  const ofUploads = openUploads(beside)
  const releasesDirectory = makeTestReleases()
  const mails: Mail[] = []
  const app = await createServer(
    change({
      ...people,
      ...unhurried(),
      sendMail: async (mail) => mails.push(mail) > 0,
      db: serverDb,
      notifications: listening.observed,
      clock: clock.read,
      ...fixed,
      consolesDirectory,
      ...ofUploads,
      updates: { directory: releasesDirectory, timestampKey: null },
      installation: { directory: null, publicKey: null, url: testOrigin, ...installation },
      ...(acceptedVersions ? { acceptedVersions } : {}),
      ...(log ? { log, logLevel: 'trace' } : { logLevel: 'silent' }),
    }),
  )
  return {
    app,
    db,
    serverDb,
    databaseUrl: database.url,
    serverDatabaseUrl: serverUrl,
    consolesDirectory,
    ...ofUploads,
    mails,
    url: await app.listen({ host: '127.0.0.1', port: 0 }),
    clock,
    nextListener: listening.nextListener,
    async close() {
      await app.close()
      await notifications.close()
      for (const one of [serverDb, db]) await one.$disconnect()
      if (!given) await database.drop()
      removeAll(consolesDirectory, releasesDirectory, ...(beside ? [] : [ofUploads.uploadsDirectory]))
    },
  }
}

function openUploads(beside: TestApi | undefined) {
  const uploadsDirectory = beside?.uploadsDirectory ?? mkdtempSync(path.join(os.tmpdir(), 'bootfarm-uploads-'))
  const store = new DirectoryStore(path.join(uploadsDirectory, 'objects'))
  return {
    uploadsDirectory,
    uploads: new Uploads({ ...testUploadSettings, directory: uploadsDirectory }),
    objects: new Objects({ store, organizationBytesMax: testUploadSettings.organizationBytesMax }),
  }
}

function removeAll(...directories: string[]): void {
  for (const directory of directories) rmSync(directory, { recursive: true })
}

/** It is dropped by the first one. */
function databaseOf({ databaseUrl, serverDatabaseUrl }: TestApi) {
  return { url: databaseUrl, apiUrl: serverDatabaseUrl, drop: async () => undefined }
}

function newClock(): TestApi['clock'] {
  const clock: TestApi['clock'] = {
    now: new Date('2026-11-20T12:00:00Z'),
    advance(ms) {
      clock.now = new Date(clock.now.getTime() + ms)
    },
    read: () => clock.now,
  }
  return clock
}

function observe(notifications: Notifications) {
  let announce = () => {}
  const observed: Notifications = {
    subscribe(payload, wake) {
      announce()
      return notifications.subscribe(payload, wake)
    },
    isListening: () => notifications.isListening(),
    announce: (payloads) => notifications.announce(payloads),
    close: () => notifications.close(),
  }
  const nextListener = () =>
    new Promise<void>((resolve) => {
      announce = resolve
    })
  return { observed, nextListener }
}
