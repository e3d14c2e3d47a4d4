import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { bootDevices } from '../../lib/device/simulated-devices.ts'
import type { RunningProcess } from '../../lib/lab/running-process.ts'
import { type Account, newAccount, noteStall } from './account.ts'
import { Guest } from './guests.ts'
import { deviceNetwork, type UpdateSite } from './site.ts'
import type { WritersAccount } from './writers.ts'

/** A boot reads for half a minute, so that most of the time nothing is downloaded. */
const readsPerBoot = 60
const readIntervalMs = 500
/** Simulated devices that boot together. Groups begin one after the other, as classrooms do. */
const groupSizeMax = 50
const groupIntervalMs = 3000
const groupMac = (group: number) => `02:bf:00:10:${group.toString(16).padStart(2, '0')}:00`
const writersProgram = path.join(import.meta.dirname, 'writers.ts')
const machineName = (port: number) => `machine ${port}`

/**
 * Simulated devices that boot and read over and over, devices that write and read, and virtual machines. Stalls are
 * those of a device's own requests, from the question to the answer, with everything that it had to repeat.
 */
export class Load {
  readonly #site: UpdateSite
  readonly #sizes: { readers: number; machines: number }
  readonly #trace: string
  readonly #guests: Guest[] = []
  #writers: RunningProcess | undefined
  #writersTaken = 0
  readonly #startUp = newAccount()
  #account = this.#startUp
  #collecting = Promise.resolve()
  #ending = false
  #groups: Promise<void>[] = []

  constructor(site: UpdateSite, folder: string, sizes: { readers: number; machines: number }) {
    this.#site = site
    this.#sizes = sizes
    this.#trace = path.join(folder, 'reads.csv')
    const lines = Array.from(
      { length: readsPerBoot },
      (_, index) => `${index * readIntervalMs},${4096 * (index % 16)},4096`,
    )
    writeFileSync(this.#trace, `time_ms,offset,length\n${lines.join('\n')}\n`)
  }

  get account(): Readonly<Account> {
    return this.#account
  }

  /** Resolves once everything works: machines have done a round, and each group of devices has booted once. */
  async start(say: (text: string) => void): Promise<void> {
    const { site, url, diskFile, writers } = this.#site
    for (let port = 0; port < this.#sizes.machines; port += 1) {
      const guest = new Guest(machineName(port), await site.machines.startMachine('bios', port))
      this.#guests.push(guest)
    }
    for (const guest of this.#guests) await guest.runs()
    say(`${this.#guests.length} virtual machines read and write`)
    const words = [writersProgram, url, `${deviceNetwork}.0`, diskFile, ...writers]
    this.#writers = site.machines.segment.startMachine(process.execPath, words)
    await this.#writers.waitFor(/^serving$/m)
    say(`${writers.length} devices write and read`)
    const booted: Promise<void>[] = []
    const sizes = groupsOf(this.#sizes.readers)
    for (const [group, size] of sizes.entries()) {
      const first = Promise.withResolvers<void>()
      booted.push(first.promise)
      this.#groups.push(this.#bootGroup(group, size, first))
      if (group + 1 < sizes.length) await new Promise((resolve) => setTimeout(resolve, groupIntervalMs))
    }
    await Promise.race([Promise.all(booted), Promise.all(this.#groups)])
    say(`${this.#sizes.readers} devices boot and read`)
  }

  /** Adds to the account what those who write, and machines, have noticed until now. */
  collect(): Promise<void> {
    return this.#ending ? this.#collecting : this.#collect(() => this.#writers?.kill('SIGUSR2'))
  }

  /** Begins another account. @returns what was noticed until now */
  async next(): Promise<Account> {
    await this.collect()
    const before = this.#account
    this.#account = newAccount()
    return before
  }

  /** Resolves once each device has ended its boot, and all written sectors were read again. */
  async end(): Promise<void> {
    this.#ending = true
    await Promise.all(this.#groups)
    await this.#collect(() => this.#writers?.end(''))
  }

  /** One after the other: each answer of those who write belongs to one question. */
  #collect(ask: () => void): Promise<void> {
    this.#collecting = this.#collecting.then(async () => {
      await this.#takeWriters(ask)
      for (const guest of this.#guests) guest.take(this.#account)
    })
    return this.#collecting
  }

  /** Asks those who write for their account, and adds it. */
  async #takeWriters(ask: () => void): Promise<void> {
    const known = this.#writersTaken
    ask()
    const text = await this.#writers?.waitUntil('the account of those who write', () => {
      return [...(this.#writers?.output.matchAll(/^account (.*)\n/gm) ?? [])][known]?.[1]
    })
    if (text === undefined) return
    this.#writersTaken += 1
    const { reads, writes, stalls, errors } = JSON.parse(text) as WritersAccount
    this.#account.reads += reads
    this.#account.writes += writes
    this.#account.errors.push(...errors)
    for (const [mac, ms] of Object.entries(stalls)) noteStall(this.#account, mac, ms)
  }

  async #bootGroup(group: number, size: number, first: PromiseWithResolvers<void>): Promise<void> {
    const { site, diskFile } = this.#site
    const { segment } = site.machines
    const who = ['--devices', String(size), '--first-mac', groupMac(group)]
    const where = ['--server', segment.edgeIp, '--bind', `${deviceNetwork}.1.${1 + group}`]
    const what = ['--trace', this.#trace, '--verify', diskFile]
    while (!this.#ending) {
      const args = [...where, ...who, ...what]
      const begunIn = this.#account
      const { devices, output } = await bootDevices(args, (program, all) => segment.startOnSwitch(program, all))
      const account = this.#account
      if (devices.length !== size) account.errors.push(`${devices.length} devices of ${size}: ${output.slice(-500)}`)
      // What a boot waited for while the load started says nothing about the part in which it ends.
      const counted = begunIn === this.#startUp ? begunIn : account
      for (const { mac, outcome, text, longestReadUs } of devices) {
        counted.reads += readsPerBoot
        noteStall(counted, mac, longestReadUs / 1000)
        if (outcome === 'ready') counted.ready += 1
        else account.errors.push(`${mac}: ${text}`)
      }
      first.resolve()
      if (devices.length === 0) return
    }
  }
}

/** Returns the sizes of groups of devices that boot together. */
function groupsOf(devices: number): number[] {
  const groups = Math.ceil(devices / groupSizeMax)
  return Array.from({ length: groups }, (_, index) => Math.floor((devices + index) / groups))
}
