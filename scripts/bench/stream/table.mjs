import { median } from './goals.mjs'
import { port } from './ports.mjs'

/** Prints medians with minimum and maximum, each beside nbdkit's of the same run, and the goals. */
export function asMarkdown(result) {
  const { date, command, machine, rounds, throughput, losses, ports, replays, fleet, goals, failures, content } = result
  return wrapped(`# The stream

The stream beside NBD servers: one client for all (${'`'}edge/streamer-zig/src/bench/stream${'`'}: one loop for all devices of a process, a UDP socket with UDP_GRO or a TCP
connection for each), every byte compared with what the disk must have there. Medians of ${rounds} with minimum and maximum, and how many times nbdkit's of the same run.

- ${date}, ${'`'}${command}${'`'}
- ${machine.processors} processors (${machine.model}), Linux ${machine.kernel}, load ${machine.loadBefore.toFixed(2)} before and ${machine.loadAfter.toFixed(2)} after.
- Two network namespaces joined by a veth pair. Mode S: the kernel cuts super-packets before they leave (as for a network card that cannot: tso, gso, gro and
  tx-udp-segmentation off at both ends); mode U: they pass whole.
- nbdkit ${machine.nbdkit} with its plugin ${'`'}file${'`'}, qemu-nbd ${machine.qemuNbd} with ${'`'}--cache=writeback${'`'}; ${ourDisk(content)}
- CPU s/GB: processor time for 10^9 bytes, of the server's process (with what the kernel did in its name), of the client, and of the whole machine.
${failures.map((failure) => `- Not measured: ${failure}\n`).join('')}${goals.length > 0 ? goalTable(goals) : ''}${throughput ? throughputTable(throughput) : ''}${losses ? lossTable(losses) : ''}${ports ? portTable(ports) : ''}${replays ? replayTable(replays) : ''}${fleet ? fleetTable(fleet) : ''}`)
}

/** Breaks the lines of prose; rows of tables stay whole. */
export function wrapped(text) {
  return text.replace(/^(?!\|)(- )?(.{119,})$/gm, (_, dash = '', prose) => {
    const lines = ['']
    for (const word of prose.split(' ')) {
      const longer = lines.at(-1) === '' ? word : `${lines.at(-1)} ${word}`
      if (longer.length <= 116) lines[lines.length - 1] = longer
      else lines.push(word)
    }
    return dash + lines.join(dash ? '\n  ' : '\n')
  })
}

function ourDisk(content) {
  if (content !== 'debian') return 'ours: `bootfarm-edge serve --vdisk`. The disk (1 GiB) is locked in the page cache.'
  return `ours: ${'`'}bootfarm-edge serve --version${'`'}, from a store that was packed again (${'`'}vdisk compress${'`'}), as all edges below that can do so.
- The content is that of the Debian that machines boot in tests: for random reads all of its units of 32 KiB that have no block of zeros, in a file; for the replay the disk itself and what it read when
  it was booted from nbdkit, without blocks of zeros. Both are in the page cache. Rates are of delivered bytes: unpacked, and compared.
- Devices take packed answers in mode S. In mode U they take plain ones, as a device does (${'`'}bootfarm.codec=auto${'`'}) whose network card receives more than half of what it unpacks.
- Several devices are in two processes, since one that unpacks and compares alone is slower than a server; of their waits those of the slower process are shown.
- An edge's packed answers are measured when they are packed: random reads after 8 s of them, the learned boot when four in turn take the same bytes from the network.`
}

function goalTable(goals) {
  const rows = goals.map(({ goal, found, reached }) => `| ${goal} | ${found} | ${reached ? 'reached' : 'missed'} |`)
  return `
## Goals

| goal | found | |
|---|---|---|
${rows.join('\n')}
`
}

function throughputTable(throughput) {
  const all = groups(throughput, ['mode', 'case', 'by'])
  const rows = all.map(({ keys, ones }) => {
    const [mode, name, by] = keys
    const reference = all.find((other) => other.keys.join('/') === `${mode}/${name}/nbdkit`)
    const rates = ones.map(({ mbPerSecond }) => mbPerSecond)
    const middle = (pick) => median(ones.map(pick))
    const times =
      reference && by !== 'nbdkit'
        ? (median(rates) / median(reference.ones.map(({ mbPerSecond }) => mbPerSecond))).toFixed(2)
        : ''
    return row([
      ...keys,
      whole(median(rates)),
      whole(Math.min(...rates)),
      whole(Math.max(...rates)),
      times,
      whole(middle(({ p50Us }) => p50Us)),
      whole(middle(({ p99Us }) => p99Us)),
      middle(({ serverSecondsPerGb }) => serverSecondsPerGb).toFixed(2),
      middle(({ clientSecondsPerGb }) => clientSecondsPerGb).toFixed(2),
      middle(({ machineSecondsPerGb }) => machineSecondsPerGb).toFixed(2),
    ])
  })
  return `
## Random reads of 32 KiB

| mode | case | by | MB/s | min | max | times nbdkit | p50 µs | p99 µs | server CPU s/GB | client | machine |
|---|---|---|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`
}

function lossTable(losses) {
  const rows = groups(losses, ['case', 'by']).map(({ keys, ones }) => {
    const middle = (pick) => median(ones.map(pick))
    const rates = ones.map(({ mbPerSecond }) => mbPerSecond)
    return row([
      ...keys,
      median(rates).toFixed(1),
      Math.min(...rates).toFixed(1),
      Math.max(...rates).toFixed(1),
      whole(middle(({ p50Us }) => p50Us)),
      whole(middle(({ p99Us }) => p99Us)),
    ])
  })
  return `
## With delay and losses

One device, one read of 32 KiB in flight. Both directions go through a relay at IP level (two TUN interfaces, 250 µs each way, without segmentation), which draws losses for each packet.

| link | by | MB/s | min | max | p50 µs | p99 µs |
|---|---|---|---|---|---|---|
${rows.join('\n')}
`
}

function portTable(ports) {
  const rows = groups(ports, ['case', 'by']).map(({ keys, ones }) => {
    const middle = (pick) => median(ones.map(pick))
    const rates = ones.map(({ mbPerSecond }) => mbPerSecond)
    return row([
      ...keys,
      median(rates).toFixed(1),
      Math.min(...rates).toFixed(1),
      Math.max(...rates).toFixed(1),
      middle(({ p50Us }) => p50Us / 1000).toFixed(1),
      middle(({ p99Us }) => p99Us / 1000).toFixed(1),
      middle(({ againPercent }) => againPercent).toFixed(0),
      middle(({ leastMbPerSecond }) => leastMbPerSecond).toFixed(2),
      middle(({ mostMbPerSecond }) => mostMbPerSecond).toFixed(2),
    ])
  })
  return `
## Behind a slow port

Reads of 32 KiB through a switch (a bridge in a separate namespace, mode S) whose port towards the devices has ${port.mbitPerSecond} Mb/s and keeps ${port.queueKb} KiB (tbf); what has no room there is dropped. "Again" is what was asked for again,
for NBD what TCP sent again, in per cent of what was read; "least" and "most" are what the devices with the least and the most got.

| case | by | MB/s | min | max | p50 ms | p99 ms | again % | least MB/s | most MB/s |
|---|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`
}

function replayTable(replays) {
  const rows = groups(replays, ['case', 'by', 'how']).map(({ keys, ones }) => {
    const seconds = ones.map((one) => one.seconds * 1000)
    return row([
      ...keys,
      whole(median(seconds)),
      whole(Math.min(...seconds)),
      whole(Math.max(...seconds)),
      median(ones.map(({ timesBytes }) => timesBytes)).toFixed(2),
    ])
  })
  return `
## Boot replay

The reads of recorded boots (${'`'}e2e/traces${'`'}, or that of the Debian) as fast as they go, behind such a slow port, with a round trip of 0.5 ms, from the open session to the last
byte. The kernel shapes what the servers send; only what the devices send waits, in a program. Every server is restarted; the second boot finds the boot profile of the first. PVS's way of asking, one read of at most 32 KB in flight, is measured with our own protocol and edge: its
own headers and time-outs are not imitated, so it is that way of asking at its best.

| boot | by | how | ms | min | max | times the bare bytes at link speed |
|---|---|---|---|---|---|---|
${rows.join('\n')}
`
}

function fleetTable(fleet) {
  const rows = groups(fleet, ['by']).map(({ keys, ones }) => {
    const middle = (pick) => median(ones.map(pick))
    return row([
      ...keys,
      ones[0].devices,
      middle(({ firstSeconds }) => firstSeconds).toFixed(1),
      middle(({ lastSeconds }) => lastSeconds).toFixed(1),
      middle(({ lastSeconds, firstSeconds }) => lastSeconds / firstSeconds).toFixed(2),
      (ones[0].bytes / 1e9).toFixed(1),
      whole(middle(({ repeats }) => repeats)),
      middle(({ edgeProcessorSeconds, bytes }) => edgeProcessorSeconds / (bytes / 1e9)).toFixed(2),
    ])
  })
  return `
## Many devices boot at once

${'`'}bootfarm-sim boot${'`'}: all start together, from DHCP to ready, with the think times of a recorded boot and 0.8 s for the kernel; every byte is compared. One edge on one processor, all devices on another, mode S.

| by | devices | first ten s | last ten s | times | GB | repeated reads | edge CPU s/GB |
|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`
}

/** Groups measurements with the same values of these keys, in the order in which they were first made, ours first. */
function groups(measured, keys) {
  const order = ['encrypted', 'encrypted before', 'clear', 'clear before', 'nbdkit', 'qemu-nbd']
  const byKey = new Map()
  for (const one of measured) {
    const values = keys.map((key) => one[key])
    const group = byKey.get(values.join('/')) ?? { keys: values, ones: [] }
    byKey.set(values.join('/'), group)
    group.ones.push(one)
  }
  const place = keys.indexOf('by')
  const before = (group) => group.keys.slice(0, place).join('/')
  return [...byKey.values()].toSorted((a, b) =>
    before(a) === before(b) ? order.indexOf(a.keys[place]) - order.indexOf(b.keys[place]) : 0,
  )
}

const row = (cells) => `| ${cells.join(' | ')} |`
const whole = (value) => value.toFixed(0)
