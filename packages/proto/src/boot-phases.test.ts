import { expect, test } from 'vitest'
import table from '../boot-phases.json' with { type: 'json' }
import { bootCauses, bootCauseText, bootOutcomes, bootPhases, valueSources } from './boot-phases.ts'

const namesOf = (rows: { name: string }[]) => rows.map(({ name }) => name)

test('the lists of names are the table’s, in its order', () => {
  expect([...bootPhases]).toEqual(namesOf(table.phases))
  expect([...bootOutcomes]).toEqual(table.outcomes)
  expect([...bootCauses]).toEqual(namesOf(table.causes))
  expect([...valueSources]).toEqual(table.sources)
})

test.each(bootCauses)('%s has a sentence and a remedy for people', (cause) => {
  const { sentence, remedy } = bootCauseText(cause)
  for (const text of [sentence, remedy]) expect(text).toMatch(/^[A-Z].{10,}\.$/)
})
