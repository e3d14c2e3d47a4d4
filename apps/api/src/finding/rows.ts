import type { Prisma } from '@bootfarm/db'
import { sentenceOf } from './finding-text.ts'
import { type FindingDetail, type FindingView, findingEvidence } from './schema.ts'

export const findingSelect = {
  id: true,
  siteId: true,
  vdiskId: true,
  vdiskName: true,
  hardware: true,
  load: true,
  kind: true,
  factor: true,
  value: true,
  valueName: true,
  state: true,
  since: true,
  openedAt: true,
  closedAt: true,
  stateByName: true,
  stateAt: true,
  auditEntryId: true,
  evidence: true,
  revision: true,
  site: { select: { id: true, name: true, farmId: true } },
} satisfies Prisma.FindingSelect
export type FindingRow = Prisma.FindingGetPayload<{ select: typeof findingSelect }>

export function findingOf(row: FindingRow): FindingView {
  const { evidence: _evidence, ...finding } = findingDetailOf(row)
  return finding
}

/** Only `openFinding` writes evidence. */
export function findingDetailOf(row: FindingRow): FindingDetail {
  const { siteId: _site, site, ...fields } = row
  const evidence = findingEvidence.parse(row.evidence)
  return {
    ...fields,
    sentence: sentenceOf(row.kind, row.valueName, evidence),
    site: { id: site.id, name: site.name },
    since: row.since.toISOString(),
    openedAt: row.openedAt.toISOString(),
    closedAt: row.closedAt?.toISOString() ?? null,
    stateAt: row.stateAt?.toISOString() ?? null,
    evidence,
  }
}
