import { readFileSync } from 'node:fs'
import { cable, Lab } from '../../lib/lab/namespaces.mjs'

/** What the port of a small switch keeps for a line. */
const queue = '128kb'
/** Ethernet's bytes per frame that an interface of Linux does not count: preamble, checksum and gap. */
const uncountedFrameBytes = 24
const samplesEveryMs = 100
const devicesInterface = 'devices0'

/** An edge and devices at a switch, whose line towards the devices has the speed of the edge's link. */
export class Line {
  edgeIp = '10.79.0.1'
  devicesInterface = devicesInterface
  #lab = new Lab('predict')
  #edge = this.#lab.namespace('e')
  #switch = this.#lab.namespace('s')
  #devices = this.#lab.namespace('d')
  #isLimited = false

  constructor() {
    this.#switch.bridge('bridge0')
    const ends = [
      { port: 'port0', namespace: this.#edge, device: 'edge0', address: `${this.edgeIp}/16` },
      { port: 'port1', namespace: this.#devices, device: devicesInterface, address: '10.79.0.2/16' },
    ]
    for (const { port, ...end } of ends) {
      cable({ namespace: this.#switch, device: port }, end)
      this.#switch.join('bridge0', port)
      // Packets have the size that they have on a line.
      end.namespace.segmentationOffload(end.device, false)
      this.#switch.segmentationOffload(port, false)
    }
  }

  /** @param {number} mbitPerSecond */
  limit(mbitPerSecond) {
    if (this.#isLimited) this.#switch.run('tc', 'qdisc', 'del', 'dev', 'port1', 'root')
    this.#switch.rate('port1', { mbitPerSecond, queue })
    this.#isLimited = true
  }

  onEdge(program, args) {
    return this.#edge.command(program, args)
  }

  onDevices(program, args) {
    return this.#devices.command(program, args)
  }

  endAll() {
    this.#lab.endAll()
  }

  remove() {
    this.#lab.remove()
  }
}

/** Counts what arrives at the devices of a line, while one of their programs runs. */
export class LineUse {
  #samples = []
  #timer
  #pid

  /** @param {number} pid of a program there */
  constructor(pid) {
    this.#pid = pid
    this.#timer = setInterval(() => this.#sample(), samplesEveryMs)
  }

  /** @returns {number} the most bytes that the line carried in a second, from the first packet on */
  end() {
    clearInterval(this.#timer)
    const first = this.#samples[0]
    if (!first) return 0
    let most = 0
    let from = first
    for (const sample of this.#samples) {
      const seconds = (sample.atMs - from.atMs) / 1000
      if (seconds < 1) continue
      most = Math.max(most, (sample.bytes - from.bytes) / seconds)
      from = sample
    }
    return most
  }

  /** The table of interfaces of the program's own network namespace (proc_net_dev(5)). */
  #sample() {
    try {
      const line = readFileSync(`/proc/${this.#pid}/net/dev`, 'utf8').match(
        new RegExp(`^ *${devicesInterface}:(.*)$`, 'm'),
      )
      const [bytes = 0, packets = 0] = (line?.[1] ?? '').trim().split(/ +/).map(Number)
      this.#samples.push({ atMs: performance.now(), bytes: bytes + packets * uncountedFrameBytes })
    } catch {
      // The program has ended.
      clearInterval(this.#timer)
    }
  }
}
