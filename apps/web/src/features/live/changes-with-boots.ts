import type { RouterOutputs } from '../../lib/trpc'

/**
 * Says, for every noun of the API, whether a boot that begins or ends changes what its queries return, and which
 * queries where not all do. Live updates refresh by this list alone; a noun that the API gains is a type error until it
 * has a row.
 */
const changedByBoots: Record<keyof RouterOutputs, boolean | string[]> = {
  session: false,
  search: false,
  audit: false,
  apiKey: false,
  setup: false,
  organization: false,
  platform: false,
  signUp: false,
  member: false,
  serviceAccount: false,
  invitation: false,
  webhook: false,
  event: ['list'],
  overview: true,
  farm: ['overview'],
  finding: false,
  site: false,
  edge: true,
  collection: false,
  device: true,
  discovered: true,
  // An open boot page is pushed whole with the live updates.
  boot: ['list'],
  // A job evaluates them once a minute.
  alert: false,
  objective: false,
  bootMenu: false,
  rollout: false,
  schedule: true,
  vdisk: true,
  version: false,
  store: false,
  storeJob: false,
  // Its page follows each boot itself.
  storm: false,
  // It covers days: each boot would move nothing that a person sees.
  explore: false,
  prediction: false,
  experiment: false,
  network: false,
  upload: false,
  placement: false,
  diskCapture: true,
  retention: false,
  cleaning: false,
  space: false,
  load: false,
  trash: false,
}
const rows = new Map<unknown, boolean | string[]>(Object.entries(changedByBoots))

/** @param queryKey as tRPC makes them: `[['boot', 'list'], …]` */
export function changesWithBoots(queryKey: readonly unknown[]): boolean {
  const [path] = queryKey
  if (!Array.isArray(path)) return false
  const [noun, procedure] = path
  const row = rows.get(noun) ?? false
  return Array.isArray(row) ? row.includes(procedure) : row
}
