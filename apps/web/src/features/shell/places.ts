import type { IconName } from '../../components/icon'

export interface Place {
  href: string
  title: string
  icon: IconName
}

/** The dashboard's places, in the order of the navigation. */
export const places: Place[] = [
  { href: '/', title: 'Overview', icon: 'overview' },
  { href: '/devices', title: 'Devices', icon: 'device' },
  { href: '/discovered', title: 'Discovered', icon: 'discovered' },
  { href: '/boots', title: 'Boots', icon: 'boot' },
  { href: '/vdisks', title: 'vDisks', icon: 'vdisk' },
  { href: '/boot-menus', title: 'Boot menus', icon: 'menuList' },
  { href: '/edges', title: 'Edges', icon: 'edge' },
  { href: '/sites', title: 'Sites', icon: 'site' },
]

/** The place that a path belongs to; undefined for a path of none. */
export function placeOf(pathname: string): Place | undefined {
  if (pathname === '/') return places[0]
  return places.slice(1).find(({ href }) => pathname === href || pathname.startsWith(`${href}/`))
}
