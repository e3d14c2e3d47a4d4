import { type Account, type DeviceKind, longestIncreaseMs, longestStallMs, medianStallMs } from './account.ts'
import { type UpdateSoakOptions, writersPerClass } from './options.ts'
import type { UpdateSoakResult } from './soak.ts'

/** How much longer the longest stall may be than under the same load without updates. */
const stallMoreMsMax = 200
const errorsShown = 20
const kinds: DeviceKind[] = ['reader', 'writer', 'machine']
const nameOf = {
  reader: 'devices that boot and read',
  writer: 'devices that write',
  machine: 'virtual machines',
} as const

/** Returns sentences for what was lost, wrong or beyond its limit; none where all is as it must be. */
export function problemsOf(result: UpdateSoakResult, { updates, machines }: UpdateSoakOptions): string[] {
  const { quiet, updating, outcomes, reportsLost } = result
  const ready = quiet.ready + updating.ready
  const reported = outcomes.ready ?? 0
  const failed = outcomes.failed ?? 0
  return [
    ...[...quiet.errors, ...updating.errors].map((error) => `error: ${error}`),
    ...(reportsLost === undefined ? ['nobody answered how many reports were lost'] : []),
    ...(reportsLost !== undefined && reportsLost > 0 ? [`${reportsLost} reports were declared lost by the edge`] : []),
    ...(reported < ready ? [`${ready} devices became ready, and ${reported} are reported as ready`] : []),
    ...(failed > 0 ? [`${failed} boots are reported as failed`] : []),
    ...kinds.flatMap((kind) => {
      const more = longestStallMs(updating, kind) - longestStallMs(quiet, kind)
      if (more <= stallMoreMsMax) return []
      const limit = `the limit is ${stallMoreMsMax} ms`
      return [`the longest stall of ${nameOf[kind]} was ${more.toFixed(0)} ms above that without updates; ${limit}`]
    }),
    ...(result.updates < updates ? [`only ${result.updates} of ${updates} updates were done`] : []),
    ...(updating.writes === 0 || ready === 0 ? ['no device booted and wrote: nothing was tried'] : []),
    ...(machines > 0 && updating.rounds === 0 ? ['no virtual machine read and wrote'] : []),
  ]
}

interface Circumstances {
  options: UpdateSoakOptions
  /** ISO 8601. */
  date: string
  processors: number
}

export function asMarkdown(result: UpdateSoakResult, { options, date, processors }: Circumstances): string {
  const { quiet, updating, seconds } = result
  const problems = problemsOf(result, options)
  const writers = writersPerClass(options)
  const row = (name: string, of: (account: Account) => string) => `| ${name} | ${of(quiet)} | ${of(updating)} |`
  const stalls = kinds.flatMap((kind) => [
    row(`longest stall of ${nameOf[kind]}, ms`, (account) => longestStallMs(account, kind).toFixed(0)),
    row(`the same, of half of them, ms`, (account) => medianStallMs(account, kind).toFixed(0)),
    `| the same, most that one of them gained, ms | | ${longestIncreaseMs(quiet, updating, kind).toFixed(0)} |`,
  ])
  const outcomes = Object.entries(result.outcomes).map(([outcome, count]) => `${outcome} ${number(count)}`)
  return `# An edge updated ${options.updates} times under load (${date.slice(0, 10)})

${options.devices - 2 * writers} simulated devices boot and read for half a minute, over and over; ${writers} write and
read in class \`edge\` and ${writers} in class \`private\`; ${options.machines} virtual machines write, sync and read
again, one in class \`edge\` and one in \`edge_persistent\`. Every byte is compared. The control plane orders the edge to
a newer release and back to the installed one by turns; every tenth order is a release that is refused by the control
plane, and left by itself. Before the first order the same load runs for ${options.quietMinutes} minutes.

${date}, ${processors} processors; ${result.minutes.toFixed(1)} minutes.
Command: \`npm run soak -- update ${words(options)}\`.

| | without updates | with updates |
|---|---|---|
${row('boots that became ready', ({ ready }) => number(ready))}
${row('reads', ({ reads }) => number(reads))}
${row('writes', ({ writes }) => number(writes))}
${row('rounds of virtual machines', ({ rounds }) => number(rounds))}
${stalls.join('\n')}
${row('**errors**', ({ errors }) => `**${errors.length}**`)}

Updates and roll-backs: ${result.updates}, of which ${result.left} were left for the former program by themselves. One
that stayed took ${range(seconds.healthy)} s from its order until it was reported as healthy, one that was left
${range(seconds.left)} s. Boots at the control plane: ${outcomes.join(', ')}. **Reports lost: ${result.reportsLost ?? 'not known'}**.

${problems.length === 0 ? 'Nothing was lost, and no limit was exceeded.' : shortened(problems).join('\n')}
`
}

const number = (value: number) => value.toLocaleString('en-GB')

function words({ updates, devices, machines, quietMinutes, probation, write }: UpdateSoakOptions): string {
  const numbers = { updates, devices, machines, 'quiet-minutes': quietMinutes, probation }
  const named = Object.entries(numbers).map(([name, value]) => `--${name} ${value}`)
  return [...named, ...(write ? ['--write'] : [])].join(' ')
}

/** The median and the greatest. */
function range(values: number[]): string {
  const sorted = values.toSorted((a, b) => a - b)
  const last = sorted.at(-1)
  if (last === undefined) return '-'
  return `${(sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(1)} (at most ${last.toFixed(1)})`
}

function shortened(problems: string[]): string[] {
  const shown = problems.slice(0, errorsShown).map((problem) => `- ${problem}`)
  return problems.length > errorsShown ? [...shown, `- and ${problems.length - errorsShown} more`] : shown
}
