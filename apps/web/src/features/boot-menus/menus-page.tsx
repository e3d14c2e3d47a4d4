'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { LinkButton, ObjectLink } from '../../components/button'
import { Unknown } from '../../components/page'
import { ListPage } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { countOf } from '../../lib/format-quantity'
import { type Listed, nextPage, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type MenuSummary = Listed<'bootMenu'>

const columns: Column<MenuSummary>[] = [
  {
    title: 'Name',
    cell: (menu) => <ObjectLink href={`/boot-menus/${menu.id}`}>{menu.name}</ObjectLink>,
  },
  { title: 'Default', wide: true, cell: (menu) => menu.defaultTitle },
  { title: 'Entries', align: 'right', from: 'sm', cell: (menu) => menu.entryCount },
  { title: 'Timeout', align: 'right', from: 'sm', cell: (menu) => `${menu.timeoutMs / 1000} s` },
  {
    title: 'Used by',
    align: 'right',
    cell: ({ collectionCount, deviceCount }) => usersText(collectionCount, deviceCount) || <Unknown label="nobody" />,
  },
]

function usersText(collections: number, devices: number): string {
  return [collections > 0 ? countOf(collections, 'collection') : '', devices > 0 ? countOf(devices, 'device') : '']
    .filter(Boolean)
    .join(', ')
}

export function MenusPage() {
  const trpc = useTRPC()
  const mayCreate = useMay('boot_menu.change')
  const query = useInfiniteQuery(trpc.bootMenu.list.infiniteQueryOptions({}, nextPage))
  return (
    <ListPage
      title="Boot menus"
      summary="Menus shown on a device before it boots."
      actions={
        mayCreate && (
          <LinkButton href="/boot-menus/new" look="primary">
            New menu
          </LinkButton>
        )
      }
      query={query}
      columns={columns}
      empty={{
        title: 'No boot menus yet.',
        text: 'Without a menu, devices boot their collection’s vDisk at once. With a menu, people choose at the machine what to boot.',
      }}
    />
  )
}
