'use client'

import type { BootCause } from '@bootfarm/proto/boot-phases'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button, LinkButton } from '../../components/button'
import { useTRPC } from '../../lib/trpc'
import { EditDeviceDialog } from '../devices/device-actions'
import { placeOfDevice, useMay } from '../session/use-may'
import { RevertDialog } from '../vdisks/step-dialogs'
import type { BootDetail } from './boot-types'
import { type RemedyAction, remedyActions, rollBackVersion } from './remedy-actions'

type ButtonProps = { boot: BootDetail }

/** What can be done about the failed boot at once, as far as the viewer may; waking the device is above. */
export function RemedyButtons({ boot, cause }: ButtonProps & { cause: BootCause }) {
  const actions = remedyActions[cause]
  if (actions.length === 0) return null
  return (
    <div className="mt-2.5 flex flex-wrap gap-2 empty:hidden">
      {actions.map((action) => {
        const ActionButton = buttons[action]
        return <ActionButton key={action} boot={boot} />
      })}
    </div>
  )
}

const buttons: Record<RemedyAction, (props: ButtonProps) => ReactNode> = {
  roll_back: RollBack,
  assign_vdisk: AssignVdisk,
  open_vdisk: ({ boot: { vdisk } }) => vdisk && <LinkButton href={`/vdisks/${vdisk.id}`}>Open the vDisk</LinkButton>,
  open_device: ({ boot: { deviceId } }) =>
    deviceId && <LinkButton href={`/devices/${deviceId}`}>Open the device</LinkButton>,
  open_edge: ({ boot: { edgeId } }) => <LinkButton href={`/edges/${edgeId}`}>Open the edge</LinkButton>,
}

/** Only for the newest boot of the device, of a version that its vDisk still gives out. */
function RollBack({ boot: { vdisk, isLastBoot } }: ButtonProps) {
  const trpc = useTRPC()
  const [isOpen, setOpen] = useState(false)
  const mayAnywhere = useMay('vdisk.change')
  const { data } = useQuery(
    trpc.vdisk.get.queryOptions({ vdiskId: vdisk?.id ?? '' }, { enabled: vdisk !== null && isLastBoot && mayAnywhere }),
  )
  const may = useMay('vdisk.change', data && { farmId: data.farmId })
  const version = data && vdisk && rollBackVersion(data.versions, vdisk.versionNumber)
  if (!version || !may) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Roll back to version {version.number}</Button>
      {isOpen && <RevertDialog vdisk={data} version={version} onClose={() => setOpen(false)} />}
    </>
  )
}

function AssignVdisk({ boot: { deviceId, isLastBoot } }: ButtonProps) {
  const trpc = useTRPC()
  const [isOpen, setOpen] = useState(false)
  const { data: device } = useQuery(
    trpc.device.get.queryOptions({ deviceId: deviceId ?? '' }, { enabled: deviceId !== null && isLastBoot }),
  )
  const may = useMay('device.change', device && placeOfDevice(device))
  if (!device || !may) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Assign a vDisk</Button>
      {isOpen && <EditDeviceDialog device={device} onClose={() => setOpen(false)} />}
    </>
  )
}
