import { expect, test } from 'vitest'
import { csvLine } from '../rules/csv.ts'
import { deviceCells, deviceHeading, type ExportedDevice, parseDevicesCsv } from './device-csv.ts'

/** A seeded generator, so that a failure can be replayed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function devicesCsv(devices: ExportedDevice[]): string {
  const names = [...new Set(devices.flatMap(({ personality }) => Object.keys(personality)))].sort()
  return [deviceHeading(names), ...devices.map((device) => deviceCells(device, names))].map(csvLine).join('')
}

const nasty = ['=1+1', '+x', '-x', '@cmd', '"quoted"', 'a,b', 'a;b', "'=", 'Größe', '漢字', ' two  spaces ', '<b>']

function deviceOf(random: () => number, index: number): ExportedDevice {
  const pick = () => nasty[Math.floor(random() * nasty.length)] ?? ''
  const own = () => (random() < 0.5 ? null : `x${pick().trim()}`)
  return {
    mac: `02:00:00:00:00:${(index % 256).toString(16).padStart(2, '0')}`,
    name: `pc-${index}`,
    collection: pick().trim(),
    enabled: random() < 0.5,
    tags: random() < 0.5 ? [] : ['a', '=b', 'c d'].slice(0, 1 + Math.floor(random() * 3)).sort(),
    vdisk: own(),
    bootPrograms: own(),
    bootMenu: own(),
    deviceType: random() < 0.5 ? 'production' : 'maintenance',
    personality: random() < 0.5 ? {} : { A: pick(), 'b.C': pick() },
  }
}

test('any text that is written is read back unchanged', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = randomOf(seed)
    const devices = Array.from({ length: 5 }, (_, index) => deviceOf(random, index))
    const parsed = parseDevicesCsv(devicesCsv(devices))
    if ('problem' in parsed) throw new Error(`seed ${seed}: ${parsed.problem}`)
    expect(parsed.devices.map(({ line: _line, problems, ...device }) => ({ ...device, problems }))).toEqual(
      devices.map((device) => ({ ...device, problems: [] })),
    )
  }
})

test('no cell of an export begins a formula', () => {
  const csv = devicesCsv([{ ...deviceOf(randomOf(1), 1), collection: '=HYPERLINK("x")', personality: { A: '@x' } }])
  expect(csv).toContain(`"'=HYPERLINK(""x"")"`)
  expect(csv).not.toMatch(/(^|,|\n)"[=+\-@]/)
})

test.each([
  ['semicolons, no quotes, no mark', 'Mac;Name;Enabled\n02-00-00-00-00-01;pc-1;Yes\n'],
  ['commas, quotes and a mark', '\uFEFF"mac","name","enabled"\r\n"0200.0000.0001","pc-1","TRUE"\r\n'],
])('a table with %s is read', (_what, text) => {
  expect(parseDevicesCsv(text)).toMatchObject({
    devices: [{ line: 2, mac: '02:00:00:00:00:01', name: 'pc-1', enabled: true, problems: [] }],
  })
})

test.each([
  ['mac,name\n"02', 'The file is not a table'],
  ['mac,colour\n02:00:00:00:00:01,red', 'Unknown column colour'],
  ['mac,mac\na,b', 'twice'],
  ['enabled\nyes', 'Add a column mac or name'],
  ['mac,personality.1x\na,b', 'begins with a letter'],
  ['mac,name\n', 'no rows below'],
  ['mac,name\na,b,c', 'not a table'],
  [`name\n${'pc\n'.repeat(10_001)}`, 'more than 10000 rows'],
  ['mac\n\uFFFD', 'not UTF-8'],
])('%j is refused, and says why', (text, problem) => {
  expect(parseDevicesCsv(text)).toEqual({ problem: expect.stringContaining(problem) })
})

test('each line reports its problem', () => {
  const text = 'mac,name,enabled\nff:ff:ff:ff:ff:ff,pc-1,maybe\n,,\n02:00:00:00:00:01,-x,no'
  expect(parseDevicesCsv(text)).toMatchObject({
    devices: [
      { line: 2, problems: [expect.stringContaining('multicast address'), 'enabled: Enter yes or no.'] },
      { line: 3, problems: [expect.stringContaining('Enter a MAC address or a name')] },
      { line: 4, problems: [expect.stringContaining('begins and ends')] },
    ],
  })
})
