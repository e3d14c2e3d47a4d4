import type { RouterOutputs } from '../../lib/trpc'

type Release = NonNullable<RouterOutputs['edge']['get']['release']>

const states: Record<string, string> = {
  ordered: 'ordered; the edge has not reported yet',
  fetching: 'being fetched',
  waiting: 'fetched; takes over when no download is in progress',
  probation: 'on probation',
  healthy: 'healthy',
  failed: 'failed; the edge runs its former release',
}

const causes: Record<string, string> = {
  no_root: 'this edge trusts no release key: run `bootfarm-edge enrol --rejoin` on its server',
  no_time: 'the control plane did not sign its time',
  no_answer: 'the control plane did not answer',
  metadata_refused: 'the release metadata are not what this edge trusts',
  metadata_expired: 'the release metadata have expired: sign new ones',
  not_listed: 'the release metadata do not list it for this processor',
  target_refused: 'the program is not the one that was released',
  too_slow: 'the download is too slow',
  no_space: 'the edge has no space to keep it',
  unfit: 'the program does not start on this server, or is another version',
  ended: 'the program ended while it was on probation',
  cannot_start: 'the program could not start to serve',
  no_control_plane: 'the program did not reach the control plane',
}

/** Describes the release that an edge is to run. */
export function releaseText({ version, state, cause }: Release): string {
  if (cause === null) return `${version}, ${progressText(state)}`
  if (state === 'failed') return `${version}, failed: ${causeText(cause)}; the edge runs its former release`
  return `${version}, ${progressText(state)}: ${causeText(cause)}`
}

/** A newer edge may have further words, which are shown as they are. */
export function progressText(state: string): string {
  return states[state] ?? state.replaceAll('_', ' ')
}

export function causeText(cause: string): string {
  return causes[cause] ?? cause.replaceAll('_', ' ')
}
