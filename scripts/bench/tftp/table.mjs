/**
 * @typedef {object} Transfer
 * @property {string} mode
 * @property {string} case
 * @property {string} by
 * @property {number} mbPerSecond
 * @property {number} processorSecondsPerGb of the server's process
 * @property {number} retries packets that the client asked for again
 */

/** What is to be reached: throughput as a multiple of atftpd's, and at most so many processor seconds for a GB. */
const goals = {
  '64 MB, windowsize 4': { times: 1.0 },
  '64 MB, windowsize 16': { times: 1.5, processor: 2.0 },
  '64 MB, windowsize 64': { times: 2.0 },
  '16 x 1 MB, windowsize 1': { times: 1.3 },
  '16 x 1 MB, windowsize 4': { times: 1.3 },
}

/** Medians with minimum and maximum, each beside atftpd's of the same run, then the flood. */
export function asMarkdown({ date, rounds, processors, loadBefore, transfers, flood }) {
  const all = groups(transfers)
  return `# TFTP

Throughput and the server's processor time, medians of ${rounds} with minimum and maximum, and how many times atftpd's of the same run.
One client for all servers (${'`'}bootfarm-sim tftp-get${'`'}, which receives with UDP_GRO and recvmmsg), blksize 1468, every byte compared
by its SHA-256; servers and client in two network namespaces joined by a veth pair, in turns.

- mode S: the kernel cuts super-packets before they leave (as for a network card that cannot); mode U: they pass whole.
- dnsmasq knows no windowsize. CPU s/GB: user and system time of the server's process for 10^9 bytes.

${date}, ${processors} processors, load ${loadBefore.toFixed(2)} before. Command: ${'`'}npm run bench -- tftp${rounds === 3 ? '' : ` --rounds ${rounds}`}${'`'}

| mode | case | by | median MB/s | min | max | times atftpd | goal | CPU s/GB | goal |
|---|---|---|---|---|---|---|---|---|---|
${all.map((group) => row(group, all)).join('\n')}
${flood ? floodText(flood) : ''}`
}

/** Everything that was measured. */
export const asJson = (result) => `${JSON.stringify(result, null, 2)}\n`

function row({ mode, name, by, rates, processor }, all) {
  const reference = all.find((other) => other.mode === mode && other.name === name && other.by === 'atftpd')
  const goal = by === 'bootfarm' ? goals[name] : undefined
  const times = by === 'atftpd' ? '' : (median(rates) / median(reference.rates)).toFixed(2)
  const cells = [
    mode,
    name,
    by,
    whole(median(rates)),
    whole(Math.min(...rates)),
    whole(Math.max(...rates)),
    times,
    goal?.times ? `>= ${goal.times.toFixed(1)}` : '',
    median(processor).toFixed(2),
    goal?.processor ? `<= ${goal.processor.toFixed(1)}` : '',
  ]
  return `| ${cells.join(' | ')} |`
}

function floodText({ requestsPerSecond, quiet, flooded, floods, residentBefore, residentAfter }) {
  const sum = (pick) => floods.reduce((total, one) => total + pick(one), 0)
  const rows = [
    ['alone', quiet],
    ['in the flood', flooded],
  ].map(([name, boots]) => {
    const totals = boots.map(({ totalMs }) => totalMs)
    const programs = boots.map(({ programMs }) => programMs)
    return `| ${name} | ${ms(median(totals))} | ${ms(Math.min(...totals))} | ${ms(Math.max(...totals))} | ${ms(median(programs))} |`
  })
  const slowdown = median(flooded.map(({ totalMs }) => totalMs)) / median(quiet.map(({ totalMs }) => totalMs))
  const answered = sum(({ answerBytes }) => answerBytes) / sum(({ requestBytes }) => requestBytes)
  return `
## A boot in a flood

A simulated device boots (think times left out) alone, and while ${requestsPerSecond} read requests a second come under 65,536 false addresses that
never answer: ${slowdown.toFixed(2)} times its time alone. Every byte of those requests brought ${answered.toFixed(2)} bytes back; of ${sum(({ requests }) => requests)} requests ${sum(({ answers }) => answers)}
were answered by one packet. The edge's memory: ${mib(residentBefore)} MiB before, ${mib(residentAfter)} MiB after.

| boot | median ms | min | max | of it the boot program |
|---|---|---|---|---|
${rows.join('\n')}
`
}

/** Transfers of the same mode, case and server, in the order in which they were first measured. */
function groups(transfers) {
  const byKey = new Map()
  for (const { mode, case: name, by, mbPerSecond, processorSecondsPerGb } of transfers) {
    const key = `${mode}/${name}/${by}`
    const group = byKey.get(key) ?? { mode, name, by, rates: [], processor: [] }
    byKey.set(key, group)
    group.rates.push(mbPerSecond)
    group.processor.push(processorSecondsPerGb)
  }
  const order = ['bootfarm', 'atftpd', 'dnsmasq']
  return [...byKey.values()].toSorted((a, b) =>
    a.mode === b.mode && a.name === b.name ? order.indexOf(a.by) - order.indexOf(b.by) : 0,
  )
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

const whole = (value) => value.toFixed(0)
const ms = (value) => value.toFixed(1)
const mib = (bytes) => (bytes / (1 << 20)).toFixed(1)
