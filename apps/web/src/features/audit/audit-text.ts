import type { RouterOutputs } from '@bootfarm/api/router'
import { formatBytes } from '../../lib/format-quantity'
import { writeCachePlaceOf } from '../devices/write-cache-meaning'

export type AuditEntry = RouterOutputs['audit']['list']['items'][number]

/** `device.setBootMenu` in people's words: `device: set boot menu`. */
export function actionText(action: string): string {
  const [noun = '', verb = ''] = action.split('.')
  return `${words(noun)}: ${words(verb)}`
}

export function objectText({ objectKind, objectName }: AuditEntry): string {
  return objectName ? `${words(objectKind)} ${objectName}` : words(objectKind)
}

/** A page of the dashboard for the object, where there is one. */
export function objectHref({ objectKind, objectId }: AuditEntry): string | null {
  const place = pages.get(objectKind)
  return place && objectId ? `${place}/${objectId}` : null
}

export interface ChangedField {
  name: string
  before: string | null
  after: string | null
}

/** Every field of either side, in its order, as words; sizes with their units. */
export function changedFields({ before, after }: Pick<AuditEntry, 'before' | 'after'>): ChangedField[] {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  return names.map((name) => ({
    name: words(name.replace(/Bytes$/, '')),
    before: valueText(before, name),
    after: valueText(after, name),
  }))
}

/** Kinds of objects with a page. */
const pages = new Map(
  Object.entries({
    farm: '/farms',
    collection: '/collections',
    device: '/devices',
    site: '/sites',
    edge: '/edges',
    vdisk: '/vdisks',
    boot: '/boots',
    boot_menu: '/boot-menus',
    schedule: '/schedules',
    rollout: '/edges/rollouts',
    finding: '/findings',
    experiment: '/lab',
    member: '/members',
    service_account: '/service-accounts',
  }),
)

function valueText(fields: Record<string, unknown> | null, name: string): string | null {
  if (!fields || !(name in fields)) return null
  const value = fields[name]
  if (value === null) return 'nothing'
  if (name === 'writes') return writeCachePlaceOf(String(value))
  if (name.endsWith('Bytes') && typeof value === 'number') return formatBytes(value)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** `bootMenu` and `boot_menu` as `boot menu`. */
function words(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()
}
