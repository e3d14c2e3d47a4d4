import { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { timeSpanOf } from '../context/time-span.ts'
import type { PathFault } from './find-faults.ts'
import { bootsMin } from './path-figures.ts'
import { type MeasuredBoot, measuredMax, type ReadContext, readMeasuredBoots } from './read-measured-boots.ts'
import {
  faultBootsMax,
  faultDevicesMax,
  type NetworkReportView,
  type networkReportInput,
  pathsMax,
  spanDaysDefault,
  spanDaysMax,
} from './schema.ts'
import { type NetworkPath, summarizePaths } from './summarize-paths.ts'

/** Returns what boots measured of the network, by segment and card, the worst first. */
export async function getNetworkReport(
  context: ReadContext,
  { siteId, since, until }: z.output<typeof networkReportInput>,
): Promise<NetworkReportView> {
  const limits = { now: context.clock(), daysDefault: spanDaysDefault, daysMax: spanDaysMax }
  const span = timeSpanOf({ since, until }, limits)
  const read = await readMeasuredBoots(context, { siteId, span })
  const boots = read.slice(0, measuredMax)
  const paths = summarizePaths(boots)
  const shown = paths.slice(0, pathsMax)
  const names = await readNames(context, shown)
  return {
    since: span.since.toISOString(),
    until: span.until.toISOString(),
    bootCount: boots.length,
    isCut: read.length > boots.length,
    bootsMin,
    otherPaths: paths.length - shown.length,
    paths: shown.map((path) => pathViewOf(path, names)),
  }
}

type Names = ReadonlyMap<string, string>

function pathViewOf(path: NetworkPath, names: Names): NetworkReportView['paths'][number] {
  const { siteId, segment, card, boots, deviceCount, toDevice, fromDevice, reordering } = path
  const { rtt, tftp, links, faults } = path
  return {
    siteId,
    siteName: names.get(siteId) ?? null,
    segment,
    card,
    bootCount: boots.length,
    deviceCount,
    toDevice,
    fromDevice,
    reordering,
    tftp,
    rtt: rtt && { p50Us: rtt.p50Us, p95Us: rtt.p95Us },
    links,
    faults: faults.map((fault) => faultViewOf(fault, names)),
  }
}

function faultViewOf({ kind, severity, text, check, boots }: PathFault, names: Names) {
  const devices = devicesOf(boots)
  return {
    kind,
    severity,
    text,
    check,
    bootCount: boots.length,
    bootIds: boots.slice(0, faultBootsMax).map(({ id }) => id),
    deviceCount: devices.length,
    devices: devices.slice(0, faultDevicesMax).map(({ deviceId, mac }) => ({
      id: deviceId,
      mac,
      name: (deviceId && names.get(deviceId)) ?? null,
    })),
  }
}

function devicesOf(boots: MeasuredBoot[]): MeasuredBoot[] {
  return [...new Map(boots.map((boot) => [boot.mac, boot])).values()]
}

/** Names of sites and devices by id: boots outlive what they name. */
async function readNames({ db, actor }: ReadContext, paths: NetworkPath[]): Promise<Names> {
  const siteIds = [...new Set(paths.map(({ siteId }) => siteId))]
  const deviceIds = paths
    .flatMap(({ faults }) => faults)
    .flatMap(({ boots }) => devicesOf(boots).slice(0, faultDevicesMax))
    .flatMap(({ deviceId }) => deviceId ?? [])
  const own = Prisma.sql`organization_id = ${actor.organizationId}::uuid`
  const rows = await db.$queryRaw<{ id: string; name: string }[]>`
    select id::text, name from site where ${own} and id = any(${siteIds}::uuid[])
    union all select id::text, name from device where ${own} and id = any(${[...new Set(deviceIds)]}::uuid[])`
  return new Map(rows.map(({ id, name }) => [id, name]))
}
