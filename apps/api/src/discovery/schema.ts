import { z } from 'zod'
import { instantOf, listSort } from '../rules/list-sort.ts'
import { namePattern } from '../rules/name-pattern.ts'
import { pageInput, pageOf } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { adoptionRule, adoptionRulesMax } from './adoption-rule.ts'

/** A device's own text: untrusted. */
const deviceText = z.string().nullable()

/** Per site, without ignored ones: beyond it the one last seen the longest ago is dropped. */
export const discoveredWaitingMax = 1000
/** How many may be adopted or ignored at once. */
const discoveredAtOnceMax = 100

export const discoveredSort = listSort({ firstSeenAt: instantOf('firstSeenAt') }, '-firstSeenAt')
export const discoveredListInput = z.object({
  ...pageInput,
  sort: discoveredSort.input,
  siteId: uuid.optional(),
  search: z
    .string()
    .trim()
    .max(64)
    .optional()
    .describe("Part of the MAC address or of the device's own texts, in any case."),
  state: z.enum(['waiting', 'ignored']).default('waiting').describe('`waiting`: for a decision.'),
})
export const discoveredDevice = z
  .object({
    id: uuid,
    siteId: uuid,
    siteName: z.string(),
    edgeId: uuid.describe('The edge that reported it last.'),
    edgeName: z.string(),
    mac: z.string(),
    machineId: z.string().nullable(),
    vendorClass: deviceText,
    userClass: deviceText,
    hostName: deviceText,
    clientArch: count.nullable(),
    ip: z.string().nullable(),
    relay: z.string().nullable(),
    asked: z.enum(['dhcp', 'tftp', 'http']),
    firstSeenAt: instant,
    lastSeenAt: instant,
    requests: count,
    ignoredAt: instant.nullable(),
    suggestedName: z.string().describe('A name for it that no device of its site has.'),
  })
  .meta({ id: 'DiscoveredDevice' })
export type DiscoveredDeviceView = z.infer<typeof discoveredDevice>
/** Newest first, by when they were first seen: a device that keeps asking keeps its place. */
export const discoveredGetInput = z.object({ discoveredId: uuid })
export const discoveredPage = pageOf(discoveredDevice)

/** Over all sites; more than the limit is not counted. */
export const waitingCountMax = 1000
export const waitingCountResult = z.object({ count: count.max(waitingCountMax) }).meta({ id: 'WaitingCount' })

const discoveredIds = z.array(uuid).min(1).max(discoveredAtOnceMax)

export const adoptInput = z.object({ siteId: uuid, discoveredIds, namePattern, collectionId: uuid })
export const adoptResult = z
  .object({
    adopted: z.array(z.object({ deviceId: uuid, name: z.string(), mac: z.string() })),
    missingCount: count.describe('No longer waiting: adopted by somebody else, or not seen for too long.'),
  })
  .meta({ id: 'AdoptedDevices' })

export const ignoreInput = z.object({ siteId: uuid, discoveredIds, ignored: z.boolean() })
export const ignoreResult = z.object({ changedCount: count }).meta({ id: 'IgnoredDevices' })

export const rulesInput = z.object({ siteId: uuid })
export const rulesView = z
  .object({
    rules: z.array(adoptionRule),
    revision: z.string().describe('The revision shown, to be sent with a change.'),
  })
  .meta({ id: 'AdoptionRules' })
export type RulesView = z.infer<typeof rulesView>
export const setRulesInput = z.object({
  siteId: uuid,
  rules: z.array(adoptionRule).max(adoptionRulesMax, `A site can have at most ${adoptionRulesMax} rules.`),
  revision: z.string().max(64),
})

/** The actions of the rules on the devices that wait now. */
export const rulesPreview = z
  .object({
    devices: z
      .array(
        z.object({
          id: uuid,
          mac: z.string(),
          vendorClass: deviceText,
          outcome: z.enum(['adopt', 'ignore', 'full', 'none']),
          ruleNumber: count.nullable().describe('From 1; null if none matches.'),
          name: z.string().nullable().describe('Name of an adopted device.'),
        }),
      )
      .max(discoveredWaitingMax),
  })
  .meta({ id: 'AdoptionRulesPreview' })
export const rulesApplied = z.object({ adoptedCount: count, ignoredCount: count }).meta({ id: 'AdoptionRulesResult' })
