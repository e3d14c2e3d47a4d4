const goalMs = 150

/** Percentiles by procedure and filter, what it cost, and whether the reads reach their goal. */
export function asMarkdown(result) {
  const { size, reads, failures, spent } = result
  const number = (value) => value.toLocaleString('en-GB')
  const failed = Object.entries(failures).map(([what, count]) => `${what} (${count} times)`)
  const slow = result.procedures.filter((row) => isRead(row) && row.p99Ms > goalMs).map(({ name }) => name)
  const used = spent.api + spent.postgres
  return `# Lists, filters and pages while boots come in

${number(size.boots)} boots of ${size.days} days, ${number(size.devices)} devices, ${number(size.sites)} sites, ${size.organizations} organizations; embedded PostgreSQL and one API process as in
production, row-level security on. ${result.readsPerSecond} requests a second, each in the session of one of the organizations' owners, while ${result.bootsPerSecond} boots a second come in
by signed requests of ${number(size.sites)} edges. Requests begin at fixed instants whatever becomes of earlier ones, and a time counts from the instant at which the request
was due: waiting behind others is in it. The load's own processor time is taken from the same ${result.processors} processors.

${result.date}, ${result.seconds} s after 60 s of warming up, load ${result.loadBefore.toFixed(2)} before and ${result.loadAfter.toFixed(2)} after. Command: \`npm run bench -- api --write\`

| request | count | p50 ms | p95 ms | p99 ms | max ms |
|---|---|---|---|---|---|
${[...result.procedures, { ...reads, name: '**all reads**' }].map(row).join('\n')}

Goal: p99 of all reads at most ${goalMs} ms: **${reads.p99Ms <= goalMs ? 'reached' : 'missed'}**. Kinds of reads beyond it alone: ${slow.length > 0 ? slow.join(', ') : 'none'}.
Goal: ${result.bootsPerSecond} boots a second taken in: **${result.bootsTakenPerSecond >= 0.99 * result.bootsPerSecond ? 'reached' : 'missed'}** (${result.bootsTakenPerSecond.toFixed(1)}). Answers that were no 200: ${failed.length > 0 ? failed.join('; ') : 'none'}.

Processor time in those ${spent.seconds.toFixed(1)} s: API ${spent.api.toFixed(1)} s, PostgreSQL ${spent.postgres.toFixed(1)} s, together ${(used / spent.seconds).toFixed(2)} of ${result.processors} processors; the load
${spent.generator.toFixed(1)} s. The API's memory at its peak: ${result.apiMemoryMiB} MiB.${seeding(result.seeded)}

One request of each kind, alone:

| request | API ms | PostgreSQL ms |
|---|---|---|
${result.costs.map(({ name, apiMs, postgresMs }) => `| ${name} | ${apiMs.toFixed(1)} | ${postgresMs.toFixed(1)} |`).join('\n')}
`
}

const isRead = ({ name }) => !name.startsWith('POST')

function seeding(steps) {
  return steps.length > 0 ? ` Seeding (\`node packages/db/src/cli.ts seed\`): ${steps.join(', ')}.` : ''
}

function row({ name, count, p50Ms, p95Ms, p99Ms, maxMs }) {
  const times = [p50Ms, p95Ms, p99Ms, maxMs].map((value) => value.toFixed(0))
  return `| ${[name, count, ...times].join(' | ')} |`
}
