'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { ObjectPicker } from '../../components/object-picker'
import { Panel } from '../../components/page'
import { useFailureToast } from '../../components/toast'
import { type RouterInputs, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useMay } from '../session/use-may'

type DeviceDetail = RouterOutputs['device']['get']

/** The menu that the device shows: its collection's, none, or another. */
export function DeviceMenu({ device }: { device: DeviceDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const { choice, shown, ofCollection } = device.bootMenu
  const menus = usePicker('bootMenu', { siteId: device.siteId })
  const choose = useMutation(
    trpc.device.setBootMenu.mutationOptions({
      onSuccess: () =>
        Promise.all([
          queryClient.invalidateQueries(trpc.device.get.queryFilter({ deviceId: device.id })),
          queryClient.invalidateQueries(trpc.bootMenu.pathFilter()),
        ]),
      onError: useFailureToast(`Could not update ${device.name}.`),
    }),
  )
  return (
    <Panel title="Boot menu">
      <ObjectPicker
        label="Menu"
        picker={menus}
        value={choice === 'own' ? (shown?.id ?? '') : choice}
        first={[
          { value: 'collection', label: `Inherit from collection (${ofCollection?.name ?? 'none'})` },
          { value: 'none', label: 'No menu' },
        ]}
        chosen={shown && { value: shown.id, label: shown.name }}
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
