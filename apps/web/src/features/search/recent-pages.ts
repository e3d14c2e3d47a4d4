import { z } from 'zod'
import { forgetStored, readStored, writeStored } from '../../lib/stored-value.ts'

const recentPage = z.object({ href: z.string().startsWith('/'), name: z.string().max(200), place: z.string().max(40) })
export type RecentPage = z.infer<typeof recentPage>

const recentMax = 8
const prefix = 'bootfarm-recent:'

interface Viewer {
  email: string
  organizationId: string
}

const keyOf = ({ email, organizationId }: Viewer) => `${prefix}${organizationId}:${email}`

/** The pages of objects that this person opened last in this browser, the newest first. */
export function readRecentPages(viewer: Viewer): RecentPage[] {
  return readStored(keyOf(viewer), z.array(recentPage).max(recentMax)) ?? []
}

export function rememberPage(viewer: Viewer, page: RecentPage): void {
  writeStored(keyOf(viewer), withPage(readRecentPages(viewer), page))
}

/** The page comes first, once. */
export function withPage(pages: RecentPage[], page: RecentPage): RecentPage[] {
  return [page, ...pages.filter(({ href }) => href !== page.href)].slice(0, recentMax)
}

/** Names of objects do not stay in a browser that somebody else uses next. */
export function forgetRecentPages(): void {
  forgetStored(prefix)
}
