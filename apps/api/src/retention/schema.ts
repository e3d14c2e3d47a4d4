import { z } from 'zod'
import { seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { keepReasons } from './retention-rule.ts'

const keptReleasesMax = 1000
const trashDaysMax = 30

const keptReleases = z
  .number()
  .int()
  .min(1, 'Keep at least one released version.')
  .max(keptReleasesMax, `At most ${keptReleasesMax}. Leave it out to keep all.`)

export const retentionGetInput = z.object({ vdiskId: uuid })
export const retentionPreviewInput = z.object({
  vdiskId: uuid,
  keptReleases: keptReleases.describe('Number of released versions that would stay.'),
})
export const retentionSetInput = z.object({
  vdiskId: uuid,
  revision: seenRevision.describe("The vDisk's."),
  keptReleases: keptReleases
    .nullable()
    .describe('Number of released versions that stay, the last ones; null: retention deletes none.'),
  trashDays: z
    .number()
    .int()
    .min(0)
    .max(trashDaysMax, `The trash keeps versions for at most ${trashDaysMax} days.`)
    .default(7)
    .describe('How long a version that retention has deleted can be restored, and stays at edges; 0: not at all.'),
})

export const retentionView = z
  .object({
    revision: seenRevision.describe("The vDisk's."),
    keptReleases: count.nullable().describe('Number of released versions that stay; null: retention deletes none.'),
    trashDays: count.describe('How long a version that retention has deleted can be restored.'),
  })
  .meta({ id: 'Retention' })
export type RetentionView = z.infer<typeof retentionView>

const verdictView = z.object({
  versionId: uuid,
  number: count,
  releasedAt: instant.nullable().describe('Null: released before this was recorded, or not released.'),
  goes: z.boolean().describe('The next run moves it to the trash.'),
  reasons: z
    .array(z.object({ kind: z.enum(keepReasons), text: z.string().describe('For people.') }))
    .describe('Why it stays; empty if it goes.'),
})
export const retentionPreview = z
  .object({
    versions: z.array(verdictView).describe('The newest first.'),
    waitingCount: count.describe('Versions that are decided about by later runs, because there are too many for one.'),
    edges: z
      .array(
        z.object({
          edgeId: uuid,
          edgeName: z.string(),
          siteName: z.string(),
          versionCount: count.describe('Versions that go, and that this edge holds.'),
          reclaimableBytes: count.describe('At least so much becomes free.'),
        }),
      )
      .describe('The edges that hold versions that go, and what becomes free there.'),
  })
  .meta({ id: 'RetentionPreview' })
export type RetentionPreview = z.infer<typeof retentionPreview>
