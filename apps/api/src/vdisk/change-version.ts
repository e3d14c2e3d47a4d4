import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { definedOf } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { ChangedObject } from '../rules/changed-object.ts'
import { withVdiskHeld } from './hold-vdisk.ts'
import { nextVersionNumber } from './next-number.ts'
import { readVersions, writeVersions } from './version-facts.ts'
import type { registerVersionInput, updateVersionInput } from './version-schema.ts'
import { apply } from './version-steps.ts'

export const changedVersionSelect = {
  id: true,
  number: true,
  revision: true,
  vdisk: { select: { name: true } },
} as const

interface ChangedVersionRow {
  id: string
  number: number
  revision: number
  vdisk: { name: string }
}

/**
 * Registers files in the edges' stores as the vDisk's next version: its devices, or its test devices, boot it from now
 * on; running devices keep theirs. Numbers are never reused. Throws `not_found`.
 */
export function registerVersion(
  context: ServiceContext,
  input: z.output<typeof registerVersionInput>,
): Promise<ChangedObject> {
  return withVdiskHeld(context, { vdiskId: input.vdiskId }, () => register(context, input))
}

async function register(
  context: ServiceContext,
  { vdiskId, ...fields }: z.output<typeof registerVersionInput>,
): Promise<ChangedObject> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId })
  const now = clock()
  const before = await readVersions(db, { organizationId, vdiskId })
  if (!before) throw new AppError('not_found')
  const number = await nextVersionNumber(db, { organizationId, vdiskId })
  const row = await db.vdiskVersion.create({
    data: {
      organizationId,
      vdiskId,
      number,
      ...fields,
      createdAt: now,
      sealedAt: now,
      releasedAt: fields.state === 'released' ? now : null,
    },
    select: changedVersionSelect,
  })
  const { next } = apply(before, { kind: 'register', version: { id: row.id, number, state: fields.state } }, now)
  if (next) await writeVersions(db, { organizationId, vdiskId }, { before, next })
  const version = changedVersionOf(row)
  await recordChange(context, {
    kind: 'version',
    id: row.id,
    name: version.name,
    place,
    before: null,
    after: { number, ...fields },
  })
  return version
}

/**
 * Changes its note, its labels and its protection, never its content. Throws `not_found`; `conflict` if somebody else
 * changed it meanwhile.
 */
export async function updateVersion(
  context: ServiceContext,
  { versionId, revision, ...fields }: z.output<typeof updateVersionInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'version', id: versionId, revision })
  const where = ownRow(actor, versionId)
  const fieldsSelect = { note: true, labels: true, isProtected: true } as const
  const before = await db.vdiskVersion.findUniqueOrThrow({ where, select: fieldsSelect })
  const row = await db.vdiskVersion.update({ where, data: definedOf(fields), select: changedVersionSelect })
  const after = await db.vdiskVersion.findUniqueOrThrow({ where, select: fieldsSelect })
  const version = changedVersionOf(row)
  await recordChange(context, { kind: 'version', id: versionId, name: version.name, place, before, after })
  return version
}

export function changedVersionOf({ id, number, revision, vdisk }: ChangedVersionRow): ChangedObject {
  return { id, revision, name: `${vdisk.name} version ${number}` }
}
