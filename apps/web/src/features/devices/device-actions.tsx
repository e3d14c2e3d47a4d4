'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { Panel } from '../../components/page'
import { Tag } from '../../components/tag'
import { linesOfPairs, pairsOfLines, tagsOfText } from '../../lib/pair-lines'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { VdiskField } from '../collections/collection-actions'
import { DeleteButton, ObjectDialog, PersonalityField, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { DeviceTypeField } from './device-type'

import { enabledOptions } from './many-fields'

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

const macPlaceholder = '02:00:00:00:00:01'

function NewDeviceDialog({ onClose }: { onClose: () => void }) {
  const trpc = useTRPC()
  const collections = usePicker('collection', {})
  const [chosenId, setChosenId] = useState('')
  const [name, setName] = useState('')
  const [mac, setMac] = useState('')
  const [templateId, setTemplateId] = useState('collection')
  const create = useMutation(trpc.device.create.mutationOptions({ onSuccess: useSaved(onClose) }))
  const collection = collections.itemOf(chosenId) ?? collections.items[0]
  const template = templateId === 'collection' ? {} : { templateDeviceId: templateId || null }
  return (
    <ObjectDialog
      title="New device"
      action="Create device"
      saving={create}
      disabled={!collection || name.trim() === '' || mac.trim() === ''}
      onSave={() => collection && create.mutate({ collectionId: collection.id, name, mac, ...template })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={63} />
      <TextField
        label="MAC address"
        value={mac}
        onChange={setMac}
        mono
        placeholder={macPlaceholder}
        hint="The network card that this device boots from."
      />
      <ObjectPicker
        label="Collection"
        picker={collections}
        value={collection?.id ?? ''}
        labelOf={(one) => `${one.name}, ${one.siteName}`}
        onChange={setChosenId}
        hint={collections.isLoaded && !collection && 'There is no collection yet. Create one on a site’s page.'}
      />
      {collection && <TemplateField collection={collection} value={templateId} onChange={setTemplateId} />}
    </ObjectDialog>
  )
}

interface TemplateFieldProps {
  collection: { id: string; siteId: string }
  value: string
  onChange: (value: string) => void
}

function TemplateField({ collection, value, onChange }: TemplateFieldProps) {
  const devices = usePicker('device', { siteId: collection.siteId })
  return (
    <ObjectPicker
      label="Settings"
      picker={devices}
      value={value}
      first={[
        { value: 'collection', label: 'From the collection’s template, if there is one' },
        { value: '', label: 'None' },
      ]}
      labelOf={(one) => `Copy from ${one.name}`}
      onChange={onChange}
    />
  )
}

export function EditDeviceDialog({ device, onClose }: { device: DeviceDetail; onClose: () => void }) {
  const trpc = useTRPC()
  // The state when the form was opened: another person's change is noticed, not silently adopted.
  const [seen] = useState(device)
  const [name, setName] = useState(seen.name)
  const [mac, setMac] = useState(seen.mac)
  const [enabled, setEnabled] = useState(seen.enabled ? 'yes' : 'no')
  const [deviceType, setDeviceType] = useState(seen.deviceType)
  const [tags, setTags] = useState(seen.tags.join(', '))
  const [vdiskId, setVdiskId] = useState(seen.ownVdisk?.id ?? '')
  const [pairs, setPairs] = useState(linesOfPairs(seen.personality))
  const personality = pairsOfLines(pairs)
  const update = useMutation(trpc.device.update.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <ObjectDialog
      title={`Edit ${seen.name}`}
      action="Save"
      saving={update}
      disabled={name.trim() === '' || mac.trim() === '' || personality === null}
      onSave={(revision = seen.revision) =>
        personality &&
        update.mutate({
          deviceId: seen.id,
          revision,
          name,
          mac,
          personality,
          deviceType,
          enabled: enabled === 'yes',
          tags: tagsOfText(tags),
          vdiskId: vdiskId || null,
        })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={63} />
      <TextField label="MAC address" value={mac} onChange={setMac} mono />
      <TextField
        label="Tags"
        value={tags}
        onChange={setTags}
        maxLength={1000}
        hint="Comma-separated. People and schedules select devices by tag."
      />
      <SelectField label="Enabled" value={enabled} options={enabledOptions} onChange={setEnabled} />
      <VdiskField
        farmId={seen.farmId}
        chosen={seen.ownVdisk}
        value={vdiskId}
        onChange={setVdiskId}
        none="Inherit from collection"
      />
      <DeviceTypeField value={deviceType} onChange={setDeviceType} />
      <PersonalityField value={pairs} onChange={setPairs} />
    </ObjectDialog>
  )
}
