import { type Db, inOrganization } from '@bootfarm/db'
import { findPlaces } from '../access/find-place.ts'
import { forEachOrganization, inEachOrganization } from '../context/for-each-organization.ts'
import type { DbOrTransaction, PlatformContext, ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
import { organizationPlace } from '../rules/place.ts'
import { dayMs } from '../rules/utc-day.ts'
import { type CaptureRow, lockCapture, remarkOf } from './capture-row.ts'
import { captureStep, fail } from './capture-steps.ts'

/** Ended captures are shown for so long. */
const keptDays = 30

/** Takes the next step of each capture. Another process may be first: it finds what that one has done. */
export async function advanceCaptures({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_captures() as id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      const active = await inOrganization(db, organizationId, (tenant) =>
        tenant.diskCapture.findMany({
          where: { organizationId, endedAt: null },
          orderBy: { id: 'asc' },
          select: { id: true },
        }),
      )
      const failures: unknown[] = []
      for (const { id } of active)
        try {
          await advance({ db, clock }, { organizationId, id })
        } catch (error) {
          failures.push(error)
        }
      // The others were advanced. The next run tries again.
      if (failures.length > 0) throw failures[0]
    },
    rows.map(({ id }) => id),
  )
}

interface CaptureKey {
  organizationId: string
  id: string
}

/**
 * A refused step is a reason to undo the capture. While a disk is copied, or a capture undone, it is tried again until
 * the deadline: nobody loses a whole copy because its edge has too much to do.
 */
async function advance({ db, clock }: PlatformContext, key: CaptureKey): Promise<void> {
  try {
    await take({ db, clock }, key, captureStep)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    await take({ db, clock }, key, async (context, row) => {
      if (row.state !== 'undoing' && row.state !== 'copying') return fail(context, row, error.publicText)
      await keepRemark(context, row, error.publicText)
    })
  }
}

async function keepRemark({ db, actor }: ServiceContext, { id }: CaptureRow, text: string): Promise<void> {
  const where = { organizationId_id: { organizationId: actor.organizationId, id } }
  await db.diskCapture.update({ where, data: { remark: remarkOf(text) }, select: { id: true } })
}

type Step = (context: ServiceContext, row: CaptureRow) => Promise<void>

function take({ db, clock }: { db: Db; clock: PlatformContext['clock'] }, key: CaptureKey, step: Step): Promise<void> {
  return inOrganization(db, key.organizationId, async (tenant) => {
    const row = await lockCapture(tenant, key)
    if (!row || row.endedAt !== null) return
    const place = (await placeOf(tenant, key, row)) ?? organizationPlace
    const request = { action: 'diskCapture.advance', address: null, id: null, place, recordedCount: 0 }
    await step({ db: tenant, clock, actor: actorOf(key.organizationId, row), request }, row)
  })
}

async function placeOf(db: DbOrTransaction, { organizationId }: CaptureKey, { deviceId }: CaptureRow) {
  return (await findPlaces(db, 'device', { organizationId, ids: [deviceId] })).get(deviceId)
}

/** Its steps are those of the person who asked for it, who was allowed all of them at once. */
function actorOf(organizationId: string, row: CaptureRow): Actor {
  return {
    kind: row.askedByKind as Actor['kind'],
    userId: row.askedByUserId,
    userName: row.askedByName,
    userEmail: '',
    apiKeyId: row.askedByKeyId,
    organizationId,
    organizationName: '',
    grants: [],
    onlyPermissions: null,
  }
}

/** Removes captures that ended long ago. */
export async function dropOldDiskCaptures({ db, clock }: PlatformContext): Promise<void> {
  const before = new Date(clock().getTime() - keptDays * dayMs)
  await inEachOrganization({ db }, (tenant, organizationId) =>
    tenant.diskCapture.deleteMany({ where: { organizationId, endedAt: { lt: before } } }),
  )
}
