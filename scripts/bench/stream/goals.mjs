/**
 * The goals to reach in one run. A goal whose case or peer was not measured is not judged.
 * @typedef {{ goal: string, found: string, reached: boolean }} Judgement
 */

const megabytes = (one) => one.mbPerSecond
const processor = (one) => one.serverSecondsPerGb

/** The rate of 16 devices that read 32 KiB each, beside nbdkit's and qemu-nbd's. */
const ofSixteen = [
  { mode: 'S', by: 'encrypted', nbdkit: 0.95, qemuNbd: 1.9, processorTimes: 0.7 },
  { mode: 'S', by: 'clear', nbdkit: 1.1, processorTimes: 0.6 },
  { mode: 'U', by: 'encrypted', nbdkit: 1.4, processorMost: 0.35 },
  { mode: 'U', by: 'clear', nbdkit: 1.75, processorMost: 0.26 },
]
/** How much of the rate with 8 devices is left with 256. */
const ofMany = [
  { mode: 'U', least: 0.9 },
  { mode: 'S', least: 0.8 },
]

/** With 1 % of packets lost in each direction, a round trip of 0.5 ms, and one read in flight. */
const ofLosses = { name: '0.5 ms, 1 % loss', nbdkit: 4, p99Us: 5000 }
const ofReplays = { how: 'learned profile', timesBytes: 1.3 }
/** The last ten boots beside the first ten. */
const ofFleet = { times: 1.7 }

/** Beside another build of the edge. */
const ofBuilds = { least: 0.9, processorMost: 1.03, bootMost: 1.1 }

/** Of real content, packed, beside nbdkit's plain bytes in one run, and beside another build of the edge. */
const ofContent = {
  rate: 1.25,
  processorTimes: 0.42,
  port: 1.9,
  timesBytes: 0.6,
  noise: { name: '16 devices, random bytes', least: 0.97 },
  small: { name: '1 device, reads of 4 KiB', p99Times: 1.1 },
}

/** @returns {Judgement[]} */
export function judgeContent({ throughput = [], ports = [], replays = [] }) {
  const judgements = []
  const times = (ones, by, other, pick) => {
    const of = (name) => ones.filter((one) => one.by === name).map(pick)
    return of(by).length === 0 || of(other).length === 0 ? undefined : median(of(by)) / median(of(other))
  }
  const judge = (goal, found, reached) => {
    if (found !== undefined) judgements.push({ goal, found: found.toFixed(2), reached: reached(found) })
  }
  const { rate, processorTimes, small } = ofContent
  const inS = throughput.filter((one) => one.mode === 'S' && one.case === '16 devices')
  const what = 'S, encrypted, 16 devices'
  const atLeast = (least) => (found) => found >= least
  const atMost = (most) => (found) => found <= most
  judge(`${what}: at least ${rate} times nbdkit`, times(inS, 'encrypted', 'nbdkit', megabytes), atLeast(rate))
  const seconds = times(inS, 'encrypted', 'nbdkit', processor)
  judge(`${what}: at most ${processorTimes} times nbdkit's CPU s/GB`, seconds, atMost(processorTimes))
  const inU = throughput.filter((one) => one.mode === 'U' && one.case === '16 devices')
  judge('U, 16 devices: as fast as before', times(inU, 'encrypted', 'encrypted before', megabytes), atLeast(1))
  const { noise } = ofContent
  for (const mode of ['S', 'U']) {
    const ones = throughput.filter((one) => one.mode === mode && one.case === noise.name)
    const kept = times(ones, 'encrypted', 'encrypted before', megabytes)
    judge(`${mode}, ${noise.name}: at least ${noise.least} times the MB/s before`, kept, atLeast(noise.least))
  }
  const smallReads = throughput.filter((one) => one.mode === 'S' && one.case === small.name)
  const p99 = times(smallReads, 'encrypted', 'encrypted before', (one) => one.p99Us)
  judge(`S, ${small.name}: p99 at most ${small.p99Times} times that before`, p99, atMost(small.p99Times))
  const overPort = times(ports, 'encrypted', 'nbdkit', megabytes)
  judge(`behind a slow port, 16 devices: at least ${ofContent.port} times nbdkit`, overPort, atLeast(ofContent.port))
  const learned = replays.filter((one) => one.by === 'encrypted' && one.how === ofReplays.how)
  const found = learned.length === 0 ? undefined : median(learned.map((one) => one.timesBytes))
  const most = ofContent.timesBytes
  judge(`boot replay, learned profile: at most ${most} times the bare bytes at link speed`, found, atMost(most))
  return judgements
}

/** @returns {Judgement[]} */
export function judge({ throughput = [], losses = [], replays = [], fleet = [] }) {
  if (throughput.some(({ by }) => by.endsWith(' before'))) return judgeBuilds(throughput)
  return [...judgeThroughput(throughput), ...judgeLosses(losses), ...judgeReplays(replays), ...judgeFleet(fleet)]
}

function judgeLosses(losses) {
  const { name, nbdkit, p99Us } = ofLosses
  const of = (by) => losses.filter((one) => one.case === name && one.by === by)
  const judgements = []
  for (const by of ['encrypted', 'clear']) {
    if (of(by).length === 0) continue
    const times = median(of(by).map(megabytes)) / median(of('nbdkit').map(megabytes))
    const found = median(of(by).map((one) => one.p99Us))
    judgements.push({
      goal: `${name}, ${by}: at least ${nbdkit} times nbdkit`,
      found: times.toFixed(2),
      reached: times >= nbdkit,
    })
    judgements.push({
      goal: `${name}, ${by}: p99 at most ${p99Us / 1000} ms`,
      found: (found / 1000).toFixed(1),
      reached: found <= p99Us,
    })
  }
  return judgements
}

function judgeReplays(replays) {
  const { how, timesBytes } = ofReplays
  const judgements = []
  for (const name of new Set(replays.map((one) => one.case))) {
    for (const by of ['encrypted', 'clear']) {
      const ones = replays.filter((one) => one.case === name && one.by === by && one.how === how)
      if (ones.length === 0) continue
      const found = median(ones.map((one) => one.timesBytes))
      judgements.push({
        goal: `${name}, ${by}, ${how}: at most ${timesBytes} times the bare bytes at link speed`,
        found: found.toFixed(2),
        reached: found <= timesBytes,
      })
    }
  }
  return judgements
}

function judgeFleet(fleet) {
  return ['encrypted', 'clear'].flatMap((by) => {
    const ones = fleet.filter((one) => one.by === by)
    if (ones.length === 0) return []
    const found = median(ones.map(({ lastSeconds, firstSeconds }) => lastSeconds / firstSeconds))
    const goal = `${ones[0].devices} devices boot, ${by}: every byte right, the last ten take at most ${ofFleet.times} times as long as the first ten`
    const own = { goal, found: found.toFixed(2), reached: found <= ofFleet.times }
    const before = fleet.filter((one) => one.by === `${by} before`)
    if (before.length === 0) return [own]
    const lastOf = (boots) => median(boots.map(({ lastSeconds }) => lastSeconds))
    const times = lastOf(ones) / lastOf(before)
    const asBefore = `${ones[0].devices} devices boot, ${by}: the last ten take at most ${ofBuilds.bootMost} times as long as before`
    return [own, { goal: asBefore, found: times.toFixed(2), reached: times <= ofBuilds.bootMost }]
  })
}

function judgeThroughput(throughput) {
  const judgements = []
  const judge = (goal, found, reached) => judgements.push({ goal, found, reached })
  const medianOf = (mode, name, by, pick) => {
    const values = throughput.filter((one) => one.mode === mode && one.case === name && one.by === by).map(pick)
    return values.length === 0 ? undefined : median(values)
  }
  for (const { mode, by, nbdkit, qemuNbd, processorTimes, processorMost } of ofSixteen) {
    const name = '16 devices'
    const what = `${mode}, ${by}, ${name}`
    const rate = medianOf(mode, name, by, megabytes)
    if (rate === undefined) continue
    for (const [other, least] of [
      ['nbdkit', nbdkit],
      ['qemu-nbd', qemuNbd],
    ]) {
      const theirs = medianOf(mode, name, other, megabytes)
      if (least === undefined || theirs === undefined) continue
      judge(`${what}: at least ${least} times ${other}`, (rate / theirs).toFixed(2), rate / theirs >= least)
    }
    const seconds = medianOf(mode, name, by, processor)
    const theirs = medianOf(mode, name, 'nbdkit', processor)
    if (processorTimes !== undefined && theirs !== undefined)
      judge(
        `${what}: at most ${processorTimes} times nbdkit's CPU s/GB`,
        (seconds / theirs).toFixed(2),
        seconds / theirs <= processorTimes,
      )
    if (processorMost !== undefined)
      judge(`${what}: at most ${processorMost} CPU s/GB`, seconds.toFixed(2), seconds <= processorMost)
  }
  for (const { mode, least } of ofMany) {
    for (const by of ['encrypted', 'clear']) {
      const few = medianOf(mode, '8 devices', by, megabytes)
      const many = medianOf(mode, '256 devices', by, megabytes)
      if (few === undefined || many === undefined) continue
      const goal = `${mode}, ${by}: 256 devices keep at least ${least} of the rate of 8`
      judge(goal, (many / few).toFixed(2), many / few >= least)
    }
  }
  return judgements
}

function judgeBuilds(throughput) {
  const judgements = []
  const { least, processorMost } = ofBuilds
  const rows = new Set(throughput.map((one) => `${one.mode}, ${one.case}`))
  for (const what of rows) {
    const ones = throughput.filter((one) => `${one.mode}, ${one.case}` === what)
    for (const cipher of ['encrypted', 'clear']) {
      const times = (pick) => {
        const medianOf = (by) => median(ones.filter((one) => one.by === by).map(pick))
        return medianOf(cipher) / medianOf(`${cipher} before`)
      }
      const [rate, seconds] = [times(megabytes), times(processor)]
      const name = `${what}, ${cipher}`
      judgements.push({
        goal: `${name}: at least ${least} times the MB/s before`,
        found: rate.toFixed(3),
        reached: rate >= least,
      })
      judgements.push({
        goal: `${name}: at most ${processorMost} times the CPU s/GB before`,
        found: seconds.toFixed(3),
        reached: seconds <= processorMost,
      })
    }
  }
  return judgements
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
