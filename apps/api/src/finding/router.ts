import { procedure, router } from '../http/trpc/trpc.ts'
import { acknowledgeFinding, linkFinding, muteFinding, unmuteFinding } from './change-finding.ts'
import { getFinding, listFindings } from './list-findings.ts'
import {
  findingChangeInput,
  findingDetail,
  findingInput,
  findingListInput,
  findingPage,
  linkFindingInput,
} from './schema.ts'

const place = { kind: 'finding', id: 'findingId' } as const

export const findingRouter = router({
  list: procedure
    .meta({
      permission: 'finding.read',
      place: 'visible',
      rest: { method: 'GET', path: '/findings', summary: 'Changes that made boots slower or fail more often' },
    })
    .input(findingListInput)
    .output(findingPage)
    .query(({ ctx, input }) => listFindings(ctx, input)),
  get: procedure
    .meta({
      permission: 'finding.read',
      place,
      rest: { method: 'GET', path: '/findings/{findingId}', summary: 'A finding with its evidence' },
    })
    .input(findingInput)
    .output(findingDetail)
    .query(({ ctx, input }) => getFinding(ctx, input.findingId)),
  acknowledge: procedure
    .meta({
      permission: 'finding.change',
      place,
      rest: { method: 'POST', path: '/findings/{findingId}/acknowledge', summary: 'Acknowledge a finding' },
    })
    .input(findingChangeInput)
    .output(findingDetail)
    .mutation(({ ctx, input }) => acknowledgeFinding(ctx, input)),
  mute: procedure
    .meta({
      permission: 'finding.change',
      place,
      rest: { method: 'POST', path: '/findings/{findingId}/mute', summary: 'Mute a finding' },
    })
    .input(findingChangeInput)
    .output(findingDetail)
    .mutation(({ ctx, input }) => muteFinding(ctx, input)),
  unmute: procedure
    .meta({
      permission: 'finding.change',
      place,
      rest: { method: 'POST', path: '/findings/{findingId}/unmute', summary: 'Unmute a finding' },
    })
    .input(findingChangeInput)
    .output(findingDetail)
    .mutation(({ ctx, input }) => unmuteFinding(ctx, input)),
  link: procedure
    .meta({
      permission: 'finding.change',
      place,
      rest: {
        method: 'POST',
        path: '/findings/{findingId}/link',
        summary: 'Name the change that explains a finding',
      },
    })
    .input(linkFindingInput)
    .output(findingDetail)
    .mutation(({ ctx, input }) => linkFinding(ctx, input)),
})
