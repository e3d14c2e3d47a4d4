import type { DbTransaction } from '@bootfarm/db'
import type { ServiceContext } from '../context/service-context.ts'
import { lockSite } from '../discovery/public.ts'
import { AppError } from '../errors/app-error.ts'
import { type Personality, personalityOf } from '../rules/device/personality.ts'
import { type DeviceType, devicesPerSiteMax } from '../rules/object-fields.ts'
import { requireReportedSet } from '../site/public.ts'

/** The settings that people make for a device. */
export interface DeviceFields {
  collectionId: string
  name: string
  mac: string
  enabled: boolean
  tags: string[]
  personality: Personality
  vdiskId: string | null
  deviceType: DeviceType
  bootProgramSet: string | null
  bootMenuChoice: 'collection' | 'none' | 'own'
  bootMenuId: string | null
}

/** The future state of one device. */
export interface WantedDevice {
  /** Null: a new one. */
  deviceId: string | null
  fields: Partial<DeviceFields>
  /** For a new device: the template; undefined: its collection's template. */
  templateDeviceId?: string | null | undefined
}

export interface PlannedDevice {
  deviceId: string | null
  before: DeviceFields | null
  after: DeviceFields
  siteId: string
  siteIdBefore: string | null
  farmId: string
  /** Why it cannot be. */
  problems: string[]
  /** Further effects, in words. */
  effects: string[]
}

const fieldsSelect = {
  id: true,
  siteId: true,
  collectionId: true,
  name: true,
  mac: true,
  enabled: true,
  tags: true,
  personality: true,
  vdiskId: true,
  deviceType: true,
  bootProgramSet: true,
  bootMenuChoice: true,
  bootMenuId: true,
} as const
const collectionSelect = {
  id: true,
  siteId: true,
  name: true,
  templateDeviceId: true,
  site: { select: { name: true, farmId: true } },
} as const

type Context = Pick<ServiceContext, 'actor'> & { db: DbTransaction }
type Collection = Awaited<ReturnType<typeof readCollections>> extends Map<string, infer One> ? One : never
type Row = Awaited<ReturnType<typeof readDevices>> extends Map<string, infer One> ? One : never

/**
 * Plans changes of devices, with every problem: nothing is written. Holds the locks of the sites until the transaction
 * ends, so that the plan can be written unchanged.
 */
export async function planDevices(context: Context, wanted: WantedDevice[]): Promise<PlannedDevice[]> {
  const known = await readDevices(context, wanted)
  const collections = await readCollections(context, wanted, known)
  const siteIds = [...new Set([...collections.values()].map(({ siteId }) => siteId))].sort()
  for (const siteId of siteIds) await lockSite(context.db, { organizationId: context.actor.organizationId, siteId })
  const templates = await readTemplates(context, wanted, collections)
  const planned = wanted.map((wish) => planOne(wish, { known, collections, templates }))
  await checkFarm(context, planned)
  await checkTaken(context, planned, siteIds)
  await checkPrograms(context, planned)
  return planned
}

interface Readings {
  known: Map<string, Row>
  collections: Map<string, Collection>
  templates: Map<string, Row>
}

function planOne(wish: WantedDevice, { known, collections, templates }: Readings): PlannedDevice {
  const row = wish.deviceId === null ? null : known.get(wish.deviceId)
  if (row === undefined) throw new AppError('not_found')
  const before = row && fieldsOf(row)
  const collection = collections.get(wish.fields.collectionId ?? before?.collectionId ?? '')
  if (!collection) throw new AppError('not_found', { public: 'There is no such collection.' })
  const template = row ? undefined : templates.get(wish.templateDeviceId ?? collection.templateDeviceId ?? '')
  if (wish.templateDeviceId && !template && !row)
    throw new AppError('not_found', { public: 'There is no such template device.' })
  const after = {
    ...(before ?? defaults),
    ...(template && wish.templateDeviceId !== null ? copiedOf(template) : {}),
    ...wish.fields,
    collectionId: collection.id,
  }
  const effects =
    row && row.siteId !== collection.siteId
      ? [`it moves to ${collection.site.name}; its boots stay with the old site`]
      : []
  return {
    deviceId: row?.id ?? null,
    before,
    after,
    effects,
    problems: [],
    siteId: collection.siteId,
    siteIdBefore: row?.siteId ?? null,
    farmId: collection.site.farmId,
  }
}

const defaults: DeviceFields = {
  collectionId: '',
  name: '',
  mac: '',
  enabled: true,
  tags: [],
  personality: {},
  vdiskId: null,
  deviceType: 'production',
  bootProgramSet: null,
  bootMenuChoice: 'collection',
  bootMenuId: null,
}

function fieldsOf({ id: _id, siteId: _siteId, personality, ...row }: Row): DeviceFields {
  return { ...row, personality: personalityOf(personality) }
}

/** Everything that a template passes on. */
function copiedOf(template: Row): Omit<DeviceFields, 'collectionId' | 'name' | 'mac'> {
  const { collectionId: _collection, name: _name, mac: _mac, ...copied } = fieldsOf(template)
  return copied
}

async function readDevices({ db, actor }: Context, wanted: WantedDevice[]) {
  const ids = wanted.flatMap(({ deviceId }) => deviceId ?? [])
  return devicesById({ db, actor }, ids)
}

async function devicesById({ db, actor: { organizationId } }: Context, ids: string[]) {
  const rows = ids.length
    ? await db.device.findMany({ where: { organizationId, id: { in: ids } }, select: fieldsSelect })
    : []
  return new Map(rows.map((row) => [row.id, row]))
}

async function readCollections(
  { db, actor: { organizationId } }: Context,
  wanted: WantedDevice[],
  known: Map<string, { collectionId: string }>,
) {
  const ids = wanted.flatMap(({ deviceId, fields }) => {
    const id = fields.collectionId ?? known.get(deviceId ?? '')?.collectionId
    return id ? [id] : []
  })
  const rows = await db.collection.findMany({
    where: { organizationId, id: { in: [...new Set(ids)] } },
    select: collectionSelect,
  })
  return new Map(rows.map((row) => [row.id, row]))
}

function readTemplates(context: Context, wanted: WantedDevice[], collections: Map<string, Collection>) {
  const named = wanted.flatMap(({ templateDeviceId }) => templateDeviceId ?? [])
  const ofCollections = [...collections.values()].flatMap(({ templateDeviceId }) => templateDeviceId ?? [])
  return devicesById(context, [...new Set([...named, ...ofCollections])])
}

/** vDisks and boot menus of another farm are dropped when a device moves, and refused when they are requested. */
async function checkFarm({ db, actor: { organizationId } }: Context, planned: PlannedDevice[]): Promise<void> {
  const vdiskIds = [...new Set(planned.flatMap(({ after }) => after.vdiskId ?? []))]
  const menuIds = [...new Set(planned.flatMap(({ after }) => after.bootMenuId ?? []))]
  const select = { id: true, farmId: true } as const
  const farmOf = new Map(
    [
      ...(await db.vdisk.findMany({ where: { organizationId, id: { in: vdiskIds } }, select })),
      ...(await db.bootMenu.findMany({ where: { organizationId, id: { in: menuIds } }, select })),
    ].map(({ id, farmId }) => [id, farmId]),
  )
  for (const { before, after, farmId, effects, problems } of planned) {
    if (after.vdiskId && farmOf.get(after.vdiskId) !== farmId) {
      if (before?.vdiskId === after.vdiskId) effects.push('its own vDisk belongs to another farm and is removed')
      else problems.push('The farm has no such vDisk.')
      after.vdiskId = null
    }
    if (after.bootMenuChoice === 'own' && farmOf.get(after.bootMenuId ?? '') !== farmId) {
      if (before?.bootMenuId === after.bootMenuId)
        effects.push('its own boot menu belongs to another farm and is removed')
      else problems.push('The farm has no such boot menu.')
      Object.assign(after, { bootMenuChoice: 'collection', bootMenuId: null })
    }
  }
}

/** Names and addresses are one device's at a site: as it will be, all wishes together. */
async function checkTaken(
  { db, actor: { organizationId } }: Context,
  planned: PlannedDevice[],
  siteIds: string[],
): Promise<void> {
  const ids = new Set(planned.flatMap(({ deviceId }) => deviceId ?? []))
  const others = await db.device.findMany({
    where: { organizationId, siteId: { in: siteIds } },
    select: { id: true, siteId: true, name: true, mac: true },
  })
  const staying = others.filter(({ id }) => !ids.has(id))
  const nameOwner = new Map(staying.map(({ siteId, name }) => [`${siteId} ${name}`, name]))
  const macOwner = new Map(staying.map(({ siteId, name, mac }) => [`${siteId} ${mac}`, name]))
  // An address that another wish gives up is free only afterwards: no two rows may have it in between.
  const macNow = new Map(others.map(({ siteId, id, mac }) => [`${siteId} ${mac}`, id]))
  const counts = new Map<string, number>()
  for (const { siteId } of staying) counts.set(siteId, (counts.get(siteId) ?? 0) + 1)
  for (const { deviceId, before, siteIdBefore, siteId, after, problems } of planned) {
    const isSame = siteId === siteIdBefore
    if (nameOwner.has(`${siteId} ${after.name}`) && !(isSame && before?.name === after.name))
      problems.push(`This site already has a device named ${after.name}.`)
    const owner = macOwner.get(`${siteId} ${after.mac}`)
    if (owner !== undefined) problems.push(`The MAC address ${after.mac} already belongs to ${owner} at this site.`)
    else if (macNow.has(`${siteId} ${after.mac}`) && macNow.get(`${siteId} ${after.mac}`) !== deviceId)
      problems.push(`The MAC address ${after.mac} still belongs to another device. Change that device first.`)
    nameOwner.set(`${siteId} ${after.name}`, after.name)
    macOwner.set(`${siteId} ${after.mac}`, after.name)
    const count = (counts.get(siteId) ?? 0) + 1
    counts.set(siteId, count)
    if (count > devicesPerSiteMax && !isSame) problems.push(`A site can have at most ${devicesPerSiteMax} devices.`)
  }
}

async function checkPrograms({ db, actor: { organizationId } }: Context, planned: PlannedDevice[]): Promise<void> {
  const problemOf = new Map<string, string | null>()
  for (const { siteId, siteIdBefore, before, after, problems, effects } of planned) {
    const { bootProgramSet } = after
    const isNew = bootProgramSet !== before?.bootProgramSet
    if (bootProgramSet === null || (!isNew && siteId === siteIdBefore)) continue
    const key = `${siteId} ${bootProgramSet}`
    if (!problemOf.has(key))
      problemOf.set(
        key,
        await requireReportedSet(db, { organizationId, siteId }, bootProgramSet).then(
          () => null,
          (error: unknown) => {
            if (error instanceof AppError && error.code === 'conflict') return error.publicText
            throw error
          },
        ),
      )
    const problem = problemOf.get(key)
    if (!problem) continue
    if (isNew) problems.push(problem)
    else {
      effects.push(`no edge there has the boot programs “${bootProgramSet}”, so they are removed`)
      after.bootProgramSet = null
    }
  }
}
