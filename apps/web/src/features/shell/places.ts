import type { IconName } from '../../components/icon'
import type { Permission } from '../session/use-may'

export interface Place {
  href: string
  title: string
  icon: IconName
  /** Shown with this permission in any part of the organization. */
  permission?: Permission
  /** Opens it after `g`. */
  key?: string
  /** Pages of its objects that are below another path. */
  also?: string
}

export interface PlaceGroup {
  title: string
  places: Place[]
}

/** The dashboard's places, in the order of the navigation. */
export const placeGroups: PlaceGroup[] = [
  {
    title: 'Operate',
    places: [
      { href: '/', title: 'Overview', icon: 'overview', key: 'o' },
      { href: '/devices', title: 'Devices', icon: 'device', key: 'd' },
      { href: '/discovered', title: 'Discovered', icon: 'discovered', key: 'n' },
      { href: '/boots', title: 'Boots', icon: 'boot', key: 'b', also: '/b' },
      { href: '/explore', title: 'Explore', icon: 'explore', key: 'i' },
      { href: '/alerts', title: 'Alerts', icon: 'alert', permission: 'alert.read', key: 'p' },
      { href: '/findings', title: 'Findings', icon: 'finding', permission: 'finding.read', key: 'l' },
      { href: '/storm', title: 'Storm', icon: 'storm', key: 'x' },
      { href: '/lab', title: 'Tuning lab', icon: 'lab', permission: 'experiment.read', key: 'j' },
      { href: '/schedules', title: 'Schedules', icon: 'schedule', permission: 'schedule.read', key: 'c' },
    ],
  },
  {
    title: 'Images',
    places: [
      { href: '/vdisks', title: 'vDisks', icon: 'vdisk', key: 'v' },
      { href: '/boot-menus', title: 'Boot menus', icon: 'menuList', key: 'u' },
    ],
  },
  {
    title: 'Infrastructure',
    places: [
      { href: '/farms', title: 'Farms', icon: 'farm', key: 'f' },
      { href: '/sites', title: 'Sites', icon: 'site', key: 's', also: '/collections' },
      { href: '/edges', title: 'Edges', icon: 'edge', key: 'e' },
      { href: '/network', title: 'Network', icon: 'network', key: 'q' },
    ],
  },
  {
    title: 'Access',
    places: [
      { href: '/members', title: 'Members', icon: 'members', permission: 'member.read', key: 'm' },
      { href: '/service-accounts', title: 'Service accounts', icon: 'serviceAccount', permission: 'member.read' },
      { href: '/roles', title: 'Roles', icon: 'roles', permission: 'organization.read', key: 'r' },
      { href: '/api-keys', title: 'API keys', icon: 'key', permission: 'api_key.read', key: 'k' },
    ],
  },
  {
    title: 'Organization',
    places: [
      { href: '/organization', title: 'Organization', icon: 'organization' },
      { href: '/webhooks', title: 'Webhooks', icon: 'webhook', permission: 'webhook.read', key: 'w' },
      { href: '/audit', title: 'Audit log', icon: 'audit', permission: 'audit.read', key: 'a' },
      { href: '/trash', title: 'Trash', icon: 'trash', permission: 'trash.read', key: 't' },
      { href: '/account', title: 'Account', icon: 'account' },
      { href: '/help', title: 'Help', icon: 'help', key: 'h' },
    ],
  },
]

export const places: Place[] = placeGroups.flatMap((group) => group.places)

/** The place that a path belongs to; undefined for a path of none. */
export function placeOf(pathname: string): Place | undefined {
  if (pathname === '/') return places[0]
  const isBelow = (path?: string) => path !== undefined && (pathname === path || pathname.startsWith(`${path}/`))
  return places.slice(1).find(({ href, also }) => isBelow(href) || isBelow(also))
}
