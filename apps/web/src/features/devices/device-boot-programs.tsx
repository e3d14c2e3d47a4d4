'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Panel } from '../../components/panel'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { BootProgramChoice } from '../boot-programs/boot-program-choice'
import { useMay } from '../session/use-may'

type DeviceDetail = RouterOutputs['device']['get']

/** Which programs the device's firmware is given first. */
export function DeviceBootPrograms({ device }: { device: DeviceDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const { device: own, collection, site } = device.bootProgramSets
  const choose = useMutation(
    trpc.device.setBootProgramSet.mutationOptions({
      onSuccess: () => queryClient.invalidateQueries(trpc.device.get.queryFilter({ deviceId: device.id })),
      onError: (error) =>
        showToast({ title: `Could not update ${device.name}.`, text: readableError(error), tone: 'failed' }),
    }),
  )
  return (
    <Panel title="Boot program set">
      <BootProgramChoice
        label="Set"
        siteId={device.siteId}
        value={own}
        inherited={inheritedText(collection, site)}
        inheritedSet={collection ?? site}
        mayChange={useMay('device.change')}
        onChoose={(bootProgramSet) => choose.mutate({ deviceId: device.id, bootProgramSet })}
      />
    </Panel>
  )
}

function inheritedText(collection: string | null, site: string | null): string {
  if (collection !== null) return `Inherit from collection (${collection})`
  return site === null ? 'Inherit from site (edge default)' : `Inherit from site (${site})`
}
