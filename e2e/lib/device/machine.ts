import path from 'node:path'
import { emulator, type Firmware, type Medium } from '../../../scripts/lib/machines/emulator.mjs'
import type { RunningProcess } from '../lab/running-process.ts'
import type { Segment } from '../lab/segment.ts'

export type { Firmware, Medium }

export interface MachineLink {
  mbit: number
  duplex: 'half' | 'full'
}

export interface MachineOptions {
  segment: Pick<Segment, 'startMachine'>
  /** The port of the segment, from 0. */
  port: number
  firmware: Firmware
  /** Holds the files of this machine. */
  directory: string
  memoryMib?: number | undefined
  /** Without a medium the machine starts from the network, also when it has its own disk. */
  medium?: Medium | undefined
  /** Images of disks in the machine, which it may write. */
  ownDisks?: readonly string[]
  /** Bytes of the largest IP packet that its network card takes; by default Ethernet's. */
  mtu?: number | undefined
  /** What its network card says of its link; by default nothing. */
  link?: MachineLink | undefined
  /** The control socket of a swtpm. */
  tpm?: string | undefined
}

export const macOf = (port: number) => `52:54:00:78:00:${port.toString(16).padStart(2, '0')}`

/** Starts a virtual machine, usually without a disk. Its serial console is the process's output; it never restarts. */
export function startMachine(options: MachineOptions): RunningProcess {
  const { segment, port, firmware, directory, medium } = options
  // shim, GRUB and the kernel are in memory at the same time.
  const memoryMib = options.memoryMib ?? (firmware.startsWith('uefi-secure') ? 512 : 256)
  const { command, args } = emulator({
    firmware,
    mac: macOf(port),
    tap: `tap${port}`,
    uefiVariables: path.join(directory, `uefi-variables-${port}.fd`),
    memoryMib,
    medium,
    ownDisks: options.ownDisks ?? [],
    mtu: options.mtu,
    link: options.link,
    tpm: options.tpm,
    mayRestart: false,
  })
  const machine = segment.startMachine(command, args)
  machine.name = `machine ${macOf(port)}`
  return machine
}
