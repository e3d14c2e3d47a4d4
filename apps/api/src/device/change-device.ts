import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { definedOf } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { ChangedObject, DeletedObject } from '../rules/changed-object.ts'
import { deleteObject } from '../trash/public.ts'
import { type PlannedDevice, planDevices } from './plan-devices.ts'
import type { createDeviceInput, removeDeviceInput, updateDeviceInput } from './schema.ts'
import { writeDevices } from './write-devices.ts'

const select = { id: true, name: true, revision: true } as const

/**
 * Registers a device: it boots when it asks next. Throws `not_found` for the collection or the template; `conflict` for
 * a name or an address that its site has, `invalid` for a vDisk that its farm does not have.
 */
export async function createDevice(
  context: ServiceContext,
  { templateDeviceId, ...fields }: z.output<typeof createDeviceInput>,
): Promise<ChangedObject> {
  const planned = await planDevices(context, [{ deviceId: null, fields: definedOf(fields), templateDeviceId }])
  refuseProblems(planned)
  const [written] = await writeDevices(context, planned)
  return readChanged(context, written?.id ?? '')
}

/** Throws like `createDevice`; `conflict` also if somebody else changed it meanwhile. */
export async function updateDevice(
  context: ServiceContext,
  { deviceId, revision, ...fields }: z.output<typeof updateDeviceInput>,
): Promise<ChangedObject> {
  await requireCurrent(context, { kind: 'device', id: deviceId, revision })
  const planned = await planDevices(context, [{ deviceId, fields: definedOf(fields) }])
  refuseProblems(planned)
  await writeDevices(context, planned)
  return readChanged(context, deviceId)
}

/** Deletes the device; its boots stay. Edges no longer answer it. Throws `not_found`. */
export async function removeDevice(
  context: ServiceContext,
  { deviceId, revision }: z.output<typeof removeDeviceInput>,
): Promise<DeletedObject> {
  const place = await requireCurrent(context, { kind: 'device', id: deviceId, revision })
  const { name } = await readChanged(context, deviceId)
  const deleted = await deleteObject(context, { kind: 'device', id: deviceId, name, place })
  return deleted
}

function refuseProblems(planned: PlannedDevice[]): void {
  const [problem] = planned.flatMap(({ problems }) => problems)
  if (problem) throw new AppError('conflict', { public: problem })
}

function readChanged({ db, actor }: ServiceContext, id: string): Promise<ChangedObject> {
  return db.device.findUniqueOrThrow({ where: ownRow(actor, id), select })
}
