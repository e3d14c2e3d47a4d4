'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { usePathname, useRouter, useSearchParams } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { SelectFilter } from '../../components/filter'
import { type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'

type View = RouterOutputs['explore']['views']['views'][number]

/** The views that this person has saved: one opens by its choice, and the open one is saved or deleted. */
export function SavedViews() {
  const router = useRouter()
  const path = useOpenPath()
  const { data } = useQuery(useTRPC().explore.views.queryOptions())
  const [isNaming, setIsNaming] = useState(false)
  const change = useChangeViews()
  const views = data?.views ?? []
  const open = views.find((view) => view.path === path)
  return (
    <>
      {views.length > 0 && (
        <SelectFilter
          label="Saved view"
          first="Saved views"
          value={open?.name}
          options={views.map(({ name }) => ({ value: name, label: name }))}
          onChange={(name) => router.push(views.find((view) => view.name === name)?.path ?? '/explore')}
        />
      )}
      {open ? (
        <Button busy={change.isPending} onClick={() => change.mutate((known) => without(known, open.name))}>
          Delete view
        </Button>
      ) : (
        <Button onClick={() => setIsNaming(true)}>Save view</Button>
      )}
      {isNaming && <NameDialog path={path} onClose={() => setIsNaming(false)} />}
    </>
  )
}

/** The address of the page without its origin. */
function useOpenPath(): string {
  const [pathname, query] = [usePathname(), useSearchParams().toString()]
  return query === '' ? pathname : `${pathname}?${query}`
}

function without(views: View[], name: string): View[] {
  return views.filter((view) => view.name !== name)
}

/** Reads the newest list first: another window may have changed it. */
function useChangeViews(onDone?: () => void) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const set = useMutation(trpc.explore.setViews.mutationOptions())
  return useMutation({
    mutationFn: async (change: (views: View[]) => View[]) => {
      const { views } = await queryClient.fetchQuery(trpc.explore.views.queryOptions(undefined, { staleTime: 0 }))
      return set.mutateAsync({ views: change(views) })
    },
    onSuccess: (saved) => {
      queryClient.setQueryData(trpc.explore.views.queryKey(), saved)
      onDone?.()
    },
  })
}

function NameDialog({ path, onClose }: { path: string; onClose: () => void }) {
  const [name, setName] = useState('')
  const change = useChangeViews(onClose)
  const trimmed = name.trim()
  return (
    <FormDialog
      title="Save this view"
      action="Save view"
      disabled={trimmed === ''}
      busy={change.isPending}
      failure={change.error ? readableError(change.error) : null}
      onSubmit={() => change.mutate((views) => [...without(views, trimmed), { name: trimmed, path }])}
      onClose={onClose}
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        hint="Only you see it. A view of the same name is replaced. Periods such as “last 7 days” move with time."
      />
    </FormDialog>
  )
}
