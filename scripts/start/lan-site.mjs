import { existsSync, statSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { edgeProgram } from '../lib/paths.mjs'
import { step } from '../lib/progress.mjs'
import { imagePackages, lanPackages, requirePackages } from '../lib/system-packages.mjs'
import { debianVdisk } from './debian-vdisk.mjs'
import { answers, requireFreeAt } from './ports.mjs'
import { enrolEdge, ensureStore, isEnrolled } from './site-edge.mjs'
import { stockBootPrograms, stockStore } from './vdisk-files.mjs'

const siteName = 'LAN'
const httpPort = 6980
const dhcpPort = 67
/** The edge's own default ports (docs/guides/operations.md). */
const edgePorts = [
  { what: 'proxyDHCP', port: dhcpPort, protocol: 'udp' },
  { what: 'proxyDHCP', port: 4011, protocol: 'udp' },
  { what: 'TFTP', port: 69, protocol: 'udp' },
  { what: 'the disk stream', port: 6910, protocol: 'udp' },
  { what: 'HTTP boot', port: httpPort, protocol: 'tcp' },
]

/** `--lan IP`: a separate edge serves real machines at an address of this machine, beside the LAN's DHCP server. */
export class LanSite {
  static processNames = ['lan-edge']
  #data
  #apiPort
  #ip
  #own
  #vdiskName

  constructor({ data, apiPort, lan }) {
    this.#data = data
    this.#apiPort = apiPort
    this.#ip = lan.ip
    this.#own = lan.disk ? lan : null
  }

  /** Runs before anything is started or built. */
  async check() {
    const device = deviceOf(this.#ip)
    for (const [option, file] of Object.entries(this.#own ?? {}))
      if (['disk', 'kernel', 'initrd'].includes(option) && file) requireFile(`--${option}`, file)
    if (process.getuid() !== 0) throw new UserError('--lan needs root, for the ports 67 and 69; start again with sudo.')
    await requireFreeAt(this.#ip, device, edgePorts, (port, holder) =>
      port === dhcpPort
        ? `${holder} holds it, so this machine is a DHCP server itself: stop that program, or omit --lan and run \`bootfarm-edge serve --dhcp off\` beside it (docs/guides/real-machines.md).`
        : `${holder} holds it; stop that program first.`,
    )
    await requirePackages('--lan', this.#own ? lanPackages : [...lanPackages, ...imagePackages])
  }

  /** Returns the rows that the demo's set-up creates in the database; the vDisk's files are in the store afterwards. */
  async describe() {
    const { name, commandLine, ...files } = this.#own ? ownVdisk(this.#own) : await debianVdisk('full')
    this.#vdiskName = name
    const stocked = await stockStore(path.join(this.#directory, 'store'), files)
    return {
      name: siteName,
      needsJoinToken: !isEnrolled(this.#directory),
      unknownDevices: 'boot',
      vdisk: { name, ...stocked, commandLine: this.#own ? commandLine : `console=tty0 ${commandLine}` },
      devices: [],
    }
  }

  /** @param {string | null} joinToken null where the edge is enrolled */
  async start(processes, joinToken) {
    await enrolEdge({ directory: this.#directory, apiPort: this.#apiPort, title: siteName }, joinToken)
    await ensureStore(edgeProgram, this.#directory)
    await step(`Starting the edge of ${siteName} at ${this.#ip}`, () =>
      processes.start({
        name: 'lan-edge',
        command: edgeProgram,
        args: [
          'serve',
          '--data',
          this.#directory,
          '--listen',
          this.#ip,
          '--dhcp',
          'proxy',
          '--boot-files',
          stockBootPrograms(path.join(this.#directory, 'boot-programs')),
        ],
        ready: () => answers(`http://${this.#ip}:${httpPort}/healthz`),
      }),
    )
  }

  welcome() {
    const ports = (protocol) =>
      edgePorts
        .filter((entry) => entry.protocol === protocol)
        .map(({ port }) => port)
        .join(', ')
    return `
  The edge of the site ${siteName} serves real machines at ${this.#ip}. EVERY machine that boots over the network
  there gets ${this.#vdiskName}, known or not (the site's unknown devices: boot), and is listed under Devices.
  What it writes stays in its RAM.
    Firmware      network boot (PXE IPv4) on and first in the boot order, Secure Boot off
    DHCP server   stays as it is; take boot options (66, 67, 43, next-server) out of it if it has any
    Firewall      UDP ${ports('udp')} and TCP ${ports('tcp')} open to the machines
    More          docs/guides/real-machines.md
`
  }

  remove() {}

  get #directory() {
    return path.join(this.#data, 'edge-lan')
  }
}

/** Returns the interface that has the address. Throws a UserError that lists the existing addresses. */
function deviceOf(ip) {
  if (!net.isIPv4(ip)) throw new UserError(`--lan needs an IPv4 address of this machine, not "${ip}".`)
  const addresses = Object.entries(os.networkInterfaces()).flatMap(([device, list]) =>
    list.filter(({ family }) => family === 'IPv4').map((address) => ({ device, ...address })),
  )
  const found = addresses.find(({ address }) => address === ip)
  if (ip.startsWith('127.') || found?.internal)
    throw new UserError(`--lan ${ip} is loopback, which no machine reaches; give this machine's address on their LAN.`)
  if (found) return found.device
  const there = addresses.filter(({ internal }) => !internal)
  const list = there.map(({ address, device }) => `${address} (${device})`).join(', ')
  throw new UserError(`--lan ${ip} is not an address of this machine; it has ${list || 'none but loopback'}.`)
}

function requireFile(option, file) {
  if (!existsSync(file)) throw new UserError(`${option} ${file} does not exist.`)
  if (!statSync(file).isFile()) throw new UserError(`${option} ${file} is not a file.`)
}

/** `name` is the file's, so that another disk is another vDisk. */
function ownVdisk({ disk, kernel, initrd, commandLine }) {
  return { name: path.basename(disk), disk, kernel, initrd, commandLine }
}
