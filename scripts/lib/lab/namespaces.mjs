import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

// A laboratory of network namespaces: real ports and real broadcasts, none of which reach the host's own network.

/** Making or changing an interface takes milliseconds; a command that takes longer hangs. */
const commandLimitMs = 30_000
/** Ethernet's bytes per frame that an interface of Linux does not count: preamble, checksum and gap. */
const uncountedFrameBytes = 24
let labCount = 0

/**
 * The namespaces of one test, benchmark or demo. Their names carry the id of the process that made them, so two runs
 * never meet, and the next run removes what a killed one left behind.
 */
export class Lab {
  #prefix
  /** @type {Namespace[]} */
  #namespaces = []

  /** @param {string} name lower-case letters and digits */
  constructor(name) {
    if (!/^[a-z\d]+$/.test(name)) throw new Error(`name the lab ${name} with lower-case letters and digits alone`)
    removeLeftOvers()
    this.#prefix = `bf-${name}-${process.pid}-${labCount++}`
  }

  /** @param {string} role ends the namespace's name */
  namespace(role) {
    const namespace = new Namespace(`${this.#prefix}${role}`)
    this.#namespaces.push(namespace)
    return namespace
  }

  /** Kills every program in the namespaces. */
  endAll() {
    for (const { name } of this.#namespaces) endAllIn(name)
  }

  /** Removes the namespaces; their interfaces, the far ends of links, and routes go with them. */
  remove() {
    for (const { name } of this.#namespaces.splice(0)) removeNamespace(name)
  }
}

export class Namespace {
  /** @param {string} name */
  constructor(name) {
    this.name = name
    run('ip', 'netns', 'add', name)
    this.ip('link', 'set', 'lo', 'up')
  }

  /**
   * How to start a program here. `ip netns exec` becomes the program, so the process id is the program's.
   * @param {string} program
   * @param {string[]} args
   * @returns {{ command: string, args: string[] }}
   */
  command(program, args) {
    return { command: 'ip', args: ['netns', 'exec', this.name, program, ...args] }
  }

  /**
   * Runs a short command to its end; throws with its error output.
   * @param {string} program
   * @param {string[]} args
   */
  run(program, ...args) {
    run('ip', 'netns', 'exec', this.name, program, ...args)
  }

  /** @param {string[]} args of ip(8) */
  ip(...args) {
    run('ip', '-n', this.name, ...args)
  }

  /**
   * Returns whether a program listens at a TCP port on 127.0.0.1 or every address here (proc_net(5); state 0A is
   * LISTEN).
   */
  listens(port) {
    const { command, args } = this.command('cat', ['/proc/net/tcp'])
    const sockets = execFileSync(command, args, { encoding: 'utf8', timeout: commandLimitMs })
    return sockets.includes(`:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A`)
  }

  /** @param {string} device @param {string} address with its prefix length */
  address(device, address) {
    this.ip('addr', 'add', address, 'broadcast', '+', 'dev', device)
  }

  /** Sends what goes to these addresses through this device. */
  route(addresses, device, source) {
    this.ip('route', 'add', addresses, 'dev', device, 'src', source)
  }

  /** A switch, on whose ports frames pass at once. */
  bridge(device) {
    this.ip('link', 'add', device, 'type', 'bridge', 'stp_state', '0', 'forward_delay', '0')
    this.ip('link', 'set', device, 'up')
  }

  join(bridge, device) {
    this.ip('link', 'set', device, 'master', bridge, 'up')
  }

  /** A port of a bridge for an emulated machine. */
  tap(bridge, device) {
    this.ip('tuntap', 'add', 'dev', device, 'mode', 'tap')
    this.join(bridge, device)
  }

  /** @param {number} bytes of an IP packet */
  mtu(device, bytes) {
    this.ip('link', 'set', device, 'mtu', String(bytes))
  }

  /**
   * Sets whether super-packets pass a device whole, as on a card that segments them itself, or are segmented before.
   */
  segmentationOffload(device, isOn) {
    const features = ['tso', 'gso', 'gro', 'tx-udp-segmentation'].flatMap((name) => [name, isOn ? 'on' : 'off'])
    this.run('ethtool', '-K', device, ...features)
  }

  /**
   * Loses a share of the packets that arrive at a device.
   * @param {string} device
   * @param {number} percent
   * @param {string} match which packets, as nft(8) says it
   */
  lose(device, percent, match) {
    this.drop(device, `${match} numgen random mod 100 < ${percent}`)
  }

  /** Drops the packets that arrive at a device and match, in the syntax of nft(8). */
  drop(device, match) {
    const table = 'netdev bootfarm'
    const chain = `drop_${device.replaceAll('-', '_')}`
    this.run('nft', `add table ${table}`)
    this.run(
      'nft',
      `add chain ${table} ${chain} { type filter hook ingress device "${device}" priority 0; policy accept; }`,
    )
    this.run('nft', `add rule ${table} ${chain} ${match} drop`)
  }

  /**
   * Limits what a device sends to the speed of an Ethernet link, and drops what its queue cannot hold (tc-tbf(8)).
   * @param {string} device
   * @param {{ mbitPerSecond: number, queue: string, overhead?: number }} link `queue`: as tc(8) writes a size
   */
  rate(device, { mbitPerSecond, queue, overhead = uncountedFrameBytes }) {
    const shaping = ['rate', `${mbitPerSecond}mbit`, 'burst', '16kb', 'limit', queue, 'overhead', String(overhead)]
    this.run('tc', 'qdisc', 'add', 'dev', device, 'root', 'tbf', ...shaping)
  }

  /**
   * Returns the command that records the beginning of every packet at a device; the program prints `listening on` once
   * it does.
   */
  capture(device, file) {
    return this.command('tcpdump', ['-i', device, '-U', '--immediate-mode', '-s', '192', '-w', file])
  }
}

/**
 * Joins two namespaces by a veth pair, a cable, and takes both ends up.
 * @param {{ namespace: Namespace, device: string, address?: string }[]} ends two; addresses with their prefix length
 */
export function cable(...ends) {
  const [one, other] = ends
  const peer = ['peer', 'name', other.device, 'netns', other.namespace.name]
  one.namespace.ip('link', 'add', one.device, 'type', 'veth', ...peer)
  for (const { namespace, device, address } of ends) {
    namespace.ip('link', 'set', device, 'up')
    if (address) namespace.address(device, address)
  }
}

/** Removes the namespaces of processes that were killed, and the programs that still run in them. */
function removeLeftOvers() {
  const listed = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8', timeout: commandLimitMs })
  for (const [, name = '', pid = ''] of listed.matchAll(/^(bf-[a-z\d]+-(\d+)-\S+)/gm))
    if (!existsSync(`/proc/${pid}`)) removeNamespace(name)
}

function removeNamespace(name) {
  try {
    endAllIn(name)
    run('ip', 'netns', 'del', name)
  } catch (error) {
    // Another run removes the same left-overs at the same time.
    if (existsSync(`/run/netns/${name}`)) throw error
  }
}

function endAllIn(name) {
  const pids = execFileSync('ip', ['netns', 'pids', name], { encoding: 'utf8', timeout: commandLimitMs })
  for (const pid of pids.split('\n').filter(Boolean)) {
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch (error) {
      // It has already ended.
      if (error.code !== 'ESRCH') throw error
    }
  }
}

/** @param {string} command @param {string[]} args */
function run(command, ...args) {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: commandLimitMs })
}
