import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { personalityOf } from '../rules/device/personality.ts'
import { type CsvDevice, parseDevicesCsv } from './device-csv.ts'
import { carryOutPlan } from './many-devices.ts'
import { type DeviceFields, planDevices, type WantedDevice } from './plan-devices.ts'
import type { importCsvInput, PlanResult } from './schema.ts'

/**
 * Creates and changes devices of a site from a table: a line is the device with its MAC address, otherwise the one with
 * its name, otherwise a new one. All lines, or none if one has a problem; the same table again changes nothing. Throws
 * `invalid` for an unreadable table.
 */
export async function importDevices(
  context: ServiceContext,
  { siteId, csv, preview }: z.output<typeof importCsvInput>,
): Promise<PlanResult> {
  const parsed = parseDevicesCsv(csv)
  if ('problem' in parsed) throw new AppError('invalid', { public: parsed.problem })
  const known = await readSite(context, siteId)
  const lineOf = new Map<string, number>()
  const wanted = parsed.devices.map((device) => wishOf(device, known, lineOf))
  const ready = wanted.flatMap(({ wish, problems }, index) => (wish ? [{ index, wish, problems }] : []))
  const planned = await planDevices(
    context,
    ready.map(({ wish }) => wish),
  )
  for (const [index, { problems }] of ready.entries()) planned[index]?.problems.unshift(...problems)
  const lines = ready.map(({ index }) => parsed.devices[index]?.line ?? 0)
  const unread = wanted.flatMap(({ wish, problems }, index) => (wish ? [] : [{ index, problems }]))
  const result = await carryOutPlan(context, { planned, lines, preview: preview || unread.length > 0 })
  return {
    ...result,
    refusedCount: result.refusedCount + unread.length,
    rows: [
      ...unread.map(({ index, problems }) => ({
        line: parsed.devices[index]?.line ?? 0,
        deviceId: null,
        name: parsed.devices[index]?.name ?? '',
        mac: parsed.devices[index]?.mac ?? '',
        kind: 'refused' as const,
        changes: [],
        problems,
      })),
      ...result.rows,
    ],
  }
}

type Known = Awaited<ReturnType<typeof readSite>>

async function readSite({ db, actor }: ServiceContext, siteId: string) {
  const { organizationId } = actor
  const site = await db.site.findUnique({ where: ownRow(actor, siteId), select: { farmId: true } })
  if (!site) throw new AppError('not_found')
  const named = { id: true, name: true } as const
  const ofFarm = { organizationId, farmId: site.farmId }
  const devices = await db.device.findMany({
    where: { organizationId, siteId },
    select: { ...named, mac: true, personality: true },
  })
  const byName = (rows: { id: string; name: string }[]) => new Map(rows.map(({ id, name }) => [name, id]))
  return {
    collections: byName(await db.collection.findMany({ where: { organizationId, siteId }, select: named })),
    vdisks: byName(await db.vdisk.findMany({ where: ofFarm, select: named })),
    menus: byName(await db.bootMenu.findMany({ where: ofFarm, select: named })),
    byMac: new Map(devices.map((device) => [device.mac, device])),
    byName: new Map(devices.map((device) => [device.name, device])),
  }
}

/** Returns null if the line has too little content to plan it. */
function wishOf(
  line: CsvDevice,
  known: Known,
  lineOf: Map<string, number>,
): { wish: WantedDevice | null; problems: string[] } {
  const problems = [...line.problems]
  const device = known.byMac.get(line.mac ?? '') ?? known.byName.get(line.name ?? '')
  const key = device?.id ?? line.mac ?? line.name ?? ''
  const earlier = lineOf.get(key)
  if (earlier !== undefined) problems.push(`Line ${earlier} names the same device.`)
  lineOf.set(key, line.line)
  const idOf = (ids: Map<string, string>, noun: string, name: string) => {
    const id = ids.get(name)
    if (!id) problems.push(`There is no ${noun} named ${name} here.`)
    return id
  }
  const fields: Partial<DeviceFields> = {}
  if (line.mac) fields.mac = line.mac
  if (line.name) fields.name = line.name
  if (line.enabled !== undefined) fields.enabled = line.enabled
  if (line.tags) fields.tags = line.tags
  if (line.collection) fields.collectionId = idOf(known.collections, 'collection', line.collection) ?? ''
  if (line.vdisk === null) fields.vdiskId = null
  else if (line.vdisk) fields.vdiskId = idOf(known.vdisks, 'vDisk', line.vdisk) ?? null
  if (line.deviceType) fields.deviceType = line.deviceType
  if (line.bootPrograms !== undefined) fields.bootProgramSet = line.bootPrograms
  Object.assign(
    fields,
    menuOf(line.bootMenu, (name) => idOf(known.menus, 'boot menu', name)),
  )
  if (Object.keys(line.personality).length > 0)
    fields.personality = { ...personalityOf(device?.personality), ...line.personality }
  if (!device) {
    if (!line.mac) problems.push('A new device needs a MAC address.')
    if (!line.name) problems.push('A new device needs a name.')
    if (!line.collection) problems.push('A new device needs a collection.')
  }
  const isPlannable = fields.collectionId !== '' && (device || (line.mac && line.name && fields.collectionId))
  return { wish: isPlannable ? { deviceId: device?.id ?? null, fields } : null, problems }
}

/** `collection` is the value of a device without its own choice. */
function menuOf(
  bootMenu: string | null | undefined,
  idOf: (name: string) => string | undefined,
): Partial<DeviceFields> {
  if (bootMenu === undefined) return {}
  if (bootMenu === null) return { bootMenuChoice: 'none', bootMenuId: null }
  if (bootMenu === 'collection') return { bootMenuChoice: 'collection', bootMenuId: null }
  return { bootMenuChoice: 'own', bootMenuId: idOf(bootMenu) ?? null }
}
