const goalMs = 150

/** Percentiles by procedure and filter, and whether the reads reach their goal. */
export function asMarkdown(result) {
  const { size, reads, failures } = result
  const number = (value) => value.toLocaleString('en-GB')
  const failed = Object.entries(failures).map(([what, count]) => `${what} (${count} times)`)
  return `# Lists, filters and pages while boots come in

${number(size.boots)} boots of ${size.days} days, ${number(size.devices)} devices, ${number(size.sites)} sites, ${size.organizations} organizations; embedded PostgreSQL and one API process as in
production, row-level security on. ${result.readsPerSecond} requests a second, each in the session of one of the organizations' owners, while ${result.bootsPerSecond} boots a second come in
by signed requests of ${number(size.sites)} edges. Requests begin at fixed instants whatever becomes of earlier ones, and a time counts from the instant at which the request
was due: waiting behind others is in it. The load's own processor time is taken from the same ${result.processors} processors.

${result.date}, ${result.seconds} s, load ${result.loadBefore.toFixed(2)} before and ${result.loadAfter.toFixed(2)} after. Command: \`npm run bench -- api --write\`

| request | count | p50 ms | p95 ms | p99 ms | max ms |
|---|---|---|---|---|---|
${[...result.procedures, { ...reads, name: '**all reads**' }].map(row).join('\n')}

Goal: p99 of all reads at most ${goalMs} ms: ${reads.p99Ms <= goalMs ? 'reached' : 'missed'}. Answers that were no 200: ${failed.length > 0 ? failed.join('; ') : 'none'}.
The API's memory at its peak: ${result.apiMemoryMiB} MiB. Seeding (\`node packages/db/src/cli.ts seed\`): ${result.seeded.join(', ')}.
`
}

function row({ name, count, p50Ms, p95Ms, p99Ms, maxMs }) {
  return `| ${[name, count, ...[p50Ms, p95Ms, p99Ms, maxMs].map((value) => value.toFixed(0))].join(' | ')} |`
}
