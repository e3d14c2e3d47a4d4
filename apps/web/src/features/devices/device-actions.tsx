'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { Panel } from '../../components/panel'
import { Tag } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'
import { DeleteButton } from '../objects/delete-button'
import { useMay } from '../session/use-may'
import { EditDeviceDialog, NewDeviceDialog } from './device-dialog'

type DeviceDetail = RouterOutputs['device']['get']

export function NewDevice() {
  const [open, setOpen] = useState(false)
  if (!useMay('device.change')) return null
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        New device
      </Button>
      {open && <NewDeviceDialog onClose={() => setOpen(false)} />}
    </>
  )
}

export function DeviceActions({ device }: { device: DeviceDetail }) {
  const [open, setOpen] = useState(false)
  const { farmId, siteId, collectionId } = device
  if (!useMay('device.change', { farmId, siteId, collectionId })) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>Edit</Button>
      <DeleteButton target={{ kind: 'device', id: device.id }} name={device.name} leaveTo="/devices">
        <p>Edges stop serving this device. Its boots remain.</p>
      </DeleteButton>
      {open && <EditDeviceDialog device={device} onClose={() => setOpen(false)} />}
    </>
  )
}

const origins = { site: 'from site', collection: 'from collection', device: 'from device' }

/** Names and values with where each comes from, and the tags. */
export function DevicePersonality({ device }: { device: DeviceDetail }) {
  const { tags, inheritedPersonality } = device
  if (tags.length + inheritedPersonality.length === 0) return null
  return (
    <Panel title="Tags and attributes">
      {tags.length > 0 && (
        <div className="flex flex-wrap gap-1.5">
          {tags.map((tag) => (
            <Tag key={tag}>{tag}</Tag>
          ))}
        </div>
      )}
      {inheritedPersonality.length > 0 && (
        <dl className="mt-3 flex flex-col gap-2 text-sm first:mt-0">
          {inheritedPersonality.map(({ name, value, origin }) => (
            <div key={name}>
              <dt className="text-ink-faint text-xs">
                <span className="font-mono">{name}</span>, {origins[origin]}
              </dt>
              <dd className="break-all font-mono text-ink text-xs">{value || '(empty)'}</dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  )
}
