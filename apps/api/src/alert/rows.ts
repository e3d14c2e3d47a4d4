import type { Prisma } from '@bootfarm/db'
import { bootsPath, titleOf } from './alert-text.ts'
import { type AlertView, alertCauses, failureFigures, objectiveFigures } from './schema.ts'

export const alertSelect = {
  id: true,
  kind: true,
  siteId: true,
  collectionId: true,
  cause: true,
  figures: true,
  bootCount: true,
  firstAt: true,
  lastAt: true,
  openedAt: true,
  closedAt: true,
  acknowledgedAt: true,
  acknowledgedByName: true,
  site: { select: { name: true, farmId: true } },
  collection: { select: { name: true } },
} satisfies Prisma.AlertSelect
type AlertRow = Prisma.AlertGetPayload<{ select: typeof alertSelect }>

/** A collection in the trash has no name. */
export function alertViewOf(row: AlertRow): AlertView {
  const { id, kind, siteId, collectionId, bootCount, site, collection } = row
  const objective = kind === 'objective' ? objectiveFigures.parse(row.figures) : null
  const names = { siteName: site.name, collectionName: collection?.name ?? null }
  const cause = alertCauses.find((name) => name === row.cause) ?? null
  return {
    id,
    kind,
    title: titleOf({ ...names, cause, bootCount, objective }),
    farmId: site.farmId,
    siteId,
    siteName: names.siteName,
    collectionId,
    collectionName: names.collectionName,
    cause,
    bootCount,
    firstAt: row.firstAt.toISOString(),
    lastAt: row.lastAt.toISOString(),
    openedAt: row.openedAt.toISOString(),
    closedAt: row.closedAt?.toISOString() ?? null,
    acknowledgedAt: row.acknowledgedAt?.toISOString() ?? null,
    acknowledgedByName: row.acknowledgedByName,
    objective,
    failures: kind === 'failures' ? failureFigures.parse(row.figures) : null,
    boots: bootsPath(row),
  }
}
