'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { SelectField } from '../../components/field'
import { Panel } from '../../components/panel'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { type RouterInputs, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type DeviceDetail = RouterOutputs['device']['get']

/** As many as the API gives at once. */
const menusMax = 100

/** Which menu the device shows: its collection's, none, or one of its own. */
export function DeviceMenu({ device }: { device: DeviceDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const { choice, shown, ofCollection } = device.bootMenu
  const { data } = useQuery(trpc.bootMenu.list.queryOptions({ siteId: device.siteId, limit: menusMax }))
  const menus = new Map((data?.items ?? []).map(({ id, name }) => [id, name]))
  if (choice === 'own' && shown) menus.set(shown.id, shown.name)
  const choose = useMutation(
    trpc.device.setBootMenu.mutationOptions({
      onSuccess: () =>
        Promise.all([
          queryClient.invalidateQueries(trpc.device.get.queryFilter({ deviceId: device.id })),
          queryClient.invalidateQueries(trpc.bootMenu.pathFilter()),
        ]),
      onError: (error) =>
        showToast({ title: `Could not update ${device.name}.`, text: readableError(error), tone: 'failed' }),
    }),
  )
  return (
    <Panel title="Boot menu">
      <SelectField
        label="Menu"
        value={choice === 'own' ? (shown?.id ?? '') : choice}
        options={[
          { value: 'collection', label: `Inherit from collection (${ofCollection?.name ?? 'none'})` },
          { value: 'none', label: 'No menu' },
          ...[...menus].map(([id, name]) => ({ value: id, label: name })),
        ]}
        disabled={!useMay('device.change')}
        onChange={(value) => choose.mutate({ deviceId: device.id, menu: menuOf(value) })}
        hint={
          shown && (
            <Link href={`/boot-menus/${shown.id}`} className="rounded underline underline-offset-4">
              Preview of {shown.name}
            </Link>
          )
        }
      />
    </Panel>
  )
}

function menuOf(value: string): RouterInputs['device']['setBootMenu']['menu'] {
  return value === 'collection' || value === 'none' ? { choice: value } : { choice: 'own', menuId: value }
}
