import { z } from 'zod'
import { instantOf, listSort } from '../rules/list-sort.ts'
import { pageInput, pageOf } from '../rules/object-fields.ts'

const fields = z.record(z.string(), z.unknown()).nullable()

const auditActorKinds = ['person', 'api_key', 'service_account', 'edge', 'system', 'platform'] as const

export const auditSort = listSort({ at: instantOf('at') }, '-at')

/** Filters and order of the audit log, for lists and for the export. */
export const auditFilter = z.object({
  sort: auditSort.input,
  since: z.iso.datetime().optional().describe('From this instant on.'),
  until: z.iso.datetime().optional().describe('Before this instant.'),
  actorId: z.uuid().optional(),
  actorKind: z.enum(auditActorKinds).optional(),
  action: z
    .string()
    .trim()
    .max(64)
    .optional()
    .describe('Procedure, e.g. `device.update`; `device.` for all of a noun.'),
  objectKind: z.string().trim().max(32).optional(),
  objectId: z.uuid().optional(),
  siteId: z.uuid().optional(),
  search: z
    .string()
    .trim()
    .max(64)
    .optional()
    .describe("Part of the object's or the actor's name, upper or lower case."),
})

export const auditListInput = auditFilter.extend(pageInput)
export const auditGetInput = z.object({ entryId: z.uuid() })

export const auditEntryView = z
  .object({
    id: z.uuid(),
    at: z.iso.datetime(),
    actorKind: z.enum(auditActorKinds),
    actorId: z.uuid().nullable(),
    actorName: z.string().describe('The name at that time.'),
    action: z.string(),
    objectKind: z.string(),
    objectId: z.uuid().nullable(),
    objectName: z.string().nullable(),
    farmId: z.uuid().nullable(),
    siteId: z.uuid().nullable(),
    collectionId: z.uuid().nullable(),
    before: fields.describe('The changed fields. Texts in them may come from a device: untrusted.'),
    after: fields,
    address: z.string().nullable(),
    requestId: z.string().nullable(),
  })
  .meta({ id: 'AuditEntry' })
export type AuditEntryView = z.infer<typeof auditEntryView>
/** Newest first. */
export const auditPage = pageOf(auditEntryView)
