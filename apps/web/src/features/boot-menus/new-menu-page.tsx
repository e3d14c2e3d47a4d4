'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { readableError, useTRPC } from '../../lib/trpc'
import { NewOfFarm } from '../farms/new-of-farm'
import { useMay } from '../session/use-may'
import { emptyDraft } from './menu-draft'
import { MenuEditor } from './menu-editor'

const initial = emptyDraft()

export function NewMenuPage() {
  const mayCreate = useMay('boot_menu.change')
  return (
    <NewOfFarm
      noun="boot menu"
      choice="The menu offers the vDisks of this farm."
      mayCreate={mayCreate}
      allowedRole="administrator"
    >
      {(farm) => <NewMenu key={farm.id} farmId={farm.id} />}
    </NewOfFarm>
  )
}

function NewMenu({ farmId }: { farmId: string }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const create = useMutation(
    trpc.bootMenu.create.mutationOptions({
      onSuccess: (menu) => {
        queryClient.setQueryData(trpc.bootMenu.get.queryKey({ menuId: menu.id }), menu)
        void queryClient.invalidateQueries(trpc.bootMenu.list.pathFilter())
        router.push(`/boot-menus/${menu.id}`)
      },
    }),
  )
  return (
    <MenuEditor
      farmId={farmId}
      initial={initial}
      action="Create boot menu"
      busy={create.isPending || create.isSuccess}
      failure={create.error && readableError(create.error)}
      readOnly={false}
      onSave={(fields) => create.mutate({ farmId, ...fields })}
    />
  )
}
