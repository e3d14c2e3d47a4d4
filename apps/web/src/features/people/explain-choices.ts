import { z } from 'zod'
import type { RouterInputs, useTRPCClient } from '../../lib/trpc'

type Client = ReturnType<typeof useTRPCClient>

/** As many as a list offers at once; the rest is searched for. */
const optionsMax = 100

export interface Option {
  id: string
  name: string
}
interface OptionPage {
  items: Option[]
  nextCursor: string | null
}

interface PlaceKind {
  value: Exclude<keyof RouterInputs['member']['explain'], 'userId'>
  label: string
  isSearchable?: true
  list: (client: Client, search: { search?: string; limit: number }) => Promise<OptionPage>
}

/** What an explanation can be asked for beside the whole organization, by the name of its id. */
export const placeKinds: PlaceKind[] = [
  { value: 'farmId', label: 'Farm', list: (client, { limit }) => client.farm.list.query({ limit }) },
  {
    value: 'siteId',
    label: 'Site',
    isSearchable: true,
    list: (client, input) => client.site.list.query(input),
  },
  {
    value: 'collectionId',
    label: 'Collection',
    isSearchable: true,
    list: (client, input) => client.collection.list.query(input),
  },
  {
    value: 'deviceId',
    label: 'Device',
    isSearchable: true,
    list: (client, input) => client.device.list.query(input),
  },
  { value: 'edgeId', label: 'Edge', list: (client, { limit }) => client.edge.list.query({ limit }) },
  { value: 'vdiskId', label: 'vDisk', list: (client, { limit }) => client.vdisk.list.query({ limit }) },
  { value: 'storeId', label: 'Store', list: (client, { limit }) => client.store.list.query({ limit }) },
  { value: 'menuId', label: 'Boot menu', list: (client, { limit }) => client.bootMenu.list.query({ limit }) },
  {
    value: 'scheduleId',
    label: 'Schedule',
    list: (client, { limit }) => client.schedule.list.query({ limit }),
  },
]

/** The page's filters in the URL. */
export const explainFilterShape = {
  member: z.uuid().optional(),
  kind: z.string().max(16).optional(),
  object: z.uuid().optional(),
}

export function optionsOf(
  client: Client,
  kind: PlaceKind | undefined,
  search: string,
): Promise<OptionPage> | OptionPage {
  if (!kind) return { items: [], nextCursor: null }
  return kind.list(client, { limit: optionsMax, ...(search && kind.isSearchable ? { search } : {}) })
}

export async function memberOptions(client: Client, search: string): Promise<OptionPage> {
  const { items, nextCursor } = await client.member.list.query({
    limit: optionsMax,
    ...(search ? { search } : {}),
  })
  return {
    items: items.map(({ userId, name, email }) => ({ id: userId, name: `${name}, ${email}` })),
    nextCursor,
  }
}
