import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { edgeProgram } from '../../lib/paths.mjs'
import { WatchedProcess } from '../watched-process.mjs'

const bootPrograms = ['undionly.kpxe', 'snponly.efi']
const debianBootPrograms = '/usr/lib/ipxe'
const commandLine = 'console=ttyS0 quiet panic=-1 no_timer_check'
const startLimitMs = 20_000
const nbdPort = 10809

/**
 * Serves a boot: `start` gets what to boot and returns the processes that serve it.
 * @typedef {object} Served
 * @property {string} disk
 * @property {string} vmlinuz
 * @property {string} initrd
 * @property {string} [words] for the end of the kernel's command line, after a space
 */

/**
 * Starts bootfarm-edge beside the site's own DHCP server (proxyDHCP).
 * @param {import('../../lib/lab/segment.mjs').Segment} segment
 */
export async function startEdge(segment, directory, { disk, vmlinuz, initrd, words = '' }) {
  const dhcp = new WatchedProcess(segment.dhcpServer())
  const bootFiles = copyBootPrograms(directory)
  const edge = new WatchedProcess(
    segment.onEdge(edgeProgram, [
      'serve',
      '--json',
      '--listen',
      segment.edgeIp,
      '--dhcp',
      'proxy',
      '--vdisk',
      disk,
      '--kernel',
      vmlinuz,
      '--initrd',
      initrd,
      '--cmdline',
      `${commandLine}${words}`,
      '--boot-files',
      bootFiles,
      '--data',
      path.join(directory, 'edge'),
    ]),
  )
  await edge.waitFor(/serving on/, startLimitMs)
  await dhcp.waitFor(/DHCP, IP range/, startLimitMs)
  return [edge, dhcp]
}

/**
 * dnsmasq gives addresses and the boot program, busybox's httpd serves kernel and initramfs, nbdkit the disk over TCP.
 */
export async function startReference(segment, directory, { disk, vmlinuz, initrd }) {
  const files = path.join(directory, 'http')
  mkdirSync(files, { recursive: true })
  copyFileSync(vmlinuz, path.join(files, 'kernel'))
  copyFileSync(initrd, path.join(files, 'initrd'))
  const from = `http://${segment.edgeIp}`
  writeFileSync(
    path.join(files, 'boot.ipxe'),
    `#!ipxe\nkernel ${from}/kernel initrd=initrd ${commandLine}\ninitrd --name initrd ${from}/initrd\nboot\n`,
  )
  const dhcp = new WatchedProcess(
    segment.dhcpServer([
      '--enable-tftp',
      `--tftp-root=${copyBootPrograms(directory)}`,
      // Otherwise iPXE waits for a proxyDHCP server that may still come.
      '--dhcp-option=encap:175,176,1b',
      '--dhcp-match=set:ipxe,175',
      `--dhcp-boot=tag:ipxe,${from}/boot.ipxe`,
      '--dhcp-match=set:uefi,option:client-arch,7',
      '--dhcp-boot=tag:uefi,tag:!ipxe,snponly.efi',
      '--dhcp-boot=tag:!uefi,tag:!ipxe,undionly.kpxe',
    ]),
  )
  const http = new WatchedProcess(segment.onEdge('/bin/busybox', ['httpd', '-f', '-vv', '-p', '80', '-h', files]))
  const address = ['-i', segment.edgeIp, '-p', String(nbdPort)]
  const nbd = new WatchedProcess(segment.onEdge('nbdkit', ['-f', '-v', '-r', ...address, 'file', disk]))
  await dhcp.waitFor(/DHCP, IP range/, startLimitMs)
  await nbd.waitFor(/bound to IP address|accepting connections|listening/i, startLimitMs)
  return [nbd, http, dhcp]
}

function copyBootPrograms(directory) {
  const files = path.join(directory, 'boot-files')
  mkdirSync(files, { recursive: true })
  for (const name of bootPrograms) copyFileSync(path.join(debianBootPrograms, name), path.join(files, name))
  return files
}
