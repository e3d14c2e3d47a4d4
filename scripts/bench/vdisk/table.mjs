/** Prints the measurements of each part, as medians of the rounds. */
export function asMarkdown({ date, rounds, processors, loadBefore, merge, reads, imports, formats, writes }) {
  const parts = [
    merge && mergeText(merge),
    reads && readsText(reads),
    imports && importsText(imports),
    formats && formatsText(formats),
    writes && writesText(writes),
  ]
  return `# The vDisk store beside raw files and qcow2

Medians of ${rounds}, all by turns. ${date}, ${processors} processors, load ${loadBefore.toFixed(2)} before. Command: \`npm run bench -- vdisk${rounds === 3 ? '' : ` --rounds ${rounds}`}\`

${parts.filter(Boolean).join('\n')}`
}

function mergeText({ extents, differenceMib, difference, scattered }) {
  const of = (runs, name) => median(runs.map((run) => run[name]))
  const rows = [
    [
      `merge of a difference of ${differenceMib} MiB, page cache empty`,
      `${ms(of(difference, 'mergeUs'))} ms`,
      '<= 100 ms',
    ],
    ['bytes of data and nodes that it copied or wrote', of(difference, 'copiedBytes'), '0'],
    [`merge of ${extents} scattered blocks`, `${ms(of(scattered, 'mergeUs'))} ms`, ''],
    ['opening that vDisk of 100 GiB, page cache empty', `${ms(of(scattered, 'openUs'))} ms`, '<= 50 ms'],
    [
      'most memory of the process until then and while counting',
      `${(of(scattered, 'peakKib') / 1024).toFixed(1)} MiB`,
      '<= 64 MiB',
    ],
    ['counting what it refers to', `${ms(of(scattered, 'usageUs'))} ms`, ''],
  ]
  return `| merge and opening | measured | goal |\n|---|---|---|\n${table(rows)}\n`
}

function readsText({ mib, versions, rounds }) {
  const rows = ['warm', 'cold'].map((name) => {
    const runs = rounds.map((round) => round[name])
    const ratio = (which) => median(runs.map((run) => run.rawUs / run[which])).toFixed(2)
    const us = median(runs.map((run) => run.rawUs / run.reads)).toFixed(1)
    return [name, us, ratio('baseUs'), ratio('chainUs'), '>= 0.95']
  })
  return `Random reads of 32 KiB of a disk of ${mib} MiB, throughput as a part of the raw file's; each of ${versions} versions changed a hundredth of
the blocks, in single blocks. Cold: page cache and nodes gone, no block checked yet.

| reads | raw file, us a read | base | version ${versions} | goal |
|---|---|---|---|---|
${table(rows)}
`
}

function importsText({ imageMib, seconds }) {
  const ours = median(seconds.bootfarm)
  const theirs = median(seconds['qemu-img'])
  const rows = [[ours.toFixed(1), theirs.toFixed(1), (theirs / ours).toFixed(2)]]
  return `Import of a raw image of ${imageMib} MiB, every block checked in by its SHA-256 and durable; beside \`qemu-img convert -O qcow2\` and \`sync\`.

| bootfarm s | qemu-img s | times qemu-img |
|---|---|---|
${table(rows)}
`
}

function formatsText({ imageMib, imports, exports, fileMib }) {
  const rowsOf = (measured, cell) =>
    Object.entries(measured).map(([name, seconds]) => {
      const ratio = (median(seconds) / median(measured.raw)).toFixed(2)
      return [name, ...cell(name), median(seconds).toFixed(2), ratio]
    })
  return `Import of the same disk of ${imageMib} MiB from files of other formats, each with a cold page cache.

| format | file MiB | s | times raw |
|---|---|---|---|
${table(rowsOf(imports, (name) => [fileMib[name].toFixed(0)]))}

Its export, with a cold page cache, synced.

| format | s | times raw |
|---|---|---|
${table(rowsOf(exports, () => []))}
`
}

function writesText(measured) {
  const names = [...new Set(measured.map(({ name }) => name))]
  const rate = (name, by) =>
    median(measured.filter((one) => one.name === name && one.by === by).map(({ bytes, us }) => bytes / us))
  const rows = names.map((name) => {
    const qcow2 = rate(name, 'qcow2')
    const cell = (by) => `${rate(name, by).toFixed(1)} (${(rate(name, by) / qcow2).toFixed(2)})`
    return [name, cell('edge'), '>= 0.80', cell('edge_persistent'), qcow2.toFixed(1), cell('qcow2, unsafe')]
  })
  return `Writes in MB/s (and times qcow2): one NBD client with 16 requests in flight and a flush after 8 MiB and at the end; ours through the device's
two processes, the stream on loopback and the edge; qcow2 above the same disk through qemu-nbd's Unix socket. \`edge\` is gone with its
process and flushes nothing, as \`--cache=unsafe\`; \`edge_persistent\` syncs before each answer, qcow2 at each flush.

| writes | edge | goal | edge_persistent | qcow2 | qcow2, unsafe |
|---|---|---|---|---|---|
${table(rows)}
`
}

const table = (rows) => rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
const ms = (us) => (us / 1000).toFixed(1)

function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
