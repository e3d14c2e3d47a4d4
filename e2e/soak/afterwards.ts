import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { createDb } from '@bootfarm/db'
import { desiredState } from '@bootfarm/proto/uplink'
import type { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import type { Editor } from './editor.ts'

type Db = ReturnType<typeof createDb>

/**
 * Returns sentences for changes that the API acknowledged but that are missing, or that the audit log has too few or
 * too many of.
 */
export async function lostChanges(db: Db, { edge, ledger }: Editor): Promise<string[]> {
  const { organizationId } = edge.tenant
  const devices = await db.device.findMany({
    where: { organizationId },
    select: { id: true, mac: true, name: true },
  })
  const names = new Map(devices.flatMap(({ id, mac, name }) => [[id, name] as const, [mac, name] as const]))
  const lost = ledger.lost((id) => names.get(id) ?? null)
  const entries = await db.auditEntry.count({
    where: { organizationId, action: { in: ['device.update', 'device.create'] } },
  })
  const most = ledger.acknowledged + ledger.unknown
  if (entries < ledger.acknowledged || entries > most)
    lost.push(`${entries} audit entries of ${ledger.acknowledged} to ${most} changes`)
  return lost
}

/** Resolves when the edge's stored desired state names its devices as the database does. */
export async function stateDiffers(db: Db, edge: ControlledEdge, ending: AbortSignal): Promise<void> {
  const { organizationId } = edge.tenant
  const rows = await db.device.findMany({ where: { organizationId }, select: { id: true, name: true } })
  const wanted = lines(rows)
  while (lines(kept(edge)) !== wanted) await delay(100, undefined, { signal: ending })
}

function kept(edge: ControlledEdge): { id: string; name: string }[] {
  const { payload } = JSON.parse(readFileSync(path.join(edge.data, 'state.json'), 'utf8')) as {
    payload: string
  }
  return desiredState.parse(JSON.parse(payload)).devices
}

function lines(devices: { id: string; name: string }[]): string {
  return devices
    .map(({ id, name }) => `${id} ${name}`)
    .sort()
    .join('\n')
}
