import type { Checks } from '../../access/checks.ts'
import type { BootFeeds } from '../../boot/boot-feed.ts'
import type { BootRetention } from '../../boot/boot-retention.ts'
import type { PlatformContext } from '../../context/service-context.ts'
import type { Objects } from '../../difference/objects.ts'
import type { SealingKey } from '../../idempotency/do-once.ts'
import type { EdgeReleases } from '../../installation/edge-releases.ts'
import type { UpdateRepository } from '../../installation/update-repository.ts'
import type { Actor } from '../../rules/actor.ts'
import type { SendMail } from '../../rules/mail.ts'
import type { Person } from '../../rules/person.ts'
import type { Telemetry } from '../../rules/telemetry.ts'
import type { TenancySettings } from '../../rules/tenancy.ts'
import type { Tracer } from '../../rules/tracer.ts'
import type { Uploads } from '../../upload/uploads.ts'
import type { TargetPolicy } from '../../webhook/target-guard.ts'
import type { GivenCode } from '../auth/verify-code.ts'
import type { Rates } from '../turns/rates.ts'

/** The context that each request gives to its procedures. */
export interface TrpcContext extends PlatformContext {
  bootFeeds: BootFeeds
  /** Procedures that a person calls. */
  personRates: Rates
  /** Resolves when the caller's account has a turn for one call, to the function that ends it. */
  takeTurn(): Promise<() => void>
  /** Waits before a refusal that the caller has collected too often. `left` ends the wait. */
  holdRefusal(left: AbortSignal): Promise<unknown>
  checks: Checks
  /** The directory of devices' serial consoles; null if none are kept. */
  consolesDirectory: string | null
  /** The slug of the organization whose machines those are; null in tests: any. */
  consolesOrganization: string | null
  bootRetention: BootRetention
  sendMail: SendMail
  /** The URL at which people open the dashboard; links in mails start with it. */
  webUrl: string
  /** Name of the OpenID Connect provider; null if none is set. */
  oidcName: string | null
  tenancy: TenancySettings
  /** The caller's address, for the audit log. */
  address: string | null
  requestId: string | null
  /** Programs for site servers. */
  releases: EdgeReleases
  repository: UpdateRepository
  /**
   * Reads the session cookie; null if nobody is signed in. One look-up per request, however many procedures it calls.
   */
  findActor(): Promise<Actor | null>
  /** The key of a request that must be executed at most once; null for others. */
  idempotency: SealingKey | null
  /** Like `findActor`, for requests outside of any organization. */
  findPerson(): Promise<Person | null>
  /** Verifies a code of an account's authenticator. */
  verifyCode(given: GivenCode): Promise<boolean>
  webhookTargets: TargetPolicy
  uploads: Uploads
  objects: Objects
  telemetry: Telemetry
  /** Without it no traces are collected. */
  tracer: Tracer | undefined
}
