import { readFileSync } from 'node:fs'
import { edgeProgram } from '../../lib/paths.mjs'
import { WatchedProcess } from '../watched-process.mjs'

const startLimitMs = 20_000
/** Of /proc/PID/stat: USER_HZ is 100 on every Linux that Node runs on. */
const clockTicksPerSecond = 100

/**
 * @typedef {object} Server
 * @property {string} by
 * @property {string} ip
 * @property {boolean} hasWindows whether it knows RFC 7440
 * @property {WatchedProcess} process
 */

/**
 * All serve the same folder, each at an address of its own, and each as it comes but for that.
 * @param {import('./cable.mjs').Cable} cable
 * @param {{ files: string, disk: string, kernel: string, data: string }} served
 * @returns {Promise<Server[]>}
 */
export async function startServers(cable, { files, disk, kernel, data }) {
  const [edgeIp, atftpdIp, dnsmasqIp] = cable.serverIps
  const edge = new WatchedProcess(
    cable.onServer(edgeProgram, [
      'serve',
      '--json',
      '--listen',
      edgeIp,
      '--dhcp',
      'server',
      '--dhcp-pool',
      cable.pool,
      '--vdisk',
      disk,
      '--kernel',
      kernel,
      '--boot-files',
      files,
      '--data',
      data,
    ]),
  )
  const atftpd = new WatchedProcess(
    cable.onServer('/usr/sbin/atftpd', [
      '--daemon',
      '--no-fork',
      '--logfile',
      '-',
      '--bind-address',
      atftpdIp,
      '--user',
      'root.root',
      files,
    ]),
  )
  const dnsmasq = new WatchedProcess(
    cable.onServer('/usr/sbin/dnsmasq', [
      '--keep-in-foreground',
      '--conf-file=/dev/null',
      '--port=0',
      '--pid-file=',
      '--log-facility=-',
      '--user=root',
      '--bind-interfaces',
      `--listen-address=${dnsmasqIp}`,
      '--enable-tftp',
      `--tftp-root=${files}`,
      '--quiet-tftp',
    ]),
  )
  await edge.waitFor(/serving on/, startLimitMs)
  await dnsmasq.waitFor(/TFTP root is/, startLimitMs)
  await atftpd.waitFor(/Advanced Trivial FTP server started/, startLimitMs)
  return [
    { by: 'bootfarm', ip: edgeIp, hasWindows: true, process: edge },
    { by: 'atftpd', ip: atftpdIp, hasWindows: true, process: atftpd },
    { by: 'dnsmasq', ip: dnsmasqIp, hasWindows: false, process: dnsmasq },
  ]
}

/** Seconds of processor time that a process has used, with its ended threads. */
export function processorSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / clockTicksPerSecond
}

/** Bytes of memory that a process has in use. */
export function residentBytes(pid) {
  const [, kib] = readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+) kB/m)
  return Number(kib) * 1024
}
