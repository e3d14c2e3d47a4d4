import type { Prisma } from '@bootfarm/db'
import { deviceMenuOf, deviceMenuSelect } from '../boot-menu/public.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { fingerprintOf } from '../rules/device/device-key.ts'
import { inheritPersonality, personalityOf } from '../rules/device/personality.ts'
import { deviceHomeSelect, readDeviceHome, readSiteEdges } from './read-home.ts'
import { deviceLayerSelect, readDeviceLayer } from './read-layer.ts'
import { deviceSummaryOf, deviceSummarySelect, nameDevices } from './rows.ts'
import type { DeviceDetail } from './schema.ts'

/** Throws `not_found`. */
export async function getDevice(context: ServiceContext, deviceId: string): Promise<DeviceDetail> {
  const { db, clock, actor } = context
  const row = await db.device.findUnique({ where: ownRow(actor, deviceId), select: detailSelect(clock()) })
  if (!row) throw new AppError('not_found')
  const powerOn = row.powerOns[0]
  const own = personalityOf(row.personality)
  const names = await nameDevices(context, [row])
  const ownVdisk = names.get('vdisk', row.vdiskId)
  return {
    ...deviceSummaryOf(row, { names, now: clock() }),
    bootProgramSets: {
      device: row.bootProgramSet,
      collection: row.collection.bootProgramSet,
      site: row.site.bootProgramSet,
    },
    bootMenu: deviceMenuOf(row),
    key: keyViewOf(row),
    layer: await readDeviceLayer(context, row),
    home: await readDeviceHome(context, row),
    siteEdges: await readSiteEdges(context, row.siteId),
    createdAt: row.createdAt.toISOString(),
    farmId: row.site.farmId,
    ownVdisk: row.vdiskId && ownVdisk ? { id: row.vdiskId, name: ownVdisk.name } : null,
    personality: own,
    inheritedPersonality: inheritPersonality({
      site: personalityOf(row.site.personality),
      collection: personalityOf(row.collection.personality),
      device: own,
    }),
    isTemplate: row.collection.templateDeviceId === row.id,
    powerOn: powerOn
      ? {
          id: powerOn.id,
          requestedAt: powerOn.requestedAt.toISOString(),
          expiresAt: powerOn.expiresAt.toISOString(),
        }
      : null,
  }
}

type DetailRow = Prisma.DeviceGetPayload<{ select: ReturnType<typeof detailSelect> }>

function keyViewOf(row: DetailRow): DeviceDetail['key'] {
  const { keyLearn: learn, keyWithout: without } = row.collection
  return {
    known: fingerprintOf(row.keySha256),
    keyless: row.keyless,
    revision: row.keyRevision,
    decidedBy: row.keyDecidedByName,
    decidedAt: row.keyDecidedAt?.toISOString() ?? null,
    claim: row.keyClaimedAt && {
      key: fingerprintOf(row.keyClaimed),
      bootId: row.keyClaimBootId,
      since: row.keyClaimedAt.toISOString(),
    },
    policy: { learn, without },
  }
}

function detailSelect(now: Date) {
  return {
    ...deviceSummarySelect,
    ...deviceLayerSelect,
    ...deviceHomeSelect,
    createdAt: true,
    keySha256: true,
    keyless: true,
    keyRevision: true,
    keyDecidedByName: true,
    keyDecidedAt: true,
    keyClaimBootId: true,
    keyClaimedAt: true,
    bootMenuChoice: true,
    bootMenu: deviceMenuSelect.bootMenu,
    bootProgramSet: true,
    collection: {
      select: {
        ...deviceMenuSelect.collection.select,
        bootProgramSet: true,
        personality: true,
        templateDeviceId: true,
        keyLearn: true,
        keyWithout: true,
      },
    },
    personality: true,
    site: { select: { farmId: true, bootProgramSet: true, personality: true } },
    powerOns: {
      where: { expiresAt: { gt: now } },
      orderBy: { requestedAt: 'desc' },
      take: 1,
      select: { id: true, requestedAt: true, expiresAt: true },
    },
  } satisfies Prisma.DeviceSelect
}
