import { procedure, router } from '../http/trpc/trpc.ts'
import { getAuditEntry, listAudit } from './list-audit.ts'
import { auditEntryView, auditGetInput, auditListInput, auditPage } from './schema.ts'

export const auditRouter = router({
  list: procedure
    .meta({
      permission: 'audit.read',
      place: 'visible',
      rest: { method: 'GET', path: '/audit-entries', summary: 'Audit log' },
    })
    .input(auditListInput)
    .output(auditPage)
    .query(({ ctx, input }) => listAudit(ctx, input)),
  get: procedure
    .meta({
      permission: 'audit.read',
      place: 'visible',
      rest: { method: 'GET', path: '/audit-entries/{entryId}', summary: 'An entry of the audit log' },
    })
    .input(auditGetInput)
    .output(auditEntryView)
    .query(({ ctx, input }) => getAuditEntry(ctx, input.entryId)),
})
