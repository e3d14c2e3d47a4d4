import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { bootReport } from './uplink-boot.ts'

const vector = JSON.parse(readFileSync(new URL('../vectors/boot-loading-v1.json', import.meta.url), 'utf8'))

test('what an edge reports of a boot’s loading is read as it was sent', () => {
  const keys = {
    loaderSteps: true,
    bootCommandUs: true,
    transfers: true,
    transfersLeftOut: true,
    series: true,
  } as const
  expect(Object.keys(vector.report)).toEqual(Object.keys(keys))
  expect(bootReport.pick(keys).strict().parse(vector.report)).toEqual(vector.report)
})
