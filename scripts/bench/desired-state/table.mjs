const goalMs = 1_000

/** Percentiles of each case, and whether they reach their goal. */
export function asMarkdown({ date, processors, loadBefore, changesPerCase, longPolls, rows }) {
  return `# From a change in the API until an edge acts on it

A real edge on loopback, embedded PostgreSQL, one or two API processes as in production. Each of ${changesPerCase} changes is made when all edges have the one before. The time
counts from the API's answer to the change until the boot script that the edge gives to one of its devices is another one: the edge has heard of the state, has checked and
written it (fsync), and acts on it. It is asked each 2 ms; 0 means that it acted before whoever made the change had the answer. Long polls are those of ${longPolls} further edges, simulated, at
${longPolls} other sites of the farm. "A device is assigned a vDisk" concerns one site alone. "A version is registered" concerns all: the simulated edges boot that vDisk, too, so that each
of them gets a new signed state; "all edges" are their times, until the state has come. With two processes changes come to one, and all edges wait at the other.

${date}, ${processors} processors, which everything shares, load ${loadBefore.toFixed(2)} before. Command: \`npm run bench -- desired-state --write\`

| change | long polls | API processes | edges | times | p50 ms | p99 ms | max ms | within a second | from the request's begin, p50 ms | max ms |
|---|---|---|---|---|---|---|---|---|---|---|
${rows.flatMap(linesOf).join('\n')}

Goal: within a second of a change. For a change of one site: **${verdict(rows, 'assign')}**. For a change of all sites at once: **${verdict(rows, 'register')}**.
The real edge is the last of them to be served.
`
}

const afterAnswer = ({ answeredAtMs, seenAtMs }) => Math.max(0, seenAtMs - answeredAtMs)

function linesOf({ name, polls, processes, changes, others }) {
  const head = [name, polls, processes]
  const fromBegin = changes.map(({ beganAtMs, seenAtMs }) => seenAtMs - beganAtMs)
  const own = [...head, 'the real one', changes.length, ...figures(changes.map(afterAnswer))]
  const lines = [[...own, whole(at(fromBegin, 0.5)), whole(Math.max(...fromBegin))]]
  if (others.length > 0)
    lines.push([...head, 'all edges', others.length, ...figures(others.map((time) => Math.max(0, time))), '', ''])
  return lines.map((cells) => `| ${cells.join(' | ')} |`)
}

const figures = (times) => [...[at(times, 0.5), at(times, 0.99), Math.max(...times)].map(whole), withinGoal(times)]

function withinGoal(times) {
  const share = times.filter((time) => time <= goalMs).length / times.length
  return `${(share * 100).toFixed(1)} %`
}

function verdict(rows, what) {
  const times = rows
    .filter((row) => row.what === what)
    .flatMap(({ changes, others }) => [...changes.map(afterAnswer), ...others])
  const longest = Math.max(...times)
  return `${longest <= goalMs ? 'reached' : 'missed'} (the longest: ${whole(longest)} ms)`
}

function at(times, share) {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
}

const whole = (value) => value.toFixed(0)
