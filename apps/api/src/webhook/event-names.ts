import type { AuthenticatedEdge, DbOrTransaction } from '../context/service-context.ts'

/** What an event of an edge's boots calls site, edge and devices by. */
export async function eventNamesOf(
  db: DbOrTransaction,
  { organizationId, siteId, edgeId }: Pick<AuthenticatedEdge, 'organizationId' | 'siteId' | 'edgeId'>,
  boots: { deviceId: string | null }[],
) {
  const select = { id: true, name: true } as const
  const deviceIds = boots.flatMap(({ deviceId }) => deviceId ?? [])
  const devices = await db.device.findMany({ where: { organizationId, id: { in: deviceIds } }, select })
  const site = await db.site.findFirst({ where: { organizationId, id: siteId }, select })
  const edge = await db.edge.findFirst({ where: { organizationId, id: edgeId }, select })
  return {
    devices: new Map(devices.map(({ id, name }) => [id, name])),
    site: site?.name ?? null,
    edge: edge?.name ?? null,
  }
}
