import { readFileSync } from 'node:fs'
import { StreamDevice } from './stream-device.ts'

/**
 * A program: devices that boot from an edge, each from its own address, and then read and write their disks, or only
 * read them, until their standard input ends. The first line names the boots, as somebody on their path learns them;
 * the last one is the account of what they read. SIGUSR2 makes it print what it has measured since the last one.
 */

export interface RunningBoot {
  mac: string
  /** `/b/HANDLE`. */
  path: string
  /** The HELLO that opened its session. */
  hello: string
}

export interface WorkAccount {
  reads: number
  writes: number
  /** Whatever was answered other than it should have been. */
  wrong: string[]
}

export interface Waits {
  /** Since the last signal, or the start. */
  seconds: number
  /** Requests that were answered. */
  answers: number
  /** The longest time that one device waited for an answer, or waits still. */
  longestMs: number
  p99Ms: number
  wrong: number
}

/** @param number from 1 */
const workingMac = (number: number) => `02:bf:00:00:02:${number.toString(16).padStart(2, '0')}`

const [, , url = '', network = '', count = '0', diskFile = '', first = '1', kind = 'write'] = process.argv
const reads = kind === 'read'
const disk = readFileSync(diskFile)
/** They are written over and over, one after the other. */
const writtenCount = 64
const account: WorkAccount = { reads: 0, writes: 0, wrong: [] }
let isOver = false
let waitsMs: number[] = []
/** When the requests were sent that nothing has answered yet. */
const open = new Set<{ askedAt: number }>()
let measuredFrom = performance.now()

async function timed<T>(answer: Promise<T>): Promise<T> {
  const request = { askedAt: performance.now() }
  open.add(request)
  const answered = await answer
  open.delete(request)
  waitsMs.push(performance.now() - request.askedAt)
  return answered
}

function takeWaits(): Waits {
  const now = performance.now()
  const sorted = waitsMs.toSorted((a, b) => a - b)
  const waits = {
    seconds: (now - measuredFrom) / 1000,
    answers: sorted.length,
    longestMs: Math.max(sorted.at(-1) ?? 0, ...[...open].map(({ askedAt }) => now - askedAt)),
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    wrong: account.wrong.length,
  }
  waitsMs = []
  measuredFrom = now
  return waits
}

async function work(device: StreamDevice, mac: string, number: number): Promise<void> {
  const written = new Map<number, number>()
  const fails = (what: string) => account.wrong.push(`${mac}: ${what}`)
  const readsBack = async (sector: number) => {
    const byte = written.get(sector)
    const expected = byte === undefined ? disk.subarray(sector * 512, sector * 512 + 512) : Buffer.alloc(512, byte)
    const answer = await timed(device.read(sector))
    account.reads += 1
    if (typeof answer === 'string') fails(`read ${sector}: ${answer}`)
    else if (!answer.equals(expected)) fails(`sector ${sector} has other bytes`)
  }
  for (let round = 0; !isOver && account.wrong.length === 0; round += 1) {
    if (!reads) {
      const sector = (round % writtenCount) * 8
      const byte = 1 + ((round * 7 + number) % 255)
      const code = await timed(device.write(sector, byte))
      account.writes += 1
      if (code === 'done') written.set(sector, byte)
      else fails(`write ${sector}: ${code}`)
      await readsBack(sector)
    }
    await readsBack((round * 13) % (disk.length / 512))
    if (round % 50 === 0 && (await device.report()) !== 'report_ack') fails('its report is not acknowledged')
  }
  for (const sector of written.keys()) await readsBack(sector)
}

const devices = await Promise.all(
  Array.from({ length: Number(count) }, async (_, index) => {
    const number = Number(first) + index
    const mac = workingMac(number)
    const device = await StreamDevice.boot(url, mac, { from: `${network}.${9 + number}` })
    const welcome = await device.hello()
    if (typeof welcome === 'string') throw new Error(`${mac}: ${welcome}`)
    const [handlePath = ''] = device.script.match(/\/b\/[0-9a-f]{16}/) ?? []
    return { mac, device, path: handlePath }
  }),
)
const boots: RunningBoot[] = devices.map(({ mac, device, path }) => ({ mac, path, hello: device.sentHello }))
process.on('SIGUSR2', () => process.stdout.write(`waits ${JSON.stringify(takeWaits())}\n`))
process.stdin.on('end', () => {
  isOver = true
})
process.stdin.resume()
// Last: whoever reads it may send a signal at once.
process.stdout.write(`boots ${JSON.stringify(boots)}\n`)
await Promise.all(devices.map(({ device, mac }, index) => work(device, mac, index)))
process.stdout.write(`account ${JSON.stringify(account)}\n`)
for (const { device } of devices) device.close()
process.exit(0)
