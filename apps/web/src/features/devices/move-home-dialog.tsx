'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField } from '../../components/field'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { type DeviceHome, moveRefusal, moveSentences } from './home-text'

interface MoveHomeDialogProps {
  device: RouterOutputs['device']['get']
  home: DeviceHome
  /** Edges that can be chosen. */
  others: { id: string; name: string }[]
  onClose: () => void
}

/** Another edge keeps what the device writes; what is lost and what is kept stands above the button. */
export function MoveHomeDialog({ device, home, others, onClose }: MoveHomeDialogProps) {
  const trpc = useTRPC()
  const [chosenId, setChosenId] = useState('')
  const target = others.find(({ id }) => id === chosenId) ?? others[0]
  const move = useMutation(trpc.device.moveHome.mutationOptions({ onSuccess: useSaved(onClose) }))
  const giveUp = home.edge.isRemoved
  const given = { deviceName: device.name, home, targetName: target?.name ?? '' }
  const refusal = moveRefusal({ ...given, isRunning: device.now.state === 'running' })
  return (
    <ObjectDialog
      title={`Move the writes of ${device.name}`}
      action={giveUp ? 'Discard and move' : 'Move'}
      saving={move}
      disabled={!target || refusal !== null}
      onSave={() => target && move.mutate({ deviceId: device.id, edgeId: target.id, giveUp })}
      onClose={onClose}
    >
      <SelectField
        label="New edge"
        value={target?.id ?? ''}
        options={others.map(({ id, name }) => ({ value: id, label: name }))}
        onChange={setChosenId}
      />
      <section aria-label="Preview" className="text-sm">
        {refusal ? (
          <p className="break-words rounded-md bg-failed-soft px-3 py-2 text-failed">{refusal}</p>
        ) : (
          <ul className="flex list-disc flex-col gap-1 pl-5 text-ink-soft">
            {moveSentences(given).map((text) => (
              <li key={text} className="break-words">
                {text}
              </li>
            ))}
          </ul>
        )}
      </section>
    </ObjectDialog>
  )
}
