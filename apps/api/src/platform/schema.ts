import { z } from 'zod'
import { pageInput, pageOf } from '../rules/object-fields.ts'
import { quotaCountMax, quotaName, quotaView } from '../rules/quotas.ts'

// The view of operators: figures, instants, and the organizations' own names. None of a tenant's content, and nobody's
// name.

export const platformOrganizationView = z.object({
  id: z.uuid(),
  name: z.string(),
  slug: z.string(),
  createdAt: z.iso.datetime(),
  suspendedAt: z.iso.datetime().nullable(),
  deleteAfter: z.iso.datetime().nullable(),
  isSelfService: z.boolean().describe('Created by a person who signed up.'),
  edgesOnline: z.number().int(),
  lastReportAt: z.iso.datetime().nullable().describe('The newest heartbeat of its edges.'),
  edgeVersions: z
    .record(z.string(), z.number().int())
    .describe('Number of edges by version; texts that are no version count as `other`.'),
  quotas: z.array(quotaView),
})

export const platformListInput = z.object({ ...pageInput, search: z.string().max(80).optional() })
export const platformPage = pageOf(platformOrganizationView)

export const platformHealthView = z.object({
  organizations: z.number().int(),
  suspended: z.number().int(),
  beingDeleted: z.number().int(),
  people: z.number().int(),
  edges: z.number().int(),
  edgesOnline: z.number().int(),
  databaseSizeBytes: z.number().int(),
  jobs: z.array(
    z.object({
      name: z.string(),
      lastSucceededAt: z.iso.datetime().nullable(),
      lastFailedAt: z.iso.datetime().nullable(),
      failureCount: z.number().int().describe('Runs that failed since the last one that did not.'),
      lastFailureCode: z.string().nullable().describe('Kind of the last error; its text is in the log.'),
      failedOrganizationCount: z.number().int(),
    }),
  ),
})

const platformOrganizationInput = z.object({ organizationId: z.uuid() })
export const setQuotasInput = platformOrganizationInput.extend({
  quotas: z
    .partialRecord(quotaName, z.number().int().min(0).max(quotaCountMax).nullable())
    .describe('Absent fields stay unchanged; null removes the limit.'),
})
export const setSuspendedInput = platformOrganizationInput.extend({ suspended: z.boolean() })

const platformEventView = z.object({
  id: z.uuid(),
  at: z.iso.datetime(),
  actorUserId: z.uuid().nullable(),
  action: z.string(),
  organizationId: z.uuid().nullable(),
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
})
export const platformEventsInput = z.object({ ...pageInput })
export const platformEventPage = pageOf(platformEventView)
