import { readFileSync } from 'node:fs'
import path from 'node:path'
import { edgeSource } from '../lib/paths.mjs'

const acceptedFile = path.join(edgeSource, 'src/mutation/accepted.json')

/** Code that must not be wrong, in any module; a separate row of the table. */
const parts = {
  admission: [
    'agent/admission.zig',
    'core/boot/policy.zig',
    'core/boot/assignment.zig',
    'core/stream/server/hello.zig',
    'core/stream/ticket.zig',
  ],
  'sealing of packets': ['core/stream/seal.zig', 'core/stream/secrets.zig', 'core/stream/server/sealer.zig'],
  'acknowledgement of writes': [
    'core/stream/server/writes.zig',
    'core/stream/server/write_steps.zig',
    'agent/write_caches.zig',
  ],
}

/** Names the accepted ones: `accepted` is the reason. */
export function withAccepted(mutants) {
  const accepted = JSON.parse(readFileSync(acceptedFile, 'utf8'))
  return mutants.map((mutant) => {
    const constant = accepted.constants.find(
      ({ file, name }) => file === mutant.file && mutant.after.includes(`(${name} + 1)`),
    )
    const equivalent = accepted.equivalent.find(({ reason: _reason, ...entry }) =>
      Object.entries(entry).every(([key, value]) => mutant[key] === value),
    )
    const reason = (constant ?? equivalent)?.reason
    return mutant.verdict !== 'killed' && reason ? { ...mutant, accepted: reason } : mutant
  })
}

export function scoreOf(mutants) {
  const accepted = mutants.filter((mutant) => mutant.accepted).length
  const killed = mutants.filter(({ verdict }) => verdict === 'killed').length
  const counted = mutants.length - accepted
  return { accepted, killed, counted, percent: counted === 0 ? 100 : (100 * killed) / counted }
}

/** The table of docs/results, as Markdown. */
export function tableOf(mutants) {
  const rows = new Map()
  const add = (name, mutant) => rows.set(name, [...(rows.get(name) ?? []), mutant])
  for (const mutant of mutants) add(moduleOf(mutant.file), mutant)
  const inFour = mutants.filter(({ file }) => /^(core\/stream|core\/boot|agent|store)\//.test(file))
  const lines = [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, some]) => rowOf(name, some))
  lines.push(rowOf('**core/stream, core/boot, agent, store**', inFour), rowOf('**all**', mutants))
  for (const [name, files] of Object.entries(parts)) {
    const some = mutants.filter(({ file }) => files.includes(file))
    if (some.length > 0) lines.push(rowOf(`apart: ${name}`, some))
  }
  return [
    '| module | mutants | found | by simulation | not found | not reached | accepted | score |',
    '| --- | --: | --: | --: | --: | --: | --: | --: |',
    ...lines,
  ].join('\n')
}

function rowOf(name, mutants) {
  const { accepted, killed, percent } = scoreOf(mutants)
  const open = mutants.filter((mutant) => mutant.verdict !== 'killed' && !mutant.accepted)
  const unreached = open.filter(({ verdict }) => verdict === 'unreached').length
  const bySimulation = mutants.filter(({ by }) => by?.startsWith('sim:')).length
  return `| ${name} | ${mutants.length} | ${killed} | ${bySimulation} | ${open.length - unreached} | ${unreached} | ${accepted} | ${percent.toFixed(1)} % |`
}

function moduleOf(file) {
  const [module, folder, inner] = file.split('/')
  if (module !== 'core') return module
  return inner === undefined ? 'core' : `core/${folder}`
}

/** Returns a mutant that was not found, as a line. */
export function describe(mutant) {
  const { id, file, line, function: name, before, after, verdict, accepted } = mutant
  const change = after === '' ? `drop ${short(before)}` : `${short(before)} -> ${short(after)}`
  return `${accepted ? 'accepted' : verdict}: ${file}:${line} ${name}: ${change} [${id}]${accepted ? `: ${accepted}` : ''}`
}

const short = (text) => (text.length > 120 ? `${text.slice(0, 117)}...` : text)
