import type { Prisma } from '@bootfarm/db'
import { edgeOnlineWithinMs, importsEmptyDisks } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { findBoot } from '../boot/public.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { heartbeatOf } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { deviceStateOf } from '../rules/device/device-state.ts'
import { edgesHolding } from '../store/public.ts'
import { createVdisk } from '../vdisk/public.ts'
import { hourMs, lockCapture, newestCapture } from './capture-row.ts'
import { captureViewOf } from './get-capture.ts'
import { makeBlank } from './make-blank.ts'
import type { CaptureView, startCaptureInput } from './schema.ts'

type Input = z.output<typeof startCaptureInput>

const deviceSelect = {
  id: true,
  name: true,
  enabled: true,
  siteId: true,
  lastBootId: true,
  homeEdgeId: true,
  nextHomeEdgeId: true,
  site: { select: { farmId: true } },
} satisfies Prisma.DeviceSelect
type DeviceRow = Prisma.DeviceGetPayload<{ select: typeof deviceSelect }>

/**
 * Begins the capture of a device's disk; `advanceCaptures` continues it. Throws `not_found`; `invalid` for a version
 * without boot files, for a vDisk or a version of another farm and for an edge of another site; `conflict` for a device
 * that somebody else has changed, is disabled, runs or is captured already, for a vDisk with a version in maintenance,
 * and where no edge of the site can keep the disk: why.
 */
export async function startCapture(context: ServiceContext, input: Input): Promise<CaptureView> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const { deviceId, bootVersionId, disk, sizeBytes, bootFiles, note, waitHours } = input
  await requireCurrent(context, { kind: 'device', id: deviceId, revision: input.revision })
  const device = await db.device.findUniqueOrThrow({ where: ownRow(actor, deviceId), select: deviceSelect })
  await requireFree(context, device, input)
  const boots = await requireBootFiles(context, device, bootVersionId)
  const edgeId = await chooseEdge(context, device, { edgeId: input.edgeId, boots })
  const vdiskId = await requireVdisk(context, device, input)
  const now = clock()
  const { id } = await db.diskCapture.create({
    data: {
      organizationId,
      deviceId,
      vdiskId,
      isNewVdisk: input.vdiskId === null,
      edgeId,
      bootVersionId,
      state: 'preparing',
      disk,
      sizeBytes: sizeBytes === null ? null : BigInt(sizeBytes),
      bootFiles: bootFiles === 'none' ? 'none' : null,
      note,
      waitSeconds: (waitHours * hourMs) / 1000,
      deadlineAt: new Date(now.getTime() + hourMs),
      askedByKind: actor.kind,
      askedByUserId: actor.userId,
      askedByKeyId: actor.apiKeyId,
      askedByName: actor.userName,
      askedAt: now,
    },
    select: { id: true },
  })
  const row = await lockCapture(db, { organizationId, id })
  if (!row) throw new AppError('not_found')
  await recordChange(context, {
    kind: 'device',
    id: deviceId,
    name: device.name,
    before: { diskCapture: null },
    after: { diskCapture: 'preparing', disk, vdiskId, edgeId, bootVersionId, sizeBytes, bootFiles },
  })
  const { jobId, blankIds } = await makeBlank(context, row)
  await db.diskCapture.update({ where: ownRow(actor, id), data: { jobId, blankIds }, select: { id: true } })
  return captureViewOf(context, Object.assign(row, { jobId, blankIds }))
}

async function requireFree(context: ServiceContext, device: DeviceRow, { whileRunning }: Input): Promise<void> {
  const { db, clock, actor } = context
  const { id, name, enabled, lastBootId } = device
  const last = await newestCapture(db, { organizationId: actor.organizationId, deviceId: id })
  if (last && last.endedAt === null)
    throw conflict(
      `A disk of ${name} is being captured already, since ${last.askedAt.toISOString()}. Cancel that first.`,
    )
  if (!enabled) throw conflict(`${name} is disabled, so no edge lets it boot. Enable it first.`)
  const boot = lastBootId ? await findBoot({ db, actor }, lastBootId) : null
  const state = boot ? deviceStateOf(boot, clock()).state : null
  if (!whileRunning && (state === 'running' || state === 'booting'))
    throw conflict(
      `${name} is ${state}. Its disk is captured at its next boot: shut it down first, or repeat the request with whileRunning and restart it yourself.`,
    )
}

interface BootVersion {
  id: string
  text: string
}

async function requireBootFiles({ db, actor }: ServiceContext, device: DeviceRow, id: string): Promise<BootVersion> {
  const version = await db.vdiskVersion.findUnique({
    where: ownRow(actor, id),
    select: {
      number: true,
      sealedAt: true,
      kernelSha256: true,
      kernelPath: true,
      vdisk: { select: { name: true, farmId: true } },
    },
  })
  if (version?.vdisk.farmId !== device.site.farmId || version.sealedAt === null)
    throw new AppError('invalid', {
      public: 'The version with the boot files must be a sealed one of the device’s farm.',
    })
  const text = `${version.vdisk.name} version ${version.number}`
  if (version.kernelSha256 === null && version.kernelPath === null)
    throw new AppError('invalid', { public: `${text} has no kernel and no initramfs. Name a version that has them.` })
  return { id, text }
}

interface Wanted {
  edgeId: string | null
  boots: BootVersion
}

/** Those that are online come first. A device with a write owner can write nowhere else. */
async function chooseEdge(context: ServiceContext, device: DeviceRow, { edgeId, boots }: Wanted): Promise<string> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  if (device.nextHomeEdgeId)
    throw conflict(`Another edge is about to keep the writes of ${device.name}. Wait until that is done, or cancel it.`)
  const edges = await db.edge.findMany({
    where: { organizationId, siteId: device.siteId, revokedAt: null },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    select: { id: true, name: true, heartbeat: true, heartbeatAt: true, agentVersion: true, storeReportedAt: true },
  })
  const now = clock().getTime()
  const isAway = ({ heartbeatAt }: { heartbeatAt: Date | null }) =>
    heartbeatAt === null || now - heartbeatAt.getTime() >= edgeOnlineWithinMs
  const named = edges.filter(({ id }) => id === (edgeId ?? device.homeEdgeId ?? id))
  if (edgeId !== null && named.length === 0)
    throw new AppError('invalid', { public: 'Name an edge of the device’s site that was not removed.' })
  const [first] = named.toSorted((a, b) => Number(isAway(a)) - Number(isAway(b)))
  if (!first) throw conflict(`The site of ${device.name} has no edge that could keep the disk. Add one first.`)
  const holding = await edgesHolding(db, { organizationId, versionId: boots.id }, { isLayer: false })
  const problemOf = ({ id, name, heartbeat, agentVersion, storeReportedAt }: (typeof edges)[number]): string | null => {
    if (device.homeEdgeId !== null && id !== device.homeEdgeId)
      return `Another edge keeps the writes of ${device.name}. Move them to ${name} first, or capture the disk there.`
    const kinds = heartbeatOf({ heartbeat })?.storeJobKinds
    if (heartbeat !== null && !kinds?.includes(importsEmptyDisks))
      return `The edge ${name} (release ${agentVersion ?? 'unknown'}) cannot make empty disks, which a capture begins with. Update it.`
    if (holding.some(({ edgeId: holder }) => holder === id)) return null
    if (storeReportedAt === null)
      return `The edge ${name} has reported no store that could keep the disk. Create one with bootfarm-edge vdisk init.`
    return `${name} has not reported that its store holds ${boots.text}, whose kernel the device is to boot. Name a version that it holds.`
  }
  const able = named.toSorted((a, b) => Number(isAway(a)) - Number(isAway(b))).find((edge) => problemOf(edge) === null)
  if (!able) throw conflict(problemOf(first) ?? '')
  return able.id
}

/** Returns the vDisk of the new version; a new one if the input names none. */
async function requireVdisk(context: ServiceContext, device: DeviceRow, input: Input): Promise<string> {
  const { db, actor } = context
  const { vdiskId, farmId, name } = input
  const ofOtherFarm = new AppError('invalid', { public: 'The vDisk must be of the device’s farm.' })
  if (vdiskId === null) {
    if (farmId !== device.site.farmId) throw ofOtherFarm
    return (await createVdisk(context, { farmId, name: name ?? '', note: '', storeId: null })).id
  }
  const vdisk = await db.vdisk.findUnique({
    where: ownRow(actor, vdiskId),
    select: {
      name: true,
      farmId: true,
      versions: { where: { state: 'maintenance', sealedAt: null }, take: 1, select: { number: true } },
    },
  })
  if (!vdisk) throw new AppError('not_found')
  if (vdisk.farmId !== device.site.farmId) throw ofOtherFarm
  const written = vdisk.versions[0]
  const other = await db.diskCapture.findFirst({
    where: { organizationId: actor.organizationId, vdiskId, endedAt: null },
    select: { device: { select: { name: true } } },
  })
  if (other)
    throw conflict(
      `The disk of ${other.device.name} is being captured into ${vdisk.name}. Wait for that, or cancel it.`,
    )
  if (written)
    throw conflict(
      `Version ${written.number} of ${vdisk.name} is in maintenance. Seal or discard it first, or capture into a new vDisk.`,
    )
  return vdiskId
}

function conflict(text: string): AppError {
  return new AppError('conflict', { public: text })
}
