import { ignoredMacsMax } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import { notify } from '../context/notifications.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Change } from '../events/event-bus.ts'
import { recordChanges, recordNothing } from '../events/record-change.ts'
import { nameOf, namesMany } from '../rules/name-pattern.ts'
import type { Place } from '../rules/place.ts'
import { forgetDiscovered, lockSite, namesOfSite } from './rows.ts'
import type { adoptInput, adoptResult, ignoreInput, ignoreResult } from './schema.ts'

/**
 * Ignored devices get no answer from the site's edges and are no longer reported; when they are no longer ignored, they
 * wait again. Throws `not_found`; `conflict` if a site ignores as many as a desired state can hold.
 */
export async function ignoreDiscovered(
  context: ServiceContext,
  { siteId, discoveredIds, ignored }: z.output<typeof ignoreInput>,
): Promise<z.infer<typeof ignoreResult>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = { organizationId, siteId }
  return db.$transaction(async (transaction) => {
    await lockSite(transaction, place)
    const changed = await transaction.discoveredDevice.updateManyAndReturn({
      where: { ...place, id: { in: discoveredIds }, ignoredAt: ignored ? null : { not: null } },
      data: { ignoredAt: ignored ? clock() : null },
      select: { id: true, mac: true },
    })
    const ignoredCount = await transaction.discoveredDevice.count({
      where: { ...place, ignoredAt: { not: null } },
    })
    if (ignored && ignoredCount > ignoredMacsMax)
      throw new AppError('conflict', {
        public: `A site can ignore at most ${ignoredMacsMax} devices. Stop ignoring some first.`,
      })
    if (changed.length === 0) recordNothing(context)
    else {
      await recordChanges(
        context,
        changed.map((machine) => ignoredChange(context.request.place, machine, ignored)),
      )
      await notify(transaction, { discovered: { organizationId } })
    }
    return { changedCount: changed.length }
  })
}

/** The audit entry of a machine that is ignored from now on, or no longer. */
export function ignoredChange(place: Place, { id, mac }: { id: string; mac: string }, ignored = true): Change {
  const object = { kind: 'discovered_device', id, name: mac, place }
  return { ...object, before: { ignored: !ignored }, after: { ignored } }
}

/**
 * Registers discovered devices, including ignored ones: they boot with their next request. Numbers follow the order of
 * `discoveredIds`. Throws `not_found` for a missing site or collection; `conflict` for a name that a device of the site
 * has, or one name for several devices.
 */
export async function adoptDiscovered(
  context: ServiceContext,
  { siteId, discoveredIds, namePattern, collectionId }: z.output<typeof adoptInput>,
): Promise<z.infer<typeof adoptResult>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = { organizationId, siteId }
  const createdAt = clock()
  return db.$transaction(async (transaction) => {
    await lockSite(transaction, place)
    const collection = await transaction.collection.findFirst({
      where: { ...place, id: collectionId },
      select: { id: true },
    })
    if (!collection) throw new AppError('not_found')
    const rows = await transaction.discoveredDevice.findMany({
      where: { ...place, id: { in: discoveredIds } },
      select: { id: true, mac: true },
    })
    const macOf = new Map(rows.map(({ id, mac }) => [id, mac]))
    const macs = [...new Set(discoveredIds)].flatMap((id) => macOf.get(id) ?? [])
    const named = nameAll(namePattern, macs, await namesOfSite(transaction, place))
    const devices = await transaction.device.createManyAndReturn({
      data: named.map(({ mac, name }) => ({ ...place, collectionId, mac, name, createdAt })),
      skipDuplicates: true,
      select: { id: true, name: true, mac: true },
    })
    await forgetDiscovered(transaction, place, macs)
    if (macs.length > 0) {
      await notify(transaction, { discovered: { organizationId } })
    }
    if (devices.length === 0) recordNothing(context)
    else
      await recordChanges(
        context,
        devices.map((device) => adoptedChange(context.request.place, { ...device, collectionId })),
      )
    return {
      adopted: devices.map(({ id, name, mac }) => ({ deviceId: id, name, mac })),
      missingCount: discoveredIds.length - devices.length,
    }
  })
}

/** The audit entry of a machine that becomes a device. */
export function adoptedChange(
  { farmId, siteId }: Place,
  { id, name, mac, collectionId }: { id: string; name: string; mac: string; collectionId: string },
): Change {
  const place = { farmId, siteId, collectionId }
  return { kind: 'device', id, name, place, before: null, after: { name, mac, collectionId } }
}

function nameAll(pattern: string, macs: string[], taken: Set<string>): { mac: string; name: string }[] {
  if (!namesMany(pattern)) {
    if (macs.length > 1)
      throw new AppError('conflict', {
        public: 'Use {n} or {mac} in the name pattern to name several devices.',
      })
    if (taken.has(pattern))
      throw new AppError('conflict', { public: `This site already has a device named ${pattern}.` })
  }
  return macs.map((mac) => {
    const name = nameOf(pattern, mac, taken)
    taken.add(name)
    return { mac, name }
  })
}
