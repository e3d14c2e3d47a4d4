import { bootOutcomes, bootPhases } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'
import { instantOf, listSort } from '../rules/list-sort.ts'
import { pageInput, pageOf, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { factors } from './detect/class-watch.ts'

export const findingKinds = ['slower', 'failing'] as const
const findingStates = ['open', 'acknowledged', 'muted', 'closed'] as const
export type FindingState = (typeof findingStates)[number]

export const findingSort = listSort({ openedAt: instantOf('openedAt') }, '-openedAt')
export const findingListInput = z.object({
  ...pageInput,
  sort: findingSort.input,
  state: z
    .enum([...findingStates, 'current'])
    .optional()
    .describe('`current`: open and acknowledged ones.'),
  siteId: uuid.optional(),
  vdiskId: uuid.optional(),
  versionId: uuid.optional().describe('Only findings about this version.'),
})
export const findingInput = z.object({ findingId: uuid })
export const findingChangeInput = findingInput.extend({ revision: seenRevision })
export const linkFindingInput = findingChangeInput.extend({
  auditEntryId: uuid.nullable().describe('The change that explains it; null: none does.'),
})

/** Boots on one side of the change, and their outcome. */
const evidenceBoot = z.object({
  bootId: uuid,
  startedAt: instant,
  totalUs: count.describe('From the first packet until ready, or until it failed.'),
  outcome: z.enum(bootOutcomes),
})
export type EvidenceBoot = z.infer<typeof evidenceBoot>

export const evidenceParts = ['storage', 'send', 'network', 'turnaround'] as const

const change = {
  beforeUs: count.describe('The median before.'),
  afterUs: count.describe('The median since.'),
}

export const findingEvidence = z
  .object({
    before: z.array(evidenceBoot).describe('The newest boots of the class before the change, the oldest first.'),
    after: z.array(evidenceBoot).describe('Boots with the change, the oldest first.'),
    total: z.object(change).nullable().describe('Of boots that became ready; null if there are none on one side.'),
    phases: z
      .array(
        z.object({
          name: z.enum(bootPhases),
          ...change,
          parts: z
            .array(z.object({ name: z.enum(evidenceParts), ...change }))
            .describe(
              'Time of the reads of this phase, added up: reads overlap, and so the sum may be longer than the phase.',
            ),
        }),
      )
      .describe('Phases that boots of both sides have, in the order of the chain.'),
    failedBefore: count.describe('Boots of `before` that failed.'),
    failedAfter: count.describe('Boots of `after` that failed.'),
    failedPhase: z.enum(bootPhases).nullable().describe('Where most boots of `after` failed.'),
    failedCause: z.string().nullable().describe('Why most of them failed.'),
    alsoChanged: z
      .array(z.object({ factor: z.enum(factors), value: z.string(), name: z.string() }))
      .describe('What else changed at that time, and explains these boots about as well.'),
    smallestShift: z
      .number()
      .nullable()
      .describe('The smallest factor of the boot time that the class shows in 95 of 100 cases within 50 boots.'),
  })
  .meta({ id: 'FindingEvidence' })
export type FindingEvidence = z.infer<typeof findingEvidence>

const findingView = z
  .object({
    id: uuid,
    kind: z.enum(findingKinds).describe('Whether boots became slower, or fail more often.'),
    factor: z.enum(factors).describe('What changed.'),
    value: z.string().describe('Id of a version or of an entry of the audit log, a release, or a network.'),
    valueName: z.string().describe('The same in words, as it was then.'),
    state: z.enum(findingStates),
    sentence: z.string().describe('What was found.'),
    site: z.object({ id: uuid, name: z.string() }),
    vdiskId: uuid,
    vdiskName: z.string().describe('The name at that time.'),
    hardware: z.string().describe('Client architecture and vendor of the network card of the devices.'),
    load: z.string().describe('How many devices booted at once: `few`, `several` or `storm`.'),
    since: instant.describe('Start of the first boot with the change.'),
    openedAt: instant,
    closedAt: instant.nullable().describe('When boots were as before; null while they are not.'),
    stateByName: z.string().nullable().describe('Who acknowledged, muted or unmuted it last.'),
    stateAt: instant.nullable(),
    auditEntryId: uuid.nullable().describe('The change of the audit log that explains it.'),
    revision: count,
  })
  .meta({ id: 'FindingSummary' })
export type FindingView = z.infer<typeof findingView>
export const findingPage = pageOf(findingView)
export const findingDetail = findingView.extend({ evidence: findingEvidence }).meta({ id: 'Finding' })
export type FindingDetail = z.infer<typeof findingDetail>
