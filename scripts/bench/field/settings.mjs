import { UserError } from '../../lib/fail.mjs'

/** No read of the stream is larger (STREAM.md). */
const readSizeMax = 128 << 10
const sectorSize = 512
const [cellsMin, cellsMax] = [2, 64]

const oneOf = (...values) => ({ usual: values[0], takes: values.join(' or '), isGood: (text) => values.includes(text) })
const wholeNumber = (usual, least, most) => ({
  usual,
  takes: `a whole number from ${least} to ${most}`,
  isGood: (text) => /^[1-9]\d*$/.test(text) && Number(text) >= least && Number(text) <= most,
})

/**
 * What the client and the edge of a boot can vary, each with the value that it has unless a matrix or an experiment
 * names another one. docs/reference/field-experiments.md describes them.
 */
export const factors = {
  readSize: {
    usual: 'unlimited',
    takes: 'a size from 512 to 128k, a multiple of 512, or unlimited',
    isGood: (text) => text === 'unlimited' || isReadSize(sizeOf(text)),
  },
  inFlight: wholeNumber('4', 1, 64),
  mtu: wholeNumber('1500', 576, 9000),
  readAhead: oneOf('off', 'on'),
  encryption: oneOf('on', 'off'),
  answers: oneOf('plain', 'packed'),
  cache: oneOf('warm', 'cold'),
  storage: oneOf('disk', 'tmpfs', 'slow'),
  shards: wholeNumber('1', 1, 16),
  devices: wholeNumber('1', 1, 8),
}

const isReadSize = (size) => size >= sectorSize && size <= readSizeMax && size % sectorSize === 0

/** Converts `44k` to bytes; NaN if it is no size. */
function sizeOf(text) {
  const found = /^(\d{1,6})(k?)$/.exec(text)
  return found ? Number(found[1]) * (found[2] ? 1024 : 1) : Number.NaN
}

/** The most bytes that the client asks for in one read. */
export const readSizeOf = (setting) => (setting.readSize === 'unlimited' ? readSizeMax : sizeOf(setting.readSize))

/**
 * @typedef {Record<keyof typeof factors, string>} Setting
 * @typedef {{ name: string, setting: Setting }} Cell
 */

/**
 * Returns the usual setting with these values in place of the usual ones.
 * @param {Partial<Setting>} values
 * @returns {Setting}
 */
export function settingWith(values) {
  const usual = Object.fromEntries(Object.entries(factors).map(([name, factor]) => [name, factor.usual]))
  return { ...usual, ...values }
}

/**
 * Reads `readSize=4k,unlimited` and so on; returns the factors with their levels, and a cell for each combination, the
 * first levels first.
 * @param {string[]} texts
 * @returns {{ levels: Record<string, string[]>, cells: Cell[] }}
 */
export function parseMatrix(texts) {
  /** @type {Record<string, string[]>} */
  const levels = {}
  for (const text of texts) {
    const [name, list] = splitAt(text, '=')
    const factor = Object.hasOwn(factors, name) ? factors[name] : undefined
    if (!factor)
      throw new UserError(`a matrix has no factor ${name || text}; there are: ${Object.keys(factors).join(', ')}.`)
    if (levels[name]) throw new UserError(`--matrix names ${name} twice: put all of its values into one.`)
    const values = list.split(',')
    const bad = values.find((value) => !factor.isGood(value))
    if (bad !== undefined) throw new UserError(`${name} cannot be "${bad}": it takes ${factor.takes}.`)
    if (new Set(values).size < values.length) throw new UserError(`--matrix ${text} names a value twice.`)
    levels[name] = values
  }
  const cells = cellsOf(levels)
  if (cells.length < cellsMin)
    throw new UserError('a matrix needs at least two values, such as readSize=32k,unlimited.')
  if (cells.length > cellsMax)
    throw new UserError(`the matrix has ${cells.length} cells; ${cellsMax} can be measured: leave out values.`)
  return { levels, cells }
}

function cellsOf(levels) {
  let combinations = [{}]
  for (const [name, values] of Object.entries(levels))
    combinations = combinations.flatMap((before) => values.map((value) => ({ ...before, [name]: value })))
  return combinations.map((values) => ({ name: nameOf(values), setting: settingWith(values) }))
}

/** Names a cell by the values in which it differs from others. */
export const nameOf = (values) =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ')

function splitAt(text, mark) {
  const at = text.indexOf(mark)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}
