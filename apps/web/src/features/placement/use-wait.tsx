import { useState } from 'react'
import { SelectField } from '../../components/field'
import { countOf } from '../../lib/format-quantity'
import { bootsWithoutCopies } from './promotion-text'

const choices = [
  { value: 'wait', label: 'Wait until all of them hold it' },
  { value: 'now', label: 'Do not wait' },
]
const dayMs = 86_400_000
/** The API takes at most 31 days by its own clock. */
const limits = [1, 7, 30].map((days) => ({ value: String(days), label: countOf(days, 'day') }))

/**
 * Whether a promotion or a revert waits for the edges that lack the version, and how long. Its fields are there if some
 * lack it.
 */
export function useWait({ lacks, waitsAtFirst }: { lacks: boolean; waitsAtFirst: boolean }) {
  const [choice, setChoice] = useState(waitsAtFirst ? 'wait' : 'now')
  const [days, setDays] = useState('7')
  const isOn = lacks && choice === 'wait'
  const input = () =>
    isOn
      ? { waitForPlacement: true, waitUntil: new Date(Date.now() + Number(days) * dayMs).toISOString() }
      : { waitForPlacement: choice === 'wait' }
  const fields = lacks && (
    <>
      <SelectField
        label="Edges that lack the version"
        value={choice}
        options={choices}
        onChange={setChoice}
        hint={choice === 'wait' ? 'Until then, devices keep the version that they boot.' : bootsWithoutCopies}
      />
      {isOn && (
        <SelectField
          label="Give up after"
          value={days}
          options={limits}
          onChange={setDays}
          hint="The vDisk’s page shows how far each edge is."
        />
      )}
    </>
  )
  return { isOn, input, fields }
}
