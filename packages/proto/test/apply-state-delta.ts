import { stateDigest } from '../src/state-delta.ts'
import type { StateDelta } from '../src/uplink.ts'

/** Returns the payload that a delta makes of another one, as an edge does; null: it is a change of something else. */
export function applyStateDelta(base: string, { base: digest, edits }: StateDelta): string | null {
  if (stateDigest(base) !== digest) return null
  const former = Buffer.from(base)
  const parts: Buffer[] = []
  let end = 0
  for (const { at, remove, insert } of edits) {
    if (at < end || at + remove > former.length) return null
    parts.push(former.subarray(end, at), Buffer.from(insert))
    end = at + remove
  }
  return Buffer.concat([...parts, former.subarray(end)]).toString()
}
