'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { ObjectLink, TextLink } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { useFailureToast, useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { readableError, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { EditedNotice, ObjectQuery, PageName } from '../shell/object-page'
import { draftOf, type MenuDetail } from './menu-draft'
import { MenuEditor } from './menu-editor'

export function MenuPage({ menuId }: { menuId: string }) {
  const query = useQuery(useTRPC().bootMenu.get.queryOptions({ menuId }))
  return (
    <ObjectQuery noun="boot menu" query={query}>
      {(menu) => <Menu key={menuId} menu={menu} />}
    </ObjectQuery>
  )
}

function Menu({ menu }: { menu: MenuDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const mayChange = useMay('boot_menu.change')
  // The form's initial content. It stays while somebody types, even if newer content is loaded.
  const [edited, setEdited] = useState(menu)
  const save = useMutation(
    trpc.bootMenu.update.mutationOptions({
      onSuccess: (saved) => {
        queryClient.setQueryData(trpc.bootMenu.get.queryKey({ menuId: menu.id }), saved)
        setEdited(saved)
        void queryClient.invalidateQueries(trpc.bootMenu.list.pathFilter())
        showToast({
          title: `${saved.name} saved.`,
          text: 'Devices show it at their next boot.',
          tone: 'ready',
        })
      },
      // After a conflict the page shows that somebody else changed the menu first.
      onError: () => queryClient.invalidateQueries(trpc.bootMenu.get.queryFilter({ menuId: menu.id })),
    }),
  )
  return (
    <Page>
      <PageName name={menu.name} />
      <PageHeader
        title={menu.name}
        summary={
          <>
            Farm <TextLink href={`/farms/${menu.farmId}`}>{menu.farmName}</TextLink>
          </>
        }
        actions={mayChange && <RemoveMenu menu={menu} />}
      />
      {menu.revision !== edited.revision && !save.isPending && (
        <EditedNotice noun="menu" onLoad={() => setEdited(menu)} />
      )}
      <MenuEditor
        // Restarts the form from the saved content.
        key={edited.revision}
        farmId={menu.farmId}
        initial={draftOf(edited)}
        action="Save"
        busy={save.isPending}
        failure={save.error && readableError(save.error)}
        readOnly={!mayChange}
        onSave={(fields) => save.mutate({ menuId: menu.id, revision: edited.revision, ...fields })}
      />
      <MenuUsers menu={menu} />
    </Page>
  )
}

function RemoveMenu({ menu }: { menu: MenuDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  const remove = useMutation(
    trpc.bootMenu.remove.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(trpc.bootMenu.list.pathFilter())
        showToast({ title: `${menu.name} deleted.` })
        router.push('/boot-menus')
      },
      onError: useFailureToast(`Could not delete ${menu.name}.`),
    }),
  )
  return (
    <ConfirmButton
      label="Delete"
      busy={remove.isPending}
      title={`Delete ${menu.name}?`}
      action="Delete boot menu"
      onConfirm={() => remove.mutate({ menuId: menu.id })}
    >
      <p>This deletes its entries. You cannot delete a menu that a collection or a device still uses.</p>
    </ConfirmButton>
  )
}

interface User {
  id: string
  href: string
  name: string
  siteName: string
  what: string
}

const columns: Column<User>[] = [
  { title: 'Name', cell: (user) => <ObjectLink href={user.href}>{user.name}</ObjectLink> },
  { title: 'Site', wide: true, cell: (user) => user.siteName },
  { title: 'Type', align: 'right', cell: (user) => user.what },
]

function MenuUsers({ menu }: { menu: MenuDetail }) {
  const users: User[] = [
    ...menu.collections.map(({ deviceCount, ...collection }) => ({
      ...collection,
      href: `/collections/${collection.id}`,
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
