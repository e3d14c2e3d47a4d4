import { describe, expect, test } from 'vitest'
import { judgeMatrix } from '../../scripts/bench/field/matrix.mjs'
import { parseMatrix, readSizeOf, settingWith } from '../../scripts/bench/field/settings.mjs'
import {
  corrected,
  drawsOf,
  medianInterval,
  rankTest,
  shuffled,
  smallestProbability,
} from '../../scripts/bench/field/statistics.mjs'
import { bytesOf, csvOf, even, lengthened, readsOf } from '../../scripts/bench/field/traces.mjs'
import { inRoot } from '../../scripts/lib/paths.mjs'

/** The parts of `npm run bench -- field` that need no network. */

describe('a matrix of settings', () => {
  test('has a cell for each combination, the first values first, and the usual value of every other factor', () => {
    const { levels, cells } = parseMatrix(['readSize=44k,unlimited', 'mtu=1500,9000'])
    expect(levels).toEqual({ readSize: ['44k', 'unlimited'], mtu: ['1500', '9000'] })
    expect(cells.map(({ name }) => name)).toEqual([
      'readSize=44k, mtu=1500',
      'readSize=44k, mtu=9000',
      'readSize=unlimited, mtu=1500',
      'readSize=unlimited, mtu=9000',
    ])
    expect(cells[3]?.setting).toEqual(settingWith({ mtu: '9000' }))
    expect(cells.map(({ setting }) => readSizeOf(setting))).toEqual([45_056, 45_056, 131_072, 131_072])
  })

  test.each([
    [['burst=4k,8k'], 'a matrix has no factor burst; there are: readSize, inFlight,'],
    [['toString=a,b'], 'a matrix has no factor toString'],
    [['readSize'], 'readSize cannot be "": it takes a size'],
    [['readSize=4k,1000'], 'readSize cannot be "1000"'],
    [['readSize=129k,4k'], 'readSize cannot be "129k"'],
    [['mtu=1500,9001'], 'mtu cannot be "9001": it takes a whole number from 576 to 9000'],
    [['cache=warm,hot'], 'cache cannot be "hot": it takes warm or cold'],
    [['mtu=1500,9000', 'mtu=1400,1500'], '--matrix names mtu twice'],
    [['mtu=1500,1500'], 'names a value twice'],
    [['mtu=1500'], 'a matrix needs at least two values'],
    [['shards=1,2,3,4,5,6,7,8', 'inFlight=1,2,3,4,5,6,7,8,9'], 'the matrix has 72 cells; 64 can be measured'],
  ])('%j is refused with a sentence that says why', (texts, sentence) => {
    expect(() => parseMatrix(texts)).toThrow(sentence)
  })
})

describe('the order of the cells', () => {
  test('is a random one that a seed repeats', () => {
    const values = Array.from({ length: 20 }, (_, index) => index)
    const order = shuffled(values, drawsOf(1))
    expect(order).toEqual(shuffled(values, drawsOf(1)))
    expect(order).not.toEqual(shuffled(values, drawsOf(2)))
    expect(order.toSorted((a, b) => a - b)).toEqual(values)
    const firsts = Array.from({ length: 2_000 }, (_, seed) => shuffled([0, 1, 2, 3], drawsOf(seed))[0])
    for (const value of [0, 1, 2, 3]) expect(firsts.filter((one) => one === value).length).toBeGreaterThan(400)
  })
})

describe('statistics', () => {
  test('an interval of the median has the coverage that binomial probabilities give it', () => {
    expect(medianInterval([3, 1, 2])).toEqual({ low: 1, high: 3, coverage: 0.75 })
    expect(medianInterval([5, 4, 3, 2, 1, 6]).coverage).toBeCloseTo(0.96875)
    const ten = medianInterval([10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    expect([ten.low, ten.high]).toEqual([2, 9])
    expect(ten.coverage).toBeCloseTo(0.97852, 5)
  })

  test('groups that do not overlap have the smallest probability, as exact tables of the rank sum say', () => {
    const [one, other] = [
      [1, 2, 3, 4, 5],
      [6, 7, 8, 9, 10],
    ]
    expect(smallestProbability(5)).toBeCloseTo(2 / 252)
    expect(rankTest([{ one, other }], 1)).toBeGreaterThan(0.006)
    expect(rankTest([{ one, other }], 1)).toBeLessThan(0.01)
    // U = 2 for 4 and 4: 0.114 in tables.
    const middling = rankTest([{ one: [1, 2, 3, 6], other: [4, 5, 7, 8] }], 1)
    expect(Math.abs(middling - 0.114)).toBeLessThan(0.01)
    expect(rankTest([{ one: [1, 1, 1], other: [1, 1, 1] }], 1)).toBe(1)
  })

  test('strata add up, and a level that differs between strata is no difference', () => {
    const stratum = (shift: number) => ({
      one: [1, 2, 3].map((x) => x + shift),
      other: [4, 5, 6].map((x) => x + shift),
    })
    expect(rankTest([stratum(0)], 1)).toBeGreaterThan(0.08)
    expect(rankTest([stratum(0), stratum(100)], 1)).toBeLessThan(0.01)
    expect(rankTest([{ one: [1, 3, 5], other: [2, 4, 6] }, stratum(100)], 1)).toBeGreaterThan(0.03)
  })

  test('equal groups differ in about one of twenty tests', () => {
    const below = drawsOf(9)
    const draw = () => Array.from({ length: 6 }, () => below(1_000_000))
    let found = 0
    for (let test = 0; test < 100; test++) if (rankTest([{ one: draw(), other: draw() }], test) <= 0.05) found++
    expect(found).toBeLessThan(13)
  })

  test('probabilities are corrected for their number', () => {
    expect(corrected([0.04, 0.01, 0.5])).toEqual([0.08, 0.03, 0.5])
    expect(corrected([0.4, 0.6])).toEqual([0.8, 0.8])
    expect(corrected([])).toEqual([])
  })
})

describe('the judgement of a matrix', () => {
  const matrix = parseMatrix(['readSize=4k,unlimited', 'mtu=1500,9000'])
  const secondsOf = (setting: Record<string, string>, noise: number) =>
    (setting.readSize === 'unlimited' ? 1 : 2) * (1 + noise)
  const measure = (of: typeof secondsOf) => {
    const below = drawsOf(3)
    return Array.from({ length: 6 }, () => matrix.cells)
      .flat()
      .map(({ name, setting }) => ({ cell: name, seconds: of(setting, below(100) / 1000) }))
  }

  test('recommends what is faster beyond chance, and of other factors the first level', () => {
    const { rows, effects, recommended } = judgeMatrix(matrix, measure(secondsOf), 1)
    const [readSize, mtu] = effects
    expect(readSize).toMatchObject({ factor: 'readSize', level: 'unlimited', against: '4k' })
    expect(readSize?.ratio).toBeCloseTo(0.5, 1)
    expect(readSize?.probability).toBeLessThan(0.001)
    expect(mtu?.probability).toBeGreaterThan(0.05)
    expect(recommended).toMatchObject({ name: 'readSize=unlimited, mtu=1500', isFirst: false, rival: undefined })
    expect(rows.map(({ probability }) => probability !== undefined && probability < 0.05)).toEqual([
      false,
      false,
      true,
      true,
    ])
  })

  test('stays with the first cell where nothing differs', () => {
    const { recommended } = judgeMatrix(
      matrix,
      measure((_, noise) => 1 + noise),
      1,
    )
    expect(recommended).toMatchObject({ name: 'readSize=4k, mtu=1500', isFirst: true })
  })

  test('names a faster cell that factors alone do not find', () => {
    const only = (setting: Record<string, string>, noise: number) =>
      (setting.readSize === 'unlimited') === (setting.mtu === '9000') ? 1 + noise : 2 + noise
    const apart = measure(only).map((one) =>
      one.cell === 'readSize=4k, mtu=1500' ? { ...one, seconds: one.seconds * 1.2 } : one,
    )
    const { recommended } = judgeMatrix(matrix, apart, 1)
    expect(recommended.rival?.name).toBe('readSize=unlimited, mtu=9000')
    expect(recommended.rival?.probability).toBeLessThan(0.05)
  })
})

describe('reads', () => {
  const diskSize = 1024 << 20
  const recorded = readsOf(inRoot('e2e/traces/boot-trace-bios.csv'))
  const blocksOf = (reads: { offset: number; length: number }[]) =>
    new Set(reads.flatMap(({ offset, length }) => Array.from({ length: length / 4096 }, (_, at) => offset / 4096 + at)))

  test('of a boot are repeated at other places until they are as many bytes', () => {
    const long = lengthened(recorded, { bytes: 115e6, diskSize })
    expect(bytesOf(long)).toBeGreaterThanOrEqual(115e6)
    expect(bytesOf(long)).toBeLessThan(115e6 + (128 << 10))
    expect(long.slice(0, recorded.length)).toEqual(recorded)
    for (const { offset, length } of long) expect(offset + length <= diskSize && offset % 512 === 0).toBe(true)
    expect(blocksOf(long).size * 4096).toBeGreaterThan(0.95 * bytesOf(long))
  })

  test('of one size are each at another place', () => {
    const reads = even({ size: 44 << 10, count: 1_000, diskSize })
    expect(new Set(reads.map(({ offset }) => offset)).size).toBe(1_000)
    expect(blocksOf(reads).size).toBe(11_000)
    expect(csvOf(reads.slice(0, 1))).toBe('time_ms,offset,length\n0,0,45056\n')
  })
})
