const goals = { medianError: 0.1, within: 0.2, withinShare: 0.9, covered: 0.85 }
const times = [
  ['p50', 'p50Us'],
  ['p95', 'p95Us'],
  ['last', 'lastUs'],
]

/** Every time of every configuration: how far the prediction was from it, and whether its interval holds it. */
export function judge(measured) {
  const all = measured.flatMap(({ found, predicted }) =>
    times.map(([name, of]) => {
      const { value, low, high } = predicted[of]
      const us = found[name] * 1e6
      return { error: Math.abs(value / us - 1), isCovered: low <= us && us <= high }
    }),
  )
  const errors = all.map(({ error }) => error).toSorted((a, b) => a - b)
  const share = (is) => all.filter(is).length / all.length
  return {
    count: all.length,
    medianError: errors[Math.floor(errors.length / 2)],
    withinShare: share(({ error }) => error <= goals.within),
    covered: share(({ isCovered }) => isCovered),
  }
}

export function asMarkdown({ date, machine, model, judged, measured, failures }) {
  const percent = (part) => `${(100 * part).toFixed(1)} %`
  const reached = (is) => (is ? 'reached' : '**missed**')
  return `# Predictions of storms

${date}. Command: \`npm run bench -- prediction\`. ${machine.processors} processors (${machine.model}), load ${machine.loadBefore.toFixed(1)} before
and ${machine.loadAfter.toFixed(1)} after.

A real edge on one processor and simulated devices on another, in network namespaces; the line of a switch towards the
devices has the speed of the edge's link (tbf), and drops what its queue of 128 KiB cannot hold. Devices boot from DHCP
to ready with the think times of a recorded boot, over TFTP, HTTP and the stream, and compare every byte. Each storm is
predicted before it is measured, from what an edge reports: six boots of each version without others, two cold boots
of two versions, and one storm of 40 devices at 400 Mb/s, which is none of those below. The edge of a warm storm has
served another device before.

| goal | found | |
|---|---|---|
| median error at most 10 % | ${percent(judged.medianError)} of ${judged.count} times | ${reached(judged.medianError <= goals.medianError)} |
| nine of ten times within 20 % | ${percent(judged.withinShare)} | ${reached(judged.withinShare >= goals.withinShare)} |
| the interval holds at least 85 % | ${percent(judged.covered)} | ${reached(judged.covered >= goals.covered)} |

The fit: ${Object.entries(model)
    .map(([name, value]) => `${name} ${value === null ? 'unknown' : Number(value.toPrecision(3))}`)
    .join(
      ', ',
    )}. The longest prediction took ${Math.round(Math.max(0, ...measured.map(({ predictedMs }) => predictedMs)))} ms.

Times are in seconds: predicted, the interval in brackets, and measured. The link's use is the most in a second.

| storm | p50 | p95 | last ready | link | limit |
|---|---|---|---|---|---|
${measured.map(row).join('\n')}
${failures.length > 0 ? `\nNot measured: ${failures.join(' ')}\n` : ''}`
}

function row({ name, predicted, found }) {
  const seconds = (us) => (us / 1e6).toFixed(1)
  const cells = times.map(([measured, of]) => {
    const { value, low, high } = predicted[of]
    return `${seconds(value)} (${seconds(low)} to ${seconds(high)}): ${found[measured].toFixed(1)}`
  })
  const link = `${Math.round(100 * predicted.linkShare)} %: ${Math.round(100 * found.linkShare)} %`
  return `| ${[name, ...cells, link, predicted.limitedBy].join(' | ')} |`
}
