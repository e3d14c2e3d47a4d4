'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { adoptionSentences, type EdgeImage, imageName } from './adopt-text'

const nameMax = 64
const newVdisk = 'new'

interface AdoptDialogProps {
  edge: RouterOutputs['edge']['get']
  image: EdgeImage
  onClose: () => void
}

/** Makes a version of an image that nobody has registered; what will happen stands above the button. */
export function AdoptDialog({ edge, image, onClose }: AdoptDialogProps) {
  const trpc = useTRPC()
  const site = useQuery(trpc.site.get.queryOptions({ siteId: edge.siteId }))
  const farmId = site.data?.farmId
  const vdisks = usePicker('vdisk', farmId ? { farmId } : {}, { enabled: !!farmId })
  const [chosenId, setChosenId] = useState(image.parent?.vdiskId ?? newVdisk)
  const [name, setName] = useState(imageName(image).slice(0, nameMax))
  const [note, setNote] = useState('')
  const [state, setState] = useState<'test' | 'released'>('test')
  const adopt = useMutation(trpc.version.adopt.mutationOptions({ onSuccess: useSaved(onClose) }))
  const { parent } = image
  const isParent = chosenId === parent?.vdiskId
  const chosen = isParent && parent ? { id: parent.vdiskId, name: parent.vdiskName } : vdisks.itemOf(chosenId)
  const isNewVdisk = !chosen
  const sentences = adoptionSentences({
    image,
    edgeName: edge.name,
    isNewVdisk,
    state,
    vdiskName: chosen?.name ?? name.trim(),
    otherEdges: (site.data?.edges ?? [])
      .filter(({ id, revokedAt }) => id !== edge.id && revokedAt === null)
      .map((other) => other.name),
  })
  return (
    <ObjectDialog
      title={`Adopt ${imageName(image)}`}
      action="Adopt"
      saving={adopt}
      disabled={!farmId || (isNewVdisk && name.trim() === '')}
      onSave={() =>
        farmId &&
        adopt.mutate({
          edgeId: edge.id,
          versionId: image.versionId,
          note,
          state,
          ...(chosen ? { vdiskId: chosen.id } : { farmId, name: name.trim() }),
        })
      }
      onClose={onClose}
    >
      <ObjectPicker
        label="Adopt as a version of"
        picker={vdisks}
        value={chosen?.id ?? newVdisk}
        first={[{ value: newVdisk, label: 'New vDisk' }]}
        chosen={chosen && { value: chosen.id, label: chosen.name }}
        labelOf={(vdisk) => vdisk.name}
        onChange={setChosenId}
      />
      {isNewVdisk && <TextField label="vDisk name" value={name} onChange={setName} maxLength={nameMax} />}
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <SelectField
        label="After adoption"
        value={state}
        options={[
          { value: 'test', label: 'Test' },
          { value: 'released', label: 'Release' },
        ]}
        onChange={(value) => setState(value === 'released' ? 'released' : 'test')}
      />
      <section aria-label="Preview" className="text-sm">
        <ul className="flex list-disc flex-col gap-1 pl-5 text-ink-soft">
          {sentences.map((text) => (
            <li key={text} className="break-words">
              {text}
            </li>
          ))}
        </ul>
      </section>
    </ObjectDialog>
  )
}
