import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { edgeSource, inRoot } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { capture, must } from '../lib/run.mjs'
import { zigJobs } from '../lib/toolchain.mjs'

export const mutationFolder = path.join(edgeSource, '.zig-cache/mutation')
const copy = path.join(mutationFolder, 'edge/streamer-zig')
const list = path.join(mutationFolder, 'mutants.json')
/** Each round leaves out mutants that the compiler refused; a function shows one error at a time. */
const roundsMax = 40

/**
 * Builds the tests with mutants in them, without those that do not compile.
 * @returns {Promise<{ sites: number, mutants: object[], refused: number, folder: string }>} folder: where the programs
 * are
 */
export async function buildMutants(zig, { seed, count, only, ids }) {
  copySources()
  await must('Building the mutator', zig, ['build', zigJobs, 'mutate', mode, '--', ...mutateArgs({ seed, count: 1 })], {
    cwd: edgeSource,
  })
  const refused = new Set()
  for (let round = 1; round <= roundsMax; round++) {
    const without = [...refused].join(',')
    await must('Mutating', zig, ['build', 'mutate', mode, '--', ...mutateArgs({ seed, count, only, ids, without })], {
      cwd: edgeSource,
    })
    const { sites, mutants } = JSON.parse(readFileSync(list, 'utf8'))
    if (mutants.length === 0) throw new UserError('There is nothing to mutate there.')
    const { code, output } = await capture(zig, ['build', zigJobs, 'mutation-programs', mode], { cwd: copy })
    if (code === 0) return { sites, mutants, refused: refused.size, folder: path.join(copy, 'zig-out/bin') }
    const found = refusedBy(output, mutants)
    if (found.size === 0) throw new UserError(`The mutated sources do not compile:\n${output.slice(-8000)}`)
    for (const id of found) refused.add(id)
    say(`mutation: round ${round}: ${found.size} of ${mutants.length} mutants do not compile`)
  }
  throw new UserError(`After ${roundsMax} rounds the mutated sources still do not compile.`)
}

/** Tests need seconds, and an optimised build of them minutes. */
const mode = '-Dtest-optimize=debug'

function mutateArgs(options) {
  const named = Object.entries({ ...options, copy, list }).filter(([, value]) => value !== '' && value !== undefined)
  return named.flatMap(([name, value]) => [`--${name}`, String(value)])
}

/** The build finds vectors and traces beside its folder. */
function copySources() {
  mkdirSync(copy, { recursive: true })
  rmSync(path.join(copy, 'src'), { recursive: true, force: true })
  for (const name of ['build.zig', 'build.zig.zon', 'src'])
    cpSync(path.join(edgeSource, name), path.join(copy, name), { recursive: true })
  for (const name of ['packages', 'e2e'])
    if (!existsSync(path.join(mutationFolder, name))) symlinkSync(inRoot(name), path.join(mutationFolder, name))
}

/**
 * Returns the mutants that the compiler's errors concern: those at the error's place, otherwise at one of its notes.
 */
function refusedBy(output, mutants) {
  const errors = []
  for (const match of output.matchAll(/^(src\/[^\s:]+\.zig):(\d+):(\d+): (error|note): /gm)) {
    const place = { file: match[1], line: Number(match[2]), column: Number(match[3]) }
    if (match[4] === 'error') errors.push([place])
    else errors.at(-1)?.push(place)
  }
  const refused = new Set()
  const isAt = (span, offset) => span.first <= offset && offset <= span.end
  for (const places of errors) {
    const located = places.map((place) => {
      const offset = offsetOf(place)
      return { offset, near: mutants.filter((mutant) => `src/${mutant.file}` === place.file) }
    })
    const by = (span) =>
      located
        .map(({ offset, near }) =>
          smallest(
            near.filter((m) => isAt(m[span], offset)),
            span,
          ),
        )
        .find((m) => m.length)
    for (const mutant of by('own') ?? by('host') ?? by('scope') ?? []) refused.add(mutant.id)
  }
  return refused
}

const sizeOf = (span) => span.end - span.first

/** Returns the innermost of nested spans. */
function smallest(mutants, span) {
  const size = Math.min(...mutants.map((mutant) => sizeOf(mutant[span])))
  return mutants.filter((mutant) => sizeOf(mutant[span]) === size)
}

function offsetOf({ file, line, column }) {
  const bytes = readFileSync(path.join(copy, file))
  let offset = 0
  for (let number = 1; number < line; number++) offset = bytes.indexOf(10, offset) + 1
  return offset + column - 1
}
