import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { openStateKeys } from '@bootfarm/proto/testing/open-box'
import { type DesiredState, desiredState, type Report, report } from '@bootfarm/proto/uplink'

const headerSize = 16

/** Reads the desired state that an edge received last, from its data directory, and opens what is sealed to it. */
export function readDesiredState(data: string): DesiredState {
  const { payload } = JSON.parse(readFileSync(path.join(data, 'state.json'), 'utf8')) as { payload: string }
  const state = desiredState.parse(JSON.parse(payload))
  if (!state.sealed || !state.siteEdges) return state
  const secret = Buffer.from(readFileSync(path.join(data, 'seal.key'), 'utf8').trim(), 'hex')
  const { siteKey, ticketKeys } = openStateKeys(state.sealed, { edgeId: state.edgeId, secret })
  return { ...state, siteEdges: { ...state.siteEdges, key: siteKey, ticketKeys } }
}

/** Reads everything that an edge's log holds for a control plane that is away, as the API would read it. */
export function readReportLog(data: string): Report[] {
  const folder = path.join(data, 'reports')
  // Lost reports are noted beside the segments.
  return readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .sort()
    .flatMap((name) => readSegment(readFileSync(path.join(folder, name))))
}

/** Reads frames of size, CRC and number (little-endian) and payload; the last one may be incomplete. */
function readSegment(bytes: Buffer): Report[] {
  const reports: Report[] = []
  for (let at = 0; at + headerSize <= bytes.length; ) {
    const end = at + headerSize + bytes.readUInt32LE(at)
    if (end > bytes.length) break
    const payload = JSON.parse(bytes.toString('utf8', at + headerSize, end)) as object
    reports.push(report.parse({ seq: Number(bytes.readBigUInt64LE(at + 8)), ...payload }))
    at = end
  }
  return reports
}

/** Returns the boots that remain without the withdrawn ones, each as reported last. */
export function bootsOf(reports: Report[]) {
  const withdrawn = new Set(reports.flatMap((entry) => (entry.type === 'withdrawn' ? [entry.bootId] : [])))
  const boots = new Map(reports.flatMap((entry) => (entry.type === 'boot' ? [[entry.boot.id, entry.boot]] : [])))
  return [...boots.values()].filter(({ id }) => !withdrawn.has(id))
}
