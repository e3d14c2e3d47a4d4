'use client'

import { usePathname, useSearchParams } from 'next/navigation'

/** Whether the page is shown on a wall: without navigation, by `wall=on` in the address of a page that knows it. */
export function useIsWall(): boolean {
  const isOn = useSearchParams().get('wall') === 'on'
  return usePathname() === '/storm' && isOn
}
