import { randomUUID } from 'node:crypto'
import type { Sample, SampleTenant } from './sample.ts'

const spareUserId = (tenant: SampleTenant) => tenant.spareUserIds.pop() ?? ''
const spareInvitationId = (tenant: SampleTenant) => tenant.spareInvitationIds.pop() ?? ''
const spareServiceId = (tenant: SampleTenant) => tenant.spareServiceIds.pop() ?? ''
const unknownToken = { token: 'bfi_unknown' }
const somebody = { name: 'Somebody', email: 'somebody@example.test', password: 'correct horse battery' }

/** Samples of procedures for people: sessions, invitations, members. */
export const peopleSamples: Record<string, Sample> = {
  'session.organizations': {},
  'session.account': {},
  'session.signIn': {},
  'session.own': {},
  'session.end': { input: () => ({ sessionId: randomUUID() }) },
  'session.endOthers': {},
  'session.chooseOrganization': {
    input: ({ organizationId }) => ({ organizationId }),
  },
  'setup.get': { input: unknownToken },
  'setup.complete': { input: { ...unknownToken, organizationName: 'Acme', ...somebody } },
  'invitation.offer': { input: unknownToken },
  'invitation.accept': { input: unknownToken },
  'invitation.list': {},
  'invitation.get': { idName: 'invitationId', ownId: (tenant) => tenant.spareInvitationIds[0] ?? '' },
  'invitation.create': {
    input: () => ({ email: `${randomUUID()}@example.test`, role: 'viewer', scope: {} }),
  },
  'invitation.resend': { idName: 'invitationId', ownId: spareInvitationId },
  'invitation.revoke': { idName: 'invitationId', ownId: spareInvitationId },
  'serviceAccount.list': {},
  'serviceAccount.get': { idName: 'serviceAccountId', ownId: (tenant) => tenant.spareServiceIds[0] ?? '' },
  'serviceAccount.create': { input: () => ({ name: randomUUID(), role: 'viewer', scope: {} }) },
  'serviceAccount.update': {
    idName: 'serviceAccountId',
    input: { revision: 2, name: 'Renamed' },
    ownId: spareServiceId,
  },
  'serviceAccount.remove': { idName: 'serviceAccountId', ownId: spareServiceId },
  'member.list': {},
  'member.get': { idName: 'userId', ownId: (tenant) => tenant.spareUserIds[0] ?? '' },
  'member.roleTable': {},
  'member.explain': {
    idName: 'siteId',
    input: ({ spareUserIds }) => ({ userId: spareUserIds[0] }),
    ownId: ({ siteId }) => siteId,
  },
  'member.grantable': {},
  'member.grant': { idName: 'userId', input: { role: 'auditor', scope: {} }, ownId: spareUserId },
  'member.take': { idName: 'userId', input: (_tenant, id) => ({ grantId: id }), ownId: spareUserId },
  'member.remove': { idName: 'userId', ownId: spareUserId },
  'member.leave': { isLast: true },
}
