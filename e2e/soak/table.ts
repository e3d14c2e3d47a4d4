import { beyondLimits, mib } from './memory.ts'
import type { SoakOptions } from './options.ts'
import type { SoakResult } from './soak.ts'

/** Returns sentences for what was lost, doubled or grew beyond its limit; none where all is as it must be. */
export function problemsOf(result: SoakResult, kills: number): string[] {
  const { drill, changes, lostChanges, refusals, unsettled, memory, struck } = result
  const killed = Object.values(struck).reduce((sum, count) => sum + count, 0)
  return [
    ...drill.lost.map((what) => `report lost: ${what}`),
    ...drill.miscounted.map((what) => `counted wrong: ${what}`),
    ...(drill.declaredLost > 0 ? [`${drill.declaredLost} reports were declared lost by edges`] : []),
    ...lostChanges,
    ...refusals.map((what) => `refused without reason: ${what}`),
    ...unsettled,
    ...beyondLimits(memory),
    ...(killed < kills ? [`only ${killed} of ${kills} kills were done`] : []),
    ...(drill.ready === 0 ? ['no device became ready: nothing was tried'] : []),
    ...(changes.acknowledged === 0 ? ['no change was acknowledged: nothing was tried'] : []),
  ]
}

interface Circumstances {
  options: SoakOptions
  order: string
  /** ISO 8601. */
  date: string
  processors: number
}

export function asMarkdown(result: SoakResult, { options, order, date, processors }: Circumstances): string {
  const { drill, struck, acknowledgements, changes, memory } = result
  const problems = problemsOf(result, options.kills)
  const number = (value: number) => value.toLocaleString('en-GB')
  const cut = result.cutMinutes.map((minutes) => minutes.toFixed(1)).join(', ')
  return `# Killed in any order for ${options.minutes} ${options.minutes === 1 ? 'minute' : 'minutes'}

Embedded PostgreSQL, two API processes behind a balancer that takes them in turns, and three edges of an organization each; six simulated devices of each edge boot every
two seconds, and somebody renames and adds devices through both API processes. One API process, PostgreSQL or one of two edges is killed (\`kill -9\`) at an instant of the
seed and started again. Half of the answers that acknowledge reports never reach the edge, and each edge's uplink is cut for half a minute to three minutes at a time.
What an edge had printed as over, it had written to its log before; what the API had answered with success was promised.

${date}, ${processors} processors. Command: \`npm run soak -- --minutes ${options.minutes} --kills ${options.kills} --seed ${options.seed}${options.write ? ' --write' : ''}\`; ${result.minutes.toFixed(1)} minutes with all that was reported at its end.

| | |
|---|---|
| killed | API ${struck.api}, PostgreSQL ${struck.postgres}, edges ${struck.edge} |
| minutes in which the edges were cut off | ${cut} |
| acknowledgements of reports | ${number(acknowledgements.lost)} lost, ${number(acknowledgements.passed)} passed |
| boots over at the edges, of them ready | ${number(drill.boots)}, ${number(drill.ready)} |
| **reports lost** | **${drill.lost.length + drill.declaredLost}** |
| **counted twice or otherwise wrong** | **${drill.miscounted.length}** |
| changes through the API: acknowledged; answer never came; refused | ${number(changes.acknowledged)}; ${number(changes.unknown)}; ${number(changes.refused)} |
| **acknowledged changes lost** | **${result.lostChanges.length}** |

| resident memory, MiB | early | late | peak | limit |
|---|---|---|---|---|
${memory.map(({ who, ...use }) => `| ${who} | ${mib(use.earlyBytes)} | ${mib(use.lateBytes)} | ${mib(use.peakBytes)} | ${mib(use.limitBytes)} |`).join('\n')}

Memory is looked at each 5 s; early is the mean of the run's second quarter, late that of its last.

${problems.length === 0 ? 'Nothing was lost, doubled or beyond its limit.' : `Problems:\n\n${problems.map((problem) => `- ${problem}`).join('\n')}`}

Order: ${order}
`
}
