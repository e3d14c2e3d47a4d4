'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Button } from '../../components/button'
import { Icon } from '../../components/icon'
import { PageLink } from '../../components/page-link'
import { useFailureToast, useToast } from '../../components/toast'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { placeOfDevice, useMay } from '../session/use-may'

type DeviceDetail = RouterOutputs['device']['get']

/** Requested, and not observed yet. */
interface Wish {
  /** The device's last boot at the time of the request. */
  bootIdBefore: string | null
  expiresAt: string
}

/** For those who may: wakes the device, then waits for the boot that follows and offers the way to it. */
export function BootAgain({ deviceId }: { deviceId: string }) {
  const { data: device } = useQuery(useTRPC().device.get.queryOptions({ deviceId }))
  const may = useMay('device.power', device && placeOfDevice(device))
  return may && <WakeButton deviceId={deviceId} device={device} />
}

function WakeButton({ deviceId, device }: { deviceId: string; device: DeviceDetail | undefined }) {
  const trpc = useTRPC()
  const showToast = useToast()
  const [wish, setWish] = useState<Wish | null>(null)
  const bootId = device?.lastBoot?.id ?? null
  const name = device?.name ?? 'the device'

  const wake = useMutation(
    trpc.device.bootAgain.mutationOptions({
      // The time of the click: a device may boot before the answer arrives.
      onMutate: () => bootId,
      onSuccess: ({ expiresAt }, _asked, bootIdBefore) => setWish({ bootIdBefore, expiresAt }),
      onError: useFailureToast(`Could not wake ${name}.`),
    }),
  )

  useEffect(() => {
    if (wish === null) return
    if (bootId !== null && bootId !== wish.bootIdBefore) {
      setWish(null)
      showToast({
        title: `${name} is booting.`,
        text: (
          <PageLink href={`/boots/${bootId}`} className="underline underline-offset-4">
            View this boot
          </PageLink>
        ),
        tone: 'live',
      })
      return
    }
    const timer = setTimeout(
      () => {
        setWish(null)
        showToast({
          title: `${name} did not boot.`,
          text: 'The device does not answer if it is already booting, has no mains power, or does not support Wake-on-LAN.',
          tone: 'silent',
        })
      },
      Math.max(0, Date.parse(wish.expiresAt) - Date.now()),
    )
    return () => clearTimeout(timer)
  }, [wish, bootId, name, showToast])

  const waiting = wish !== null
  return (
    <Button
      look="primary"
      busy={wake.isPending || waiting}
      onClick={() => wake.mutate({ deviceId })}
      title="Sends a Wake-on-LAN packet from an edge of the site."
    >
      <Icon name="boot" size={14} />
      {waiting ? 'Waiting for the first packet' : 'Wake (WoL)'}
    </Button>
  )
}
