import Link from 'next/link'
import type { ComponentProps } from 'react'

/**
 * A link to a page of the dashboard, which is loaded once it is followed. Next would request each page whose link is in
 * view: dozens, of which one is opened, and nothing of them could be shown before its data is there.
 */
export function PageLink(props: Omit<ComponentProps<typeof Link>, 'prefetch'>) {
  return <Link {...props} prefetch={false} />
}
