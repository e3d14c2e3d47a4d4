'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { Page, PageHeader } from '../../components/page-header'
import { LoadingState, Skeleton } from '../../components/states'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { draftOf, type MenuDetail } from './menu-draft'
import { MenuEditor } from './menu-editor'
import { MenuUsers } from './menu-users'

export function MenuPage({ menuId }: { menuId: string }) {
  const query = useQuery(useTRPC().bootMenu.get.queryOptions({ menuId }))
  if (query.data) return <Menu key={menuId} menu={query.data} />
  if (query.isPending) {
    return (
      <LoadingState label="Loading the boot menu">
        <Page>
          <Skeleton className="h-7 w-56" />
          <Skeleton className="h-80 w-full rounded-lg" />
        </Page>
      </LoadingState>
    )
  }
  return <QueryError noun="boot menu" error={query.error} onRetry={() => query.refetch()} />
}

function Menu({ menu }: { menu: MenuDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const mayChange = useMay('boot_menu.change')
  // What the form began with: it stays while somebody types, whatever is read meanwhile.
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
      // Where somebody else was first, the page says so.
      onError: () => queryClient.invalidateQueries(trpc.bootMenu.get.queryFilter({ menuId: menu.id })),
    }),
  )
  return (
    <Page>
      <PageName name={menu.name} />
      <PageHeader
        title={menu.name}
        summary={`Farm ${menu.farmName}`}
        actions={mayChange && <RemoveMenu menu={menu} />}
      />
      {menu.revision !== edited.revision && !save.isPending && (
        <div className="flex flex-wrap items-center justify-between gap-3 rounded-lg bg-silent-soft px-4 py-3 text-silent text-sm">
          <p>Someone else edited this menu. Load the latest version before you save.</p>
          <Button onClick={() => setEdited(menu)}>Load latest version</Button>
        </div>
      )}
      <MenuEditor
        // Begun anew from what is saved.
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
  const [asking, setAsking] = useState(false)
  const remove = useMutation(
    trpc.bootMenu.remove.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(trpc.bootMenu.list.pathFilter())
        showToast({ title: `${menu.name} deleted.` })
        router.push('/boot-menus')
      },
      onError: (error) =>
        showToast({ title: `Could not delete ${menu.name}.`, text: readableError(error), tone: 'failed' }),
    }),
  )
  return (
    <>
      <Button busy={remove.isPending} onClick={() => setAsking(true)}>
        Delete
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Delete ${menu.name}?`}
        action="Delete boot menu"
        onConfirm={() => remove.mutate({ menuId: menu.id })}
      >
        <p>This deletes its entries. You cannot delete a menu that a collection or a device still uses.</p>
      </ConfirmDialog>
    </>
  )
}
