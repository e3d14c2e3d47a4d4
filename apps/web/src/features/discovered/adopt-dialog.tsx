'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { Notice, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { Facts } from '../../components/page'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { formProblem, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { architecture } from '../boots/architecture'
import type { Discovered } from './discovered-columns'

type Adopted = RouterOutputs['discovered']['adopt']

const nameSizeMax = 63

interface AdoptDialogProps {
  /** All at one site. */
  devices: [Discovered, ...Discovered[]]
  onClose: () => void
}

/** Name and collection for one machine, or a pattern of names for several. */
export function AdoptDialog({ devices, onClose }: AdoptDialogProps) {
  const [device] = devices
  const isOne = devices.length === 1
  const collections = usePicker('collection', { siteId: device.siteId })
  const [name, setName] = useState(isOne ? device.suggestedName : 'pc-{nn}')
  const [chosenId, setChosenId] = useState('')
  const collection = collections.itemOf(chosenId) ?? collections.items[0]
  const adopt = useAdopt(onClose)
  return (
    <FormDialog
      title={isOne ? `Adopt ${device.mac}` : `Adopt ${countOf(devices.length, 'machine')}`}
      action="Adopt"
      busy={adopt.isPending}
      disabled={!collection || name.trim() === ''}
      failure={formProblem(adopt.error)}
      onClose={onClose}
      onSubmit={() =>
        collection &&
        adopt.mutate({
          siteId: device.siteId,
          discoveredIds: devices.map(({ id }) => id),
          namePattern: name,
          collectionId: collection.id,
        })
      }
    >
      {isOne && <MachineFacts device={device} />}
      <TextField
        label={isOne ? 'Name' : 'Name pattern'}
        value={name}
        onChange={setName}
        maxLength={nameSizeMax}
        hint={isOne ? undefined : <PatternHint />}
      />
      <ObjectPicker
        label={`Collection in ${device.siteName}`}
        picker={collections}
        value={collection?.id ?? ''}
        labelOf={({ name: title, vdiskName }) => `${title} (${vdiskName ? `boots ${vdiskName}` : 'no vDisk'})`}
        onChange={setChosenId}
        disabled={!collection}
      />
      {collections.isLoaded && !collection && (
        <Notice tone="silent">
          This site has no collection. Create one first: every device belongs to a collection.
        </Notice>
      )}
      {collection && collection.vdiskId === null && (
        <Notice tone="silent">This collection has no vDisk. Its devices are not served until you assign one.</Notice>
      )}
      <p className="text-ink-soft text-xs">
        {isOne
          ? 'Takes effect at the next PXE request. Restart the machine if its firmware has timed out.'
          : 'Takes effect at the next PXE request. Restart machines whose firmware has timed out.'}
      </p>
    </FormDialog>
  )
}

/** The placeholders of a name pattern. */
export function PatternHint() {
  return (
    <>
      <code>{'{n}'}</code> is the lowest unused number in the site, <code>{'{nnn}'}</code> the same with leading zeros,
      and <code>{'{mac}'}</code> the MAC address.
    </>
  )
}

function MachineFacts({ device }: { device: Discovered }) {
  const mono = (text: string | null) => text && <span className="break-all font-mono text-xs">{text}</span>
  return (
    <Facts
      facts={[
        { label: 'Firmware', value: architecture(device.clientArch) },
        { label: 'Vendor class', value: mono(device.vendorClass) },
        ...(device.userClass ? [{ label: 'User class', value: mono(device.userClass) }] : []),
        ...(device.hostName ? [{ label: 'Reported name', value: mono(device.hostName) }] : []),
        { label: 'Machine ID', value: mono(device.machineId) },
        { label: 'Seen by', value: device.edgeName },
      ]}
    />
  )
}

function useAdopt(onClose: () => void) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return useMutation(
    trpc.discovered.adopt.mutationOptions({
      onSuccess: (result) => {
        for (const filter of [
          trpc.discovered.pathFilter(),
          trpc.device.pathFilter(),
          trpc.collection.pathFilter(),
          trpc.site.pathFilter(),
        ])
          void queryClient.invalidateQueries(filter)
        showToast({ title: adoptedTitle(result), text: <AdoptedLink {...result} />, tone: 'ready' })
        onClose()
      },
    }),
  )
}

function adoptedTitle({ adopted, missingCount }: Adopted): string {
  const [first] = adopted
  if (!first) return 'Nothing was adopted. Someone else was faster.'
  const rest = missingCount > 0 ? `; ${missingCount} no longer waiting` : ''
  return adopted.length === 1
    ? `${first.name} adopted${rest}.`
    : `${countOf(adopted.length, 'machine')} adopted${rest}.`
}

function AdoptedLink({ adopted }: Adopted) {
  const [first] = adopted
  if (!first) return null
  const href = adopted.length === 1 ? `/devices/${first.deviceId}` : '/devices?last=never'
  return (
    <Link href={href} className="underline underline-offset-4">
      {adopted.length === 1 ? 'View device' : 'View devices'}
    </Link>
  )
}
