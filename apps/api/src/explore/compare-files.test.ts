import { expect, test } from 'vitest'
import { compareFiles } from './compare-files.ts'

const file = (name: string, storageUs: number) => ({ name, kind: 'file' as const, bytes: 4096, storageUs })

test('a file that boots newly wait for comes first, one that became quicker last', () => {
  const compared = compareFiles(
    [[file('/old', 900), file('/same', 100)], [file('/same', 100)]],
    [[file('/same', 100), file('/new', 5000)], [file('/same', 100)], [], []],
  )
  expect(compared.map(({ name }) => name)).toEqual(['/new', '/same', '/old'])
  expect(compared[0]).toMatchObject({ base: { boots: 0, bytes: 0, storageUs: 0 }, set: { boots: 1, storageUs: 1250 } })
  expect(compared.at(-1)).toMatchObject({ base: { boots: 1, bytes: 2048, storageUs: 450 }, set: { boots: 0 } })
})

test('without any list there is nothing', () => {
  expect(compareFiles([], [])).toEqual([])
  expect(compareFiles([], [[file('/a', 3)]])[0]).toMatchObject({
    base: { boots: 0, bytes: 0, storageUs: 0 },
    set: { boots: 1, storageUs: 3 },
  })
})
