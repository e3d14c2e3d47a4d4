import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { x86Kernel } from '../../../e2e/lib/images/loader-files.ts'
import { inRoot, simProgram } from '../../lib/paths.mjs'
import { WatchedProcess } from '../watched-process.mjs'

const trace = 'e2e/traces/boot-trace-bios.csv'
const bootProgramSize = 50_000
const kernelSize = 300_000
const pollMs = 100
const bootLimitMs = 120_000

/** What a device loads before it reads its disk: the kernel for an import, the boot program for its edge. */
export function writeKernel(store) {
  writeFileSync(path.join(store, 'kernel'), x86Kernel('6.1.0-1-simulated', Buffer.alloc(kernelSize, 1)))
}

export function writeBootFiles(folder) {
  mkdirSync(folder)
  writeFileSync(path.join(folder, 'undionly.kpxe'), Buffer.alloc(bootProgramSize, 1))
}

/** Makes a device for each edge of a site in a collection that boots this vDisk. @returns their MAC addresses */
export async function addDevices(db, { organizationId, siteId, vdiskId, count }) {
  const collection = await db.collection.create({ data: { organizationId, siteId, name: 'All', vdiskId } })
  const macs = Array.from({ length: count }, (_, index) => `02:bf:00:00:84:${index.toString(16).padStart(2, '0')}`)
  for (const mac of macs)
    await db.device.create({ data: { organizationId, siteId, collectionId: collection.id, mac, name: `pc-${mac}` } })
  return macs
}

/** Resolves when each edge has been told that its device boots this version. */
export async function untilGiven(seats, versionId, limitMs) {
  const deadline = performance.now() + limitMs
  for (const seat of seats)
    while (versionOf(seat) !== versionId) {
      if (performance.now() > deadline) throw new Error(`an edge did not learn the default in ${limitMs / 1000} s.`)
      await delay(pollMs)
    }
}

function versionOf({ edge, mac }) {
  const { payload } = JSON.parse(readFileSync(path.join(edge.folder, 'edge/state.json'), 'utf8'))
  return JSON.parse(payload).devices?.find((device) => device.mac === mac)?.versionId
}

/**
 * Boots a device at each edge of the site, one boot after the other, until `isOver`; then waits for those that run.
 * @param {{ siteName: string, seats: { edge: object, mac: string }[], image: string }} site every byte that a device
 *   reads is compared with `image`
 * @param {(rounds: number) => boolean} isOver is given how many boots the device has made
 * @returns {Promise<number[]>} seconds from the first DHCP packet until ready, of each boot
 */
export async function bootRepeatedly({ siteName, seats, image }, isOver) {
  const seconds = []
  const bootAt = async (seat) => {
    for (let round = 0; !isOver(round); round++) seconds.push(await bootOnce(siteName, seat, image))
  }
  await Promise.all(seats.map(bootAt))
  return seconds
}

/**
 * Boots each device at one edge after the other until one answers: which edges of a site answer a device, and after how
 * long, follows from its address. It warms the caches, too.
 * @returns {Promise<{ edge: object, mac: string }[]>}
 */
export function findSeats({ siteName, image }, { edges, macs }) {
  const seatOf = async (mac, first) => {
    const turns = [...edges.slice(first), ...edges.slice(0, first)]
    for (const edge of turns) {
      const { result } = await tryBoot(siteName, { edge, mac }, image)
      if (result?.outcome === 'ready') return { edge, mac }
    }
    throw new Error(`no edge boots the device ${mac}.`)
  }
  return Promise.all(macs.map(seatOf))
}

async function bootOnce(siteName, seat, image) {
  const { result, output } = await tryBoot(siteName, seat, image)
  if (result?.outcome !== 'ready') throw new Error(`a device did not boot:\n${output.slice(-2000)}`)
  return result.totalUs / 1e6
}

async function tryBoot(siteName, { edge, mac }, image) {
  const disk = ['--trace', inRoot(trace), '--verify', image]
  const args = ['boot', '--json', '--server', edge.ip, '--first-mac', mac, ...disk]
  const device = new WatchedProcess({ command: 'ip', args: ['netns', 'exec', siteName, simProgram, ...args] })
  const timer = setTimeout(() => void device.stop(), bootLimitMs)
  await device.ended
  clearTimeout(timer)
  const line = device.output.split('\n').find((text) => text.startsWith('{"mac"'))
  return { result: line ? JSON.parse(line) : undefined, output: device.output }
}

/** The boot that 95 of 100 are not slower than. */
export function p95(seconds) {
  const sorted = seconds.toSorted((one, other) => one - other)
  return sorted[Math.ceil(sorted.length * 0.95) - 1]
}
