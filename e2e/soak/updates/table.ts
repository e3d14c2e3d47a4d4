import { writerCount } from './load.ts'
import type { UpdateSoakOptions } from './options.ts'
import type { UpdateSoakResult } from './soak.ts'

/** How much longer the longest stall may be than under the same load without updates. */
const stallMoreMsMax = 200
const errorsShown = 20

/** Returns sentences for what was lost, wrong or beyond its limit; none where all is as it must be. */
export function problemsOf(result: UpdateSoakResult, { updates }: UpdateSoakOptions): string[] {
  const { quiet, updating, readyReported, reportsLost } = result
  const ready = quiet.ready + updating.ready
  const more = updating.stallMs - quiet.stallMs
  return [
    ...[...quiet.errors, ...updating.errors].map((error) => `error: ${error}`),
    ...(reportsLost > 0 ? [`${reportsLost} reports were declared lost by the edge`] : []),
    ...(readyReported < ready ? [`${ready} devices became ready, and ${readyReported} are reported as ready`] : []),
    ...(more > stallMoreMsMax
      ? [`the longest stall was ${more.toFixed(0)} ms above that without updates; the limit is ${stallMoreMsMax} ms`]
      : []),
    ...(result.updates < updates ? [`only ${result.updates} of ${updates} updates were done`] : []),
    ...(updating.writes === 0 || ready === 0 ? ['no device booted and wrote: nothing was tried'] : []),
  ]
}

interface Circumstances {
  options: UpdateSoakOptions
  /** ISO 8601. */
  date: string
  processors: number
}

export function asMarkdown(result: UpdateSoakResult, { options, date, processors }: Circumstances): string {
  const { quiet, updating } = result
  const problems = problemsOf(result, options)
  const number = (value: number) => value.toLocaleString('en-GB')
  const row = (name: string, of: (account: typeof quiet) => string) => `| ${name} | ${of(quiet)} | ${of(updating)} |`
  return `# An edge updated ${options.updates} times under load (${date.slice(0, 10)})

${options.devices} simulated devices boot and read for 20 s, over and over, and ${writerCount} devices read and write
without a pause; every byte is compared. The control plane orders the edge to a newer release and back to the installed
one by turns; every tenth order is a release that is refused by the control plane, and left by itself after a minute.
After five orders the same load runs for as long without one.

${date}, ${processors} processors; ${result.minutes.toFixed(1)} minutes.
Command: \`npm run soak -- update --updates ${options.updates} --devices ${options.devices}${options.write ? ' --write' : ''}\`.

| | without updates | with updates |
|---|---|---|
${row('boots that became ready', ({ ready }) => number(ready))}
${row('reads', ({ reads }) => number(reads))}
${row('writes', ({ writes }) => number(writes))}
${row('longest stall, ms', ({ stallMs }) => stallMs.toFixed(0))}
${row('**errors**', ({ errors }) => `**${errors.length}**`)}

Updates and roll-backs: ${result.updates}, of which ${result.left} were left for the former program by themselves. Boots
reported as ready: ${number(result.readyReported)}. **Reports lost: ${result.reportsLost}**.

${problems.length === 0 ? 'Nothing was lost, and no limit was exceeded.' : shortened(problems).join('\n')}
`
}

function shortened(problems: string[]): string[] {
  const shown = problems.slice(0, errorsShown).map((problem) => `- ${problem}`)
  return problems.length > errorsShown ? [...shown, `- and ${problems.length - errorsShown} more`] : shown
}
