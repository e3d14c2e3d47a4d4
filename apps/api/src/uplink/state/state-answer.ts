import { makeStateEdits, stateDigest } from '@bootfarm/proto/state-delta'
import type { StateDeltaEnvelope, StateEnvelope } from '@bootfarm/proto/uplink'
import type { SignedState } from './current-state.ts'

/**
 * Returns the state as an edge gets it: as a change of the payload with the digest `base`, which the edge says that it
 * has, if this state has just replaced that one and the change is small; otherwise whole.
 */
export function stateAnswer(
  { envelope, replaced }: SignedState,
  base: string | undefined,
): StateEnvelope | StateDeltaEnvelope {
  if (base === undefined || replaced === null || stateDigest(replaced) !== base) return envelope
  const { payload, ...signed } = envelope
  const edits = makeStateEdits(replaced, payload)
  return edits === null ? envelope : { ...signed, delta: { base, edits } }
}
