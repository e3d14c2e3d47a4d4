import { DueHeap } from './due-heap.ts'
import type { Trace } from './trace.ts'

/** Times in µs, speeds in bytes per µs, which is MB/s. */

export interface StormDevice {
  startUs: number
  trace: Trace
  /** Its share of the link beside that of others: networks are not fair to a few per cent. */
  weight: number
}

/** One edge and its devices. */
export interface EdgeLimits {
  /** What the edge's link or its processors carry, whichever is less. */
  bytesPerUs: number
  /** What the device's own link carries. */
  deviceBytesPerUs: number
  /** Time that a disk of the edge takes for bytes that nobody has read before; null: all are in its memory. */
  coldUsPerByte: number | null
}

export interface StormResult {
  /** By device: from its start until ready. */
  totalUs: Float64Array
  /** By device: the part in which it waited for a disk of the edge. */
  storageUs: Float64Array
  /** When the last device was ready. */
  lastUs: number
  /** The most that was sent in a second, on average. */
  peakBytesPerUs: number
}

const windowUs = 1_000_000
/** Some hours: the storm's ends beyond that count as part of the last window. */
const windowsMax = 16_384
/** Some milliseconds of work. */
const eventsBetweenPauses = 20_000

/** The device's next timer ends this. */
const waiting = { start: 0, storage: 1, beside: 2, after: 3 } as const

/**
 * Replays traces of devices that share an edge. The link is shared in proportion to weights among the transfers in
 * progress (processor sharing). A cold disk is read once: the first device that needs bytes waits for them, and so do
 * those that need them meanwhile. Pauses between events, so that the caller can let others work.
 */
export function* simulateStorm(devices: StormDevice[], limits: EdgeLimits): Generator<void, StormResult> {
  const storm = new Storm(devices, limits)
  for (let event = 1; storm.next(); event += 1) if (event % eventsBetweenPauses === 0) yield
  return storm.result()
}

class Storm {
  readonly #devices: StormDevice[]
  readonly #limits: EdgeLimits
  readonly #timers: DueHeap
  /** By the virtual time in which a transfer of weight 1 gets one byte. */
  readonly #transfers: DueHeap
  readonly #waitsFor: Uint8Array
  readonly #step: Int32Array
  /** Of the step's own time and its transfer: those that are not over. */
  readonly #open: Uint8Array
  readonly #totalUs: Float64Array
  readonly #storageUs: Float64Array
  readonly #sent: number[] = [0]
  #nowUs = 0
  #virtual = 0
  #weight = 0
  #lastUs = 0
  /** Bytes of the disk that are in the edge's memory, and those that are when its disk has read on. */
  #diskHeld = 0
  #diskAhead = 0
  #diskAtUs = 0

  constructor(devices: StormDevice[], limits: EdgeLimits) {
    const count = devices.length
    this.#devices = devices
    this.#limits = limits
    this.#timers = new DueHeap(count)
    this.#transfers = new DueHeap(count)
    this.#waitsFor = new Uint8Array(count)
    this.#step = new Int32Array(count)
    this.#open = new Uint8Array(count)
    this.#totalUs = new Float64Array(count)
    this.#storageUs = new Float64Array(count)
    for (const [id, { startUs }] of devices.entries()) this.#timers.push(id, startUs)
  }

  /** Handles the next event; false where there is none. */
  next(): boolean {
    const rate = this.#rate()
    const transferAtUs =
      this.#transfers.size > 0
        ? this.#nowUs + Math.max(0, this.#transfers.nextAt - this.#virtual) / rate
        : Number.POSITIVE_INFINITY
    if (this.#timers.size === 0 && this.#transfers.size === 0) return false
    if (transferAtUs <= this.#timers.nextAt) {
      this.#advance(transferAtUs, rate)
      const id = this.#transfers.pop()
      this.#weight = this.#transfers.size === 0 ? 0 : this.#weight - this.#weightOf(id)
      this.#close(id)
    } else {
      this.#advance(this.#timers.nextAt, rate)
      this.#onTimer(this.#timers.pop())
    }
    return true
  }

  result(): StormResult {
    return {
      totalUs: this.#totalUs,
      storageUs: this.#storageUs,
      lastUs: this.#lastUs,
      peakBytesPerUs: Math.max(...this.#sent) / windowUs,
    }
  }

  /** Of a transfer of weight 1. */
  #rate(): number {
    if (this.#weight <= 0) return 0
    return Math.min(this.#limits.deviceBytesPerUs, this.#limits.bytesPerUs / this.#weight)
  }

  #advance(toUs: number, rate: number): void {
    const bytesPerUs = rate * this.#weight
    if (bytesPerUs > 0) {
      for (let from = this.#nowUs; from < toUs; ) {
        const window = Math.min(windowsMax - 1, Math.floor(from / windowUs))
        const until = window === windowsMax - 1 ? toUs : Math.min(toUs, (window + 1) * windowUs)
        while (this.#sent.length <= window) this.#sent.push(0)
        this.#sent[window] = (this.#sent[window] ?? 0) + (until - from) * bytesPerUs
        from = until
      }
      this.#virtual += rate * (toUs - this.#nowUs)
    }
    this.#nowUs = toUs
  }

  #onTimer(id: number): void {
    switch (this.#waitsFor[id]) {
      case waiting.start:
        this.#beginStep(id)
        break
      case waiting.storage:
        this.#transfer(id)
        break
      case waiting.beside:
        this.#close(id)
        break
      default:
        this.#step[id] = (this.#step[id] ?? 0) + 1
        this.#beginStep(id)
    }
  }

  #beginStep(id: number): void {
    const { trace, startUs } = this.#device(id)
    if ((this.#step[id] ?? 0) >= trace.steps) {
      this.#totalUs[id] = this.#nowUs - startUs
      this.#lastUs = this.#nowUs
      return
    }
    const heldAtUs = this.#heldAtUs(id)
    if (heldAtUs <= this.#nowUs) {
      this.#transfer(id)
      return
    }
    this.#storageUs[id] = (this.#storageUs[id] ?? 0) + heldAtUs - this.#nowUs
    this.#wait(id, waiting.storage, heldAtUs - this.#nowUs)
  }

  /** When the bytes of the device's step are in the edge's memory. */
  #heldAtUs(id: number): number {
    const { coldUsPerByte } = this.#limits
    if (coldUsPerByte === null) return this.#nowUs
    const { trace } = this.#device(id)
    const step = this.#step[id] ?? 0
    const end = (trace.diskFrom[step] ?? 0) + (trace.diskBytes[step] ?? 0)
    if (this.#diskAtUs <= this.#nowUs) this.#diskHeld = this.#diskAhead
    if (end <= this.#diskHeld) return this.#nowUs
    if (end > this.#diskAhead) {
      this.#diskAtUs = Math.max(this.#diskAtUs, this.#nowUs) + (end - this.#diskAhead) * coldUsPerByte
      this.#diskAhead = end
    }
    return this.#diskAtUs
  }

  #transfer(id: number): void {
    const { trace, weight } = this.#device(id)
    const step = this.#step[id] ?? 0
    const [bytes, besideUs] = [trace.bytes[step] ?? 0, trace.besideUs[step] ?? 0]
    this.#open[id] = (bytes > 0 ? 1 : 0) + (besideUs > 0 ? 1 : 0)
    if (bytes > 0) {
      if (this.#transfers.size === 0) this.#virtual = 0
      this.#transfers.push(id, this.#virtual + bytes / weight)
      this.#weight += weight
    }
    if (besideUs > 0) this.#wait(id, waiting.beside, besideUs)
    if (this.#open[id] === 0) this.#wait(id, waiting.after, trace.afterUs[step] ?? 0)
  }

  /** The transfer, or the time beside it, is over. */
  #close(id: number): void {
    const open = (this.#open[id] ?? 1) - 1
    this.#open[id] = open
    if (open === 0) this.#wait(id, waiting.after, this.#device(id).trace.afterUs[this.#step[id] ?? 0] ?? 0)
  }

  #wait(id: number, what: (typeof waiting)[keyof typeof waiting], us: number): void {
    this.#waitsFor[id] = what
    this.#timers.push(id, this.#nowUs + us)
  }

  #device(id: number): StormDevice {
    const device = this.#devices[id]
    if (!device) throw new Error(`there is no device ${id} of ${this.#devices.length}`)
    return device
  }

  #weightOf(id: number): number {
    return this.#device(id).weight
  }
}
