import { procedure, router } from '../http/trpc/trpc.ts'
import { doneView } from '../rules/changed-object.ts'
import { grantRole, leaveOrganization, removeMember, takeRole } from './change-grants.ts'
import { explainMember } from './explain-member.ts'
import { listGrantable } from './list-grantable.ts'
import { getMember, listMembers } from './list-members.ts'
import {
  emptyInput,
  explainableIds,
  explainablePlaces,
  explainedView,
  explainInput,
  grantableView,
  grantInput,
  memberInput,
  memberListInput,
  memberPage,
  memberView,
  roleTable,
  roleTableView,
  takeInput,
} from './schema.ts'

export const memberRouter = router({
  list: procedure
    .meta({
      permission: 'member.read',
      place: 'visible',
      rest: { method: 'GET', path: '/members', summary: 'Members and their roles' },
    })
    .input(memberListInput)
    .output(memberPage)
    .query(({ ctx, input }) => listMembers(ctx, input)),
  get: procedure
    .meta({
      permission: 'member.read',
      place: 'visible',
      rest: { method: 'GET', path: '/members/{userId}', summary: 'A member' },
    })
    .input(memberInput)
    .output(memberView)
    .query(({ ctx, input }) => getMember(ctx, input)),
  roleTable: procedure
    .meta({
      permission: 'organization.read',
      place: 'visible',
      rest: { method: 'GET', path: '/permissions', summary: 'Permissions, and which roles have them' },
    })
    .input(emptyInput)
    .output(roleTableView)
    .query(() => roleTable()),
  explain: procedure
    .meta({
      permission: 'member.read',
      place: explainableIds.map((id) => ({ kind: explainablePlaces[id], id, optional: true })),
      rest: {
        method: 'GET',
        path: '/members/{userId}/permissions',
        summary: 'Permissions of a member, and the roles that grant them',
        description: 'For the whole organization or one object. Uses the same checks as the member’s own requests.',
      },
    })
    .input(explainInput)
    .output(explainedView)
    .query(({ ctx, input }) => explainMember(ctx, input)),
  grantable: procedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      rest: { method: 'GET', path: '/grantable-roles', summary: 'Roles that the caller can grant, by scope' },
    })
    .input(emptyInput)
    .output(grantableView)
    .query(({ ctx }) => listGrantable(ctx)),
  grant: procedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      confirmed: { roles: ['owner'] },
      rest: {
        method: 'POST',
        path: '/members/{userId}/grants',
        summary: 'Grant a member a role',
        creates: null,
      },
    })
    .input(grantInput)
    .output(memberView)
    .mutation(({ ctx, input }) => grantRole(ctx, input)),
  take: procedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      rest: {
        method: 'DELETE',
        path: '/members/{userId}/grants/{grantId}',
        summary: 'Remove a role from a member',
      },
    })
    .input(takeInput)
    .output(memberView)
    .mutation(({ ctx, input }) => takeRole(ctx, input)),
  remove: procedure
    .meta({
      permission: 'member.change',
      place: 'visible',
      rest: { method: 'DELETE', path: '/members/{userId}', summary: 'Remove a member', silent: true },
    })
    .input(memberInput)
    .output(doneView)
    .mutation(({ ctx, input }) => removeMember(ctx, input)),
  leave: procedure
    .meta({
      permission: 'organization.read',
      place: 'visible',
      rest: { excluded: 'a person leaves, an API key does not' },
    })
    .input(emptyInput)
    .output(doneView)
    .mutation(({ ctx }) => leaveOrganization(ctx)),
})
