import { defaultConnectionsMax } from '@bootfarm/db'
import { z } from 'zod'
import { defaultBootRetention } from './boot/boot-retention.ts'
import { parseQuotas, type QuotaDefaults, selfServiceQuotas } from './rules/quotas.ts'

const secretLengthMin = 32

const variables = z.object({
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, 'must begin with postgresql://'),
  /** Connections of each API process, beside two for jobs and one for notifications. */
  DATABASE_CONNECTIONS: z.coerce.number().int().min(3).max(200).default(defaultConnectionsMax),
  API_HOST: z.string().min(1).default('127.0.0.1'),
  /** Proxies whose report of the caller's address is trusted, besides this machine: docs/guides/operations.md. */
  TRUSTED_PROXIES: z
    .string()
    .default('')
    .transform((text) => text.split(/[\s,]+/).filter(Boolean))
    .pipe(
      z.array(
        z.union(
          [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()],
          'must be addresses or networks such as 10.20.0.5, 10.30.0.0/16',
        ),
      ),
    ),
  API_PORT: z.coerce.number().int().min(0).max(65535).default(4000),
  /** How long `/readyz` reports the shutdown before it happens: longer than a balancer's interval. */
  API_DRAIN_SECONDS: z.coerce.number().int().min(0).max(300).default(0),
  /** The URL at which people open the dashboard: origin of sign-in and of its cookies. */
  WEB_URL: z.url().default('http://localhost:3000'),
  /** The URL at which sites' servers reach this control plane; empty: the same as for people. */
  EDGE_URL: z.union([z.literal(''), z.url()]).default(''),
  /** Directory with signed programs for edges, and the public key of their signatures: docs/guides/operations.md. */
  BOOTFARM_EDGE_BINARIES: z.string().default(''),
  BOOTFARM_RELEASE_KEY: z.string().default(''),
  /** Directory with the metadata of releases and their programs, and the key (PEM) that keeps its timestamp fresh. */
  BOOTFARM_EDGE_UPDATES: z.string().default(''),
  BOOTFARM_TIMESTAMP_KEY: z.string().default(''),
  /** Keys that seal secrets in the database: docs/guides/operations.md. One of the three, or none. */
  SECRETS_KEY: z.string().default(''),
  SECRETS_KEY_FILE: z.string().default(''),
  SECRETS_KEY_COMMAND: z.string().default(''),
  BETTER_AUTH_SECRET: z.string().min(secretLengthMin, `must have at least ${secretLengthMin} characters`),
  /** Directory with devices' serial consoles: docs/guides/operations.md. Empty counts as not set. */
  BOOTFARM_CONSOLES: z.string().default(''),
  /** The organization (its slug) whose machines those are: nobody else sees a console. */
  BOOTFARM_CONSOLES_ORGANIZATION: z.string().default(''),
  /**
   * How long boots are kept, in days since their first report: docs/guides/operations.md. A summary is kept at least as
   * long as its detail.
   */
  BOOTFARM_BOOT_SUMMARY_DAYS: z.coerce.number().int().min(1).max(3_650).default(defaultBootRetention.summaryDays),
  BOOTFARM_BOOT_DETAIL_DAYS: z.coerce.number().int().min(1).max(3_650).default(defaultBootRetention.detailDays),
  /** smtp://, or smtps:// with TLS from the first byte; mails go to the log where it is empty. */
  SMTP_URL: z
    .string()
    .regex(/^(smtps?:\/\/.*)?$/, 'must begin with smtp:// or smtps://')
    .default(''),
  MAIL_FROM: z.string().default('Bootfarm <bootfarm@localhost>'),
  /** OpenID Connect: all three, or none. */
  OIDC_ISSUER: z.union([z.literal(''), z.url()]).default(''),
  OIDC_CLIENT_ID: z.string().default(''),
  OIDC_CLIENT_SECRET: z.string().default(''),
  OIDC_NAME: z.string().default('single sign-on'),
  /** Memberships by domain: `example.org=acme:viewer, …`. */
  OIDC_MEMBERS: z.string().default(''),
  /** Allows people to sign up and create organizations: docs/guides/organizations.md. */
  SELF_SERVICE: z.enum(['on', 'off']).default('off'),
  /** Quotas of such an organization, `sites=2,devices=100`; no limit for others. */
  SELF_SERVICE_QUOTAS: z.string().default(selfServiceQuotas).transform(quotasOf),
  /** The number that one person may create. */
  SELF_SERVICE_ORGANIZATIONS: z.coerce.number().int().min(1).max(100).default(3),
  /** Time between the request to delete an organization and its deletion. */
  ORGANIZATION_GRACE_DAYS: z.coerce.number().int().min(1).max(365).default(14),
  /** The operator of the installation, as pages show it: an e-mail address, a telephone number, a link. */
  PLATFORM_CONTACT: z.string().max(200).default(''),
  /** Private networks that webhooks may lead into, by plain HTTP and any port, too: CIDR, with commas between. */
  WEBHOOK_ALLOW_NETWORKS: z
    .string()
    .default('')
    .transform((text) => text.split(/[\s,]+/).filter(Boolean))
    .pipe(z.array(z.union([z.cidrv4(), z.cidrv6()], 'must be networks such as 10.20.0.0/16'))),
  /** Directory of images that people upload: docs/guides/operations.md. Nobody can upload where it is empty. */
  BOOTFARM_UPLOADS: z.string().default(''),
  /** The largest upload, all uploads of an organization, and the space that uploads leave free, in GiB. */
  UPLOAD_GIB_MAX: z.coerce.number().positive().max(65_536).default(128),
  UPLOADS_ORGANIZATION_GIB_MAX: z.coerce.number().positive().max(1_048_576).default(512),
  UPLOADS_FREE_GIB: z.coerce.number().min(0).max(65_536).default(5),
  /** Directory of differences (docs/guides/operations.md). Without it they go between the edges of a site alone. */
  BOOTFARM_OBJECTS: z.string().default(''),
  /** Or a bucket of an S3 store; without an endpoint that of AWS. */
  OBJECTS_S3_ENDPOINT: z.union([z.literal(''), z.url({ protocol: /^https?$/ })]).default(''),
  OBJECTS_S3_REGION: z.string().min(1).default('us-east-1'),
  OBJECTS_S3_BUCKET: z
    .string()
    .regex(/^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$/, 'must be the name of a bucket: lower-case letters, digits, - and .')
    .default(''),
  OBJECTS_S3_PREFIX: z
    .string()
    .max(200)
    .regex(/^([A-Za-z0-9._-][A-Za-z0-9._/-]*)?$/, 'must be a path in the bucket, without a slash at its beginning')
    .default(''),
  OBJECTS_S3_PATH_STYLE: z.enum(['', 'on', 'off']).default(''),
  /** Without keys, those that the AWS SDK finds. */
  OBJECTS_S3_ACCESS_KEY_ID: z.string().default(''),
  OBJECTS_S3_SECRET_ACCESS_KEY: z.string().default(''),
  OBJECTS_S3_SECRET_ACCESS_KEY_FILE: z.string().default(''),
  /** All differences of an organization, in GiB. */
  OBJECTS_ORGANIZATION_GIB_MAX: z.coerce.number().positive().max(1_048_576).default(512),
  /** Where `/metrics` is: docs/reference/observability.md. Nowhere without a port. */
  METRICS_HOST: z.string().min(1).default('127.0.0.1'),
  METRICS_PORT: z.union([z.literal('').transform(() => null), z.coerce.number().int().min(1).max(65535)]).default(null),
  /** The token that a scraper sends as `Authorization: Bearer`; none if it is empty. */
  METRICS_TOKEN: z.union([z.literal(''), z.string().min(16, 'must have at least 16 characters')]).default(''),
  /** URL of an OpenTelemetry collector that accepts OTLP over HTTP; no traces if it is empty. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.union([z.literal(''), z.url({ protocol: /^https?$/ })]).default(''),
  OTEL_SERVICE_NAME: z.string().min(1).default('bootfarm-api'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
})
/** Consoles are found by MAC address, which anybody can register in an organization of his own. */
const environment = variables.refine((one) => !one.BOOTFARM_CONSOLES || one.BOOTFARM_CONSOLES_ORGANIZATION, {
  path: ['BOOTFARM_CONSOLES'],
  message: 'needs BOOTFARM_CONSOLES_ORGANIZATION: set it to the slug of the organization whose machines these are',
})
export type Environment = z.infer<typeof environment>

function quotasOf(text: string, ctx: z.RefinementCtx): QuotaDefaults {
  try {
    return parseQuotas(text)
  } catch (error) {
    ctx.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) })
    return z.NEVER
  }
}

/** Throws one sentence that names each variable that is missing or wrong. */
export function readEnvironment(given: Record<string, string | undefined> = process.env): Environment {
  const parsed = environment.safeParse(given)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => {
    const name = issue.path.join('.')
    return given[name] === undefined ? `${name} is not set` : `${name} ${issue.message}`
  })
  throw new Error(`The environment is incomplete: ${problems.join('; ')}.`)
}
