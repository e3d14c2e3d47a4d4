import type { z } from 'zod'
import { findBoot } from '../boot/public.ts'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { deviceStateOf } from '../rules/device/device-state.ts'
import { askStore } from '../store/public.ts'
import { deviceHomeSelect, readDeviceHome } from './read-home.ts'
import type { DeviceHome, moveHomeInput, moveHomeResult } from './schema.ts'

interface Move {
  device: { id: string; name: string; siteId: string }
  home: DeviceHome
  target: { id: string; name: string }
}

/**
 * Makes another edge the write owner of a device. A live write owner must release the device first, and refuses if it
 * keeps any of its writes; the writes at a removed edge are given up. Throws `not_found`; `invalid` for an edge that is
 * not of the device's site; `conflict` if no write owner was chosen yet, that edge is the write owner already, the
 * device runs, writes are kept, or their loss was not confirmed.
 */
export async function moveHome(
  context: ServiceContext,
  { deviceId, edgeId, giveUp }: z.output<typeof moveHomeInput>,
): Promise<z.infer<typeof moveHomeResult>> {
  const move = await openMove(context, { deviceId, edgeId })
  const { device, home, target } = move
  if (!home.edge.isRemoved && giveUp)
    throw conflict(
      `${home.edge.name} was not removed, so its stored writes cannot be discarded. If the edge is permanently gone, remove it first.`,
    )
  if (!home.edge.isRemoved) return askToLetGo(context, move)
  if (!giveUp)
    throw conflict(
      `${home.edge.name} was removed. Its stored writes of ${device.name} (${home.keeps ?? 'none known'}) are permanently lost when ${target.name} takes over. Repeat the request with giveUp to confirm.`,
    )
  const { db, clock, actor } = context
  await db.device.update({
    where: ownRow(actor, deviceId),
    data: {
      homeEdgeId: edgeId,
      nextHomeEdgeId: null,
      homeSince: clock(),
      ...(await layerAt(context, { deviceId, edgeId: home.edge.id })),
    },
    select: { id: true },
  })
  await record(context, move, { givenUp: home.keeps })
  return { jobId: null }
}

async function openMove(
  context: ServiceContext,
  { deviceId, edgeId }: { deviceId: string; edgeId: string },
): Promise<Move> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  await lockRow(db, 'device', { organizationId, id: deviceId, strength: 'no key update' })
  const device = await db.device.findUnique({
    where: ownRow(actor, deviceId),
    select: { ...deviceHomeSelect, name: true, lastBootId: true },
  })
  if (!device) throw new AppError('not_found')
  const target = await db.edge.findFirst({
    where: { organizationId, id: edgeId, siteId: device.siteId, revokedAt: null },
    select: { id: true, name: true },
  })
  if (!target) throw new AppError('invalid', { public: 'Choose an edge of the device’s site that was not removed.' })
  const home = await readDeviceHome(context, device)
  if (!home) throw conflict(`${device.name} has no persistent-write location yet. Its writes are discarded at reboot.`)
  if (home.next)
    throw conflict(`${home.edge.name} is already releasing the device to ${home.next.name}. Cancel that move first.`)
  if (home.edge.id === target.id) throw conflict(`${target.name} already stores the writes of ${device.name}.`)
  const lastBoot = device.lastBootId ? await findBoot({ db, actor }, device.lastBootId) : null
  if (!home.edge.isRemoved && lastBoot && deviceStateOf(lastBoot, clock()).state === 'running')
    throw conflict(`${device.name} is running. Shut it down and try again after half a minute.`)
  return { device, home, target }
}

async function askToLetGo(context: ServiceContext, move: Move): Promise<z.infer<typeof moveHomeResult>> {
  const { device, home, target } = move
  if (home.keeps)
    throw conflict(
      `${home.edge.name} stores ${home.keeps}. Delete, seal or discard it first: ${device.name} could not use it on another edge.`,
    )
  const { db, actor } = context
  await db.device.update({
    where: ownRow(actor, device.id),
    data: { nextHomeEdgeId: target.id },
    select: { id: true },
  })
  const jobId = await askStore(context, { edgeId: home.edge.id, kind: 'release_home', deviceId: device.id })
  await record(context, move, { onceLetGo: home.edge.name })
  return { jobId }
}

/** Writes at an edge that is given up are no longer shown as kept. */
async function layerAt(
  { db, actor: { organizationId } }: ServiceContext,
  { deviceId, edgeId }: { deviceId: string; edgeId: string },
) {
  const there = await db.device.count({ where: { organizationId, id: deviceId, layerEdgeId: edgeId } })
  return there === 0 ? {} : { layerClass: null, layerEdgeId: null, layerVersionId: null, layerBytes: null }
}

function record(context: ServiceContext, { device, home, target }: Move, more: object): Promise<void> {
  return recordChange(context, {
    kind: 'device',
    id: device.id,
    name: device.name,
    before: { writesKeptAt: home.edge.name },
    after: { writesKeptAt: target.name, ...more },
  })
}

function conflict(text: string): AppError {
  return new AppError('conflict', { public: text })
}
