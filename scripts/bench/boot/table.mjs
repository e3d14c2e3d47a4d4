/**
 * @typedef {object} Boot
 * @property {string} case
 * @property {string} by
 * @property {number} readyMs
 * @property {Record<string, number> | undefined} phases ms of each phase as the edge reports them
 */

/**
 * Prints medians with minimum and maximum, each beside nbdkit's of the same run, and where our time went.
 * @param {{ date: string, rounds: number, processors: number, loadBefore: number, boots: Boot[] }} result
 */
export function asMarkdown({ date, rounds, processors, loadBefore, boots }) {
  const rows = groups(boots).map(({ name, by, times }) => {
    const reference = times.length && groups(boots).find((group) => group.name === name && group.by === 'nbdkit')
    const ratio = by === 'nbdkit' ? '' : (median(times) / median(reference.times)).toFixed(2)
    return `| ${name} | ${by} | ${seconds(median(times))} | ${seconds(Math.min(...times))} | ${seconds(Math.max(...times))} | ${ratio} |`
  })
  return `# Boot times

Seconds from power-on until the machine is up: medians of ${rounds} with minimum and maximum, and how many times nbdkit's of the
same run. All boot the same guest (QEMU ${'`'}-accel tcg${'`'}, one processor), kernel and disk image, in turns; each has its own initramfs.

- ${'`'}bootfarm${'`'}: ${'`'}bootfarm-edge${'`'} with proxyDHCP beside the network's DHCP server, ${'`'}bootfarm-edge initramfs build${'`'}, the stream over UDP.
- ${'`'}bootfarm, prepared${'`'}: the same with the initramfs that the system made itself after ${'`'}bootfarm-target prepare${'`'}.
- ${'`'}nbdkit${'`'}: dnsmasq (DHCP and TFTP), busybox httpd, nbdkit over TCP, and an initramfs with nbd-client and only this machine's drivers.

${date}, ${processors} processors, load ${loadBefore.toFixed(2)} before. Command: ${'`'}npm run bench -- boot${rounds === 3 ? '' : ` --rounds ${rounds}`}${'`'}

| machine | by | median s | min s | max s | times nbdkit |
|---|---|---|---|---|---|
${rows.join('\n')}

Where the time of ours went, medians in seconds, from the edge's own reports; what is missing to the whole is the firmware before its
first packet.

| machine | by | ${phaseNames.join(' | ')} |
|---|---|${'---|'.repeat(phaseNames.length)}
${phaseRows(boots).join('\n')}
`
}

const phaseNames = ['dhcp', 'nbp', 'loader', 'breather', 'stage2']

function phaseRows(boots) {
  return groups(boots)
    .filter(({ phases }) => phases.length > 0)
    .map(({ name, by, phases }) => {
      const cells = phaseNames.map((phase) => {
        const times = phases.flatMap((lengths) => lengths[phase] ?? [])
        return times.length > 0 ? seconds(median(times)) : '-'
      })
      return `| ${name} | ${by} | ${cells.join(' | ')} |`
    })
}

/** Groups boots of the same machine by the same contender, in the order in which they were first measured. */
function groups(boots) {
  const byKey = new Map()
  for (const { case: name, by, readyMs, phases } of boots) {
    const key = `${name}/${by}`
    const group = byKey.get(key) ?? { name, by, times: [], phases: [] }
    byKey.set(key, group)
    group.times.push(readyMs)
    if (phases) group.phases.push(phases)
  }
  return [...byKey.values()]
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

const seconds = (ms) => (ms / 1000).toFixed(1)
