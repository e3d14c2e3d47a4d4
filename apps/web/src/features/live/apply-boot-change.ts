import type { InfiniteData, QueryClient } from '@tanstack/react-query'
import type { RouterOutputs, useTRPC } from '../../lib/trpc'

type Trpc = ReturnType<typeof useTRPC>
type BootPage = RouterOutputs['boot']['list']
type BootSummary = BootPage['items'][number]
type DevicePage = RouterOutputs['device']['list']
type DeviceSummary = DevicePage['items'][number]
type Overview = RouterOutputs['overview']['get']

/** Writes a boot's new state into everything cached that shows it, so that open pages need no request. */
export function applyBootChange(queryClient: QueryClient, trpc: Trpc, boot: BootSummary): void {
  queryClient.setQueriesData<InfiniteData<BootPage>>(trpc.boot.list.infiniteQueryFilter(), (data) =>
    inPages(data, (item) => (item.id === boot.id ? boot : item)),
  )
  // The overview of a farm cannot tell whether a new boot's site is its own: it reads again soon.
  queryClient.setQueriesData<Overview>(
    trpc.overview.get.queryFilter(),
    (overview) => overview && { ...overview, recentBoots: withBootOf(overview, boot) },
  )
  if (boot.deviceId === null) return
  queryClient.setQueriesData<InfiniteData<DevicePage>>(trpc.device.list.infiniteQueryFilter(), (data) =>
    inPages(data, (device) => withLastBoot(device, boot)),
  )
  queryClient.setQueryData(
    trpc.device.get.queryKey({ deviceId: boot.deviceId }),
    (device) => device && withLastBoot(device, boot),
  )
}

function withBootOf({ farm, site, recentBoots }: Overview, boot: BootSummary): BootSummary[] {
  const isOfScope = site
    ? site.id === boot.siteId
    : farm === null || recentBoots.some(({ siteId }) => siteId === boot.siteId)
  return isOfScope ? withBoot(recentBoots, boot) : recentBoots
}

/**
 * The same list with the boot in its place: replaced if it is there, otherwise by its start, newest first; no longer
 * than before.
 */
export function withBoot(boots: BootSummary[], boot: BootSummary): BootSummary[] {
  if (boots.some(({ id }) => id === boot.id)) return boots.map((item) => (item.id === boot.id ? boot : item))
  const oldest = boots.at(-1)
  if (oldest && boot.startedAt < oldest.startedAt) return boots
  const sorted = [...boots, boot].sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1))
  return sorted.slice(0, Math.max(boots.length, 1))
}

/** An older boot of the device, reported late, does not hide its newest. */
export function withLastBoot<Device extends Pick<DeviceSummary, 'id' | 'lastBoot' | 'now' | 'waitsFor'>>(
  device: Device,
  boot: BootSummary,
): Device {
  if (device.id !== boot.deviceId) return device
  if (device.lastBoot && device.lastBoot.startedAt > boot.startedAt) return device
  const { id, startedAt, outcome, totalUs, simulated, generated, writeCache, reportedAt } = boot
  return {
    ...device,
    lastBoot: { id, startedAt, outcome, totalUs, simulated, generated, writeCache, reportedAt },
    now: boot.deviceState,
    waitsFor: boot.waitsFor ?? homeAway(device.waitsFor, boot),
  }
}

/** A device's boots report nothing about its write owner, unless that edge itself reports them. */
function homeAway(wait: DeviceSummary['waitsFor'], boot: BootSummary): DeviceSummary['waitsFor'] {
  return wait?.reason === 'edge_not_heard' && wait.edge.id !== boot.edgeId ? wait : null
}

function inPages<Page extends { items: unknown[] }>(
  pages: InfiniteData<Page> | undefined,
  change: (item: Page['items'][number]) => Page['items'][number],
): InfiniteData<Page> | undefined {
  return pages && { ...pages, pages: pages.pages.map((page) => ({ ...page, items: page.items.map(change) })) }
}
