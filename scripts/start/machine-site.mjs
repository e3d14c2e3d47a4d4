import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { Segment } from '../lib/lab/segment.mjs'
import { edgeProgram, inRoot } from '../lib/paths.mjs'
import { step } from '../lib/progress.mjs'
import { machinePackages, requirePackages } from '../lib/system-packages.mjs'
import { debianVdisk } from './debian-vdisk.mjs'
import { listenersOf } from './ports.mjs'
import { relay } from './relay.mjs'
import { enrolEdge, ensureStore, isEnrolled, listens } from './site-edge.mjs'
import { stockBootPrograms, stockStore } from './vdisk-files.mjs'

const siteName = 'Machines'
const device = { name: 'machine-1', mac: '52:54:00:78:00:00' }
const memoryMib = 768
/**
 * An emulated processor that gets no time fails Linux's check of its timer. The variable reaches systemd: it shortens
 * lines in the middle of a colour sequence, which would be garbage in a record.
 */
const serialConsole = 'console=ttyS0 no_timer_check SYSTEMD_COLORS=0'
const edgePort = 6980
/** Maximum length of a socket file's path: sun_path of unix(7), including its final zero. */
const socketPathMax = 107

/**
 * `--machine`: an emulated machine that boots from a separate edge in network namespaces. It sees the edge at its real
 * ports beside another DHCP server; the edge reaches the API through a socket file.
 */
export class MachineSite {
  static processNames = ['machines-dhcp', 'machines-uplink', 'machines-edge', 'machines']
  #data
  #apiPort
  #firmware
  #segment
  #uplink

  constructor({ data, apiPort, machine }) {
    this.#data = data
    this.#apiPort = apiPort
    this.#firmware = machine
  }

  /** Runs before anything is started or built. */
  async check() {
    if (process.arch !== 'x64') throw new UserError('--machine emulates an x86-64 machine and needs such a one.')
    if (process.getuid() !== 0)
      throw new UserError('--machine needs root, for network namespaces; start again with sudo, or leave it out.')
    if (!existsSync('/dev/net/tun'))
      throw new UserError('--machine needs /dev/net/tun, which this system does not have; load the module tun.')
    if (this.#socket.length > socketPathMax)
      throw new UserError(`--machine needs a data directory with a shorter path than ${this.#data}.`)
    await requirePackages('--machine', machinePackages)
  }

  /** Returns the rows that the demo's set-up creates in the database; the vDisk's files are in the store afterwards. */
  async describe() {
    const { name, commandLine, ...files } = await debianVdisk('virtual')
    const stocked = await stockStore(path.join(this.#directory, 'store'), files)
    return {
      name: siteName,
      needsJoinToken: !isEnrolled(this.#directory),
      unknownDevices: 'ignore',
      vdisk: { name, ...stocked, commandLine: `${serialConsole} ${commandLine}` },
      devices: [device],
    }
  }

  /** @param {string | null} joinToken null where the edge is enrolled */
  async start(processes, joinToken) {
    await enrolEdge({ directory: this.#directory, apiPort: this.#apiPort, title: siteName }, joinToken)
    await ensureStore(edgeProgram, this.#directory)
    const segment = new Segment('demo', { machines: 1 })
    this.#segment = segment
    segment.addSwitchAddress()
    this.#uplink = await relay({ path: this.#socket }, { port: this.#apiPort, host: '127.0.0.1' })
    await step("Starting the machines' network", async () => {
      await processes.start({
        name: 'machines-dhcp',
        ...segment.dhcpServer(),
        ready: () => listens(segment.onDhcp('ss', listenersOf('udp', 67))),
      })
      await processes.start({
        name: 'machines-uplink',
        ...segment.onEdge(process.execPath, [
          inRoot('scripts/start/relay-main.mjs'),
          String(this.#apiPort),
          this.#socket,
        ]),
        ready: () => listens(segment.onEdge('ss', listenersOf('tcp', this.#apiPort))),
      })
      await processes.start({
        name: 'machines-edge',
        ...segment.onEdge(edgeProgram, [
          'serve',
          '--data',
          this.#directory,
          '--listen',
          segment.edgeIp,
          '--dhcp',
          'proxy',
          '--boot-files',
          stockBootPrograms(path.join(this.#directory, 'boot-programs')),
          '--wol-target',
          `${segment.broadcastIp}:9`,
        ]),
        ready: () => listens(segment.onEdge('ss', listenersOf('tcp', edgePort))),
      })
    })
    await step(`Switching ${device.name} on`, () =>
      processes.start({
        name: 'machines',
        ...segment.onSwitch(process.execPath, [
          inRoot('scripts/machine-keeper/main.mjs'),
          JSON.stringify({ consoles: consolesIn(this.#data), machine: this.#machine() }),
        ]),
        ready: () => listens(segment.onSwitch('ss', listenersOf('udp', 9))),
      }),
    )
  }

  welcome() {
    const firmware = this.#firmware === 'bios' ? 'a BIOS' : 'UEFI'
    return `${device.name}, a virtual machine with ${firmware}, boots from the edge of the site Machines: see its page under
  Devices. Its console is ${path.join(consolesIn(this.#data), `${device.mac.replaceAll(':', '-')}.log`)}.`
  }

  remove() {
    this.#uplink?.close()
    this.#segment?.remove()
  }

  #machine() {
    const directory = path.join(this.#data, 'machines')
    mkdirSync(directory, { recursive: true })
    return {
      firmware: this.#firmware,
      mac: device.mac,
      tap: 'tap0',
      uefiVariables: path.join(directory, `${device.name}-uefi-variables.fd`),
      memoryMib,
      mayRestart: true,
    }
  }

  get #directory() {
    return path.join(this.#data, 'edge-machines')
  }

  get #socket() {
    return path.join(this.#data, 'run/machines-uplink.socket')
  }
}

/** The directory of machines' recorded consoles; the API shows them. */
export const consolesIn = (data) => path.join(data, 'consoles')
