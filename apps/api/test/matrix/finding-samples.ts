import { randomUUID } from 'node:crypto'
import type { FindingEvidence } from '../../src/finding/schema.ts'
import type { FindingSpares, Sample } from '../sample.ts'
import type { TestApi } from '../test-api.ts'
import type { TestTenant } from '../test-tenant.ts'

const spareCount = 40
const changing = (kind: keyof FindingSpares, more: Sample['input'] = {}): Sample => ({
  idName: 'findingId',
  input: (tenant, id) => ({ revision: 1, ...(typeof more === 'function' ? more(tenant, id) : more) }),
  ownId: (tenant) => tenant.findingSpares[kind].pop() ?? '',
})

export const findingSamples: Record<string, Sample> = {
  'finding.list': {},
  'finding.get': { idName: 'findingId', ownId: (tenant) => tenant.findingSpares.openIds[0] ?? '' },
  'finding.acknowledge': changing('openIds'),
  'finding.mute': changing('openIds'),
  'finding.unmute': changing('mutedIds'),
  'finding.link': changing('openIds', (tenant) => ({ auditEntryId: tenant.auditEntryId })),
}

const evidence: FindingEvidence = {
  before: [],
  after: [],
  total: { beforeUs: 40_000_000, afterUs: 50_000_000 },
  phases: [],
  failedBefore: 0,
  failedAfter: 0,
  failedPhase: null,
  failedCause: null,
  alsoChanged: [],
  smallestShift: null,
}

/** Creates findings of versions that there are not: they are open, or muted. */
export async function createFindingSpares(
  { db, clock }: TestApi,
  { organizationId, siteId, vdiskId }: TestTenant,
): Promise<FindingSpares> {
  const ids = () => Array.from({ length: spareCount }, () => randomUUID())
  const spares = { openIds: ids(), mutedIds: ids() }
  const { now } = clock
  const finding = {
    organizationId,
    siteId,
    vdiskId,
    evidence,
    vdiskName: 'Linux',
    hardware: '7 02:bf:00',
    load: 'few',
    kind: 'slower' as const,
    factor: 'version' as const,
    valueName: 'version 2',
    since: now,
    openedAt: now,
    checkedAt: now,
  }
  await db.finding.createMany({
    data: [
      ...spares.openIds.map((id) => ({ ...finding, id, value: id })),
      ...spares.mutedIds.map((id) => ({ ...finding, id, value: id, state: 'muted' as const })),
    ],
  })
  return spares
}
