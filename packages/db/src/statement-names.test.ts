import { expect, test } from 'vitest'
import { StatementNames } from './statement-names.ts'

const nameAfter = (names: StatementNames, text: string, sightings: number) => {
  let name: string | undefined
  for (let sighting = 0; sighting < sightings; sighting++) name = names.nameOf(text)
  return name
}

test('a text that comes again gets a name, always the same and no other’s', () => {
  const names = new StatementNames()
  expect(nameAfter(names, 'select $1', 2)).toBeUndefined()
  const name = names.nameOf('select $1')
  expect(name).toBeTypeOf('string')
  expect(names.nameOf('select $1')).toBe(name)
  expect(nameAfter(names, 'select $1, 2', 3)).not.toBe(name)
})

test('a page of a list has none, however often it comes', () => {
  const page = 'SELECT "id" FROM "device" WHERE "enabled" = $1 ORDER BY "name" ASC LIMIT $2 OFFSET $3'
  expect(nameAfter(new StatementNames(), page, 9)).toBeUndefined()
})

test('names are few, whatever texts come', () => {
  const names = new StatementNames()
  const given = new Set<string>()
  for (let index = 0; index < 1_000; index++) {
    const name = nameAfter(names, `select ${index}`, 3)
    if (name) given.add(name)
  }
  expect(given.size).toBe(400)
  expect(names.nameOf('select 0')).toBeDefined()
})
