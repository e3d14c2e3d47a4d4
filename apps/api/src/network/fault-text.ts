import type { Ratio } from './ratio-interval.ts'

/** What is wrong, and what the network's owners can check, as sentences. */
export interface FaultText {
  text: string
  check: string
}

/** Headers of IPv4 and UDP. */
const headersBytes = 28

interface Link {
  linkMbit: number | null
  duplex: 'half' | 'full' | null
}

export function mtuText(
  { size, mtu }: { size: number; mtu?: number | undefined },
  holes: number,
  boots: number,
): FaultText {
  const here = mtu ? `: MTU ${mtu} here, less on the way` : ''
  const often = holes === boots ? '' : `, in ${holes} of ${boots} boots`
  return {
    text: `Packets above ${formatCount(size)} bytes vanish between edge and device${here}${often}.`,
    check: `Set the same MTU on every switch, bridge and tunnel between them, or announce ${size + headersBytes} by DHCP (option 26).`,
  }
}

interface Loss {
  direction: 'to' | 'from'
  ratio: Ratio
  meanRun: number | null
  /** The number of devices that lose most of it; 0: many do. */
  culprits: number
  /** The share is that of so many devices; absent: of the segment. */
  devices?: number
}

/** Gaps of so many packets or more are bursts. */
const burstMin = 2.5

export function lossText({ direction, ratio, meanRun, culprits, devices }: Loss): FaultText {
  const isBurst = meanRun !== null && meanRun >= burstMin
  const how = meanRun === null ? '' : isBurst ? `, in bursts of ${Math.round(meanRun)} on average` : ', one by one'
  const who = culprits > 0 ? `, most of them by ${countOf(culprits, 'device')}` : ''
  const towards = `${direction} ${devices === undefined ? 'the devices' : countOf(devices, 'device')}`
  const text = `${shareText(ratio.share)} of the packets ${towards} are lost (${shareText(ratio.low)} to ${shareText(ratio.high)})${how}${who}.`
  if (culprits > 0 || devices !== undefined)
    return { text, check: 'Check the cables and switch ports of these devices, and the error counters of the ports.' }
  if (isBurst)
    return {
      text,
      check: 'A queue overflows: look at dropped packets of the switch ports, and where a fast link meets a slow one.',
    }
  return {
    text,
    check: 'Look at the error counters of the ports between edge and segment: cables, optics and wireless links.',
  }
}

export function duplexText(devices: number, links: Link[], usual: Link | null): FaultText {
  return {
    text: `${countOf(devices, 'device')} at ${linksText(links)}${usualText(usual)}.`,
    check: 'Set the switch port to auto-negotiation; if it is, replace the cable, then try another port.',
  }
}

export function slowText(devices: number, links: Link[], usual: Link): FaultText {
  return {
    text: `${countOf(devices, 'device')} at ${linksText(links)}${usualText(usual)}.`,
    check: 'A pair of wires or a port is damaged, or limited: replace the cable, then try another port.',
  }
}

function usualText(usual: Link | null): string {
  return usual && usual.duplex !== 'half' ? ` on a segment where most have ${linkText(usual)}` : ''
}

function linksText(links: Link[]): string {
  return [...new Set(links.map(linkText))].join(' and ')
}

export function linkText({ linkMbit, duplex }: Link): string {
  const speed =
    linkMbit === null ? 'unknown speed' : linkMbit >= 1000 ? `${linkMbit / 1000} Gbit/s` : `${linkMbit} Mbit/s`
  return duplex === 'half' ? `${speed} half duplex` : speed
}

export function crcText(devices: number, frames: number): FaultText {
  return {
    text: `${countOf(devices, 'device')} received ${countOf(frames, 'damaged frame')} (wrong checksum).`,
    check: 'Replace the cable or the optics; then try another port, and another card.',
  }
}

export function flapText(devices: number): FaultText {
  return {
    text: `The link of ${countOf(devices, 'device')} went up and down several times during a boot.`,
    check: 'Check plug and cable, power saving of the port (EEE), and what the switch logs about it.',
  }
}

export function orderText(ratio: Ratio, distance: number): FaultText {
  return {
    text: `${shareText(ratio.share)} of the packets are overtaken by later ones (${shareText(ratio.low)} to ${shareText(ratio.high)}), by up to ${countOf(distance, 'place')}.`,
    check: 'Parallel links share the traffic packet by packet: let them share it by addresses and ports.',
  }
}

export function delayText({ p50Us, p95Us }: { p50Us: number; p95Us: number }): FaultText {
  return {
    text: `A round trip takes ${msText(p50Us)}, and one in twenty ${msText(p95Us)} or more.`,
    check: 'Packets wait in a queue: look for a busy link, a wireless or VPN link, or a switch that pauses (802.3x).',
  }
}

type Blocks = Ratio & { blockSize: number }

/** @param smallest blocks of the smallest size that boots were sent */
export function tftpText(again: Blocks, smallest: Blocks): FaultText {
  const text = `${shareText(again.share)} of the TFTP blocks of ${formatCount(again.blockSize)} bytes are sent again`
  if (smallest.blockSize < again.blockSize && smallest.high < again.low)
    return {
      text: `${text}, and ${shareText(smallest.share)} of those of ${formatCount(smallest.blockSize)} bytes.`,
      check: 'Large packets are lost where small ones pass: compare the MTU of all switches, bridges and tunnels.',
    }
  return { text: `${text}.`, check: 'Packets are lost before the system runs: check ports and cables of the segment.' }
}

export function dropsText(devices: number): FaultText {
  return {
    text: `Packets arrived at ${countOf(devices, 'device')} and found no space there. This is not the network's fault.`,
    check: 'These devices are slower than their network: see the processor of their boots.',
  }
}

export function shareText(share: number): string {
  const percent = 100 * share
  if (percent === 0) return '0 %'
  if (percent < 0.001) return 'below 0.001 %'
  return `${Number(percent.toPrecision(2))} %`
}

function msText(us: number): string {
  return us >= 1000 ? `${Number((us / 1000).toPrecision(2))} ms` : `${us} µs`
}

function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

function formatCount(count: number): string {
  return count.toLocaleString('en-US')
}
