import type { IconName } from '../../components/icon'
import type { Permission } from '../session/use-may'

export interface Place {
  href: string
  title: string
  icon: IconName
  /** Shown with this permission in any part of the organization. */
  permission?: Permission
}

/** The dashboard's places, in the order of the navigation. */
export const places: Place[] = [
  { href: '/', title: 'Overview', icon: 'overview' },
  { href: '/devices', title: 'Devices', icon: 'device' },
  { href: '/discovered', title: 'Discovered', icon: 'discovered' },
  { href: '/boots', title: 'Boots', icon: 'boot' },
  { href: '/schedules', title: 'Schedules', icon: 'schedule', permission: 'schedule.read' },
  { href: '/vdisks', title: 'vDisks', icon: 'vdisk' },
  { href: '/boot-menus', title: 'Boot menus', icon: 'menuList' },
  { href: '/edges', title: 'Edges', icon: 'edge' },
  { href: '/sites', title: 'Sites', icon: 'site' },
  { href: '/farms', title: 'Farms', icon: 'farm' },
  { href: '/members', title: 'Members', icon: 'members', permission: 'member.read' },
  { href: '/service-accounts', title: 'Service accounts', icon: 'serviceAccount', permission: 'member.read' },
  { href: '/roles', title: 'Roles', icon: 'roles', permission: 'organization.read' },
  { href: '/api-keys', title: 'API keys', icon: 'key', permission: 'api_key.read' },
  { href: '/webhooks', title: 'Webhooks', icon: 'webhook', permission: 'webhook.read' },
  { href: '/organization', title: 'Organization', icon: 'organization' },
  { href: '/audit', title: 'Audit log', icon: 'audit', permission: 'audit.read' },
  { href: '/trash', title: 'Trash', icon: 'trash', permission: 'trash.read' },
  { href: '/account', title: 'Account', icon: 'account' },
]

/** The place that a path belongs to; undefined for a path of none. */
export function placeOf(pathname: string): Place | undefined {
  if (pathname === '/') return places[0]
  return places.slice(1).find(({ href }) => pathname === href || pathname.startsWith(`${href}/`))
}
