import Link from 'next/link'
import { Panel } from '../../components/panel'
import { EmptyState } from '../../components/states'
import { type Column, Table } from '../../components/table'
import { countOf } from '../../lib/format-quantity'
import type { MenuDetail } from './menu-draft'

interface User {
  id: string
  href: string
  name: string
  siteName: string
  what: string
}

const columns: Column<User>[] = [
  {
    title: 'Name',
    cell: (user) => (
      <Link
        prefetch={false}
        href={user.href}
        className="rounded font-medium text-ink underline-offset-4 hover:underline"
      >
        {user.name}
      </Link>
    ),
  },
  { title: 'Site', wide: true, cell: (user) => user.siteName },
  { title: 'Type', align: 'right', cell: (user) => user.what },
]

export function MenuUsers({ menu }: { menu: MenuDetail }) {
  const users: User[] = [
    ...menu.collections.map(({ deviceCount, ...collection }) => ({
      ...collection,
      href: `/devices?collection=${collection.id}`,
      what: `collection, ${countOf(deviceCount, 'device')}`,
    })),
    ...menu.devices.map((device) => ({ ...device, href: `/devices/${device.id}`, what: 'device' })),
  ]
  const hidden = menu.collectionCount + menu.deviceCount - users.length
  return (
    <Panel title="Used by" aside={hidden > 0 && `and ${hidden} more`} flush>
      {users.length === 0 ? (
        <EmptyState
          title="Not used yet."
          text="Assign this menu to a collection on its site’s page, or to a device on the device’s page."
        />
      ) : (
        <Table
          label="Collections and devices that use this menu"
          columns={columns}
          rows={users}
          rowKey={({ id }) => id}
        />
      )}
    </Panel>
  )
}
