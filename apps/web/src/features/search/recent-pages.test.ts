import { expect, test } from 'vitest'
import { withPage } from './recent-pages.ts'

const page = (name: string) => ({ href: `/devices/${name}`, name, place: 'Devices' })

test('a page that is opened again moves to the front, and eight are kept', () => {
  const nine = Array.from({ length: 9 }, (_, index) => page(`pc-${index}`))
  const kept = nine.reduce(withPage, [])
  expect(kept.map(({ name }) => name)).toEqual(['pc-8', 'pc-7', 'pc-6', 'pc-5', 'pc-4', 'pc-3', 'pc-2', 'pc-1'])
  expect(withPage(kept, page('pc-3')).map(({ name }) => name)).toEqual([
    'pc-3',
    'pc-8',
    'pc-7',
    'pc-6',
    'pc-5',
    'pc-4',
    'pc-2',
    'pc-1',
  ])
})
