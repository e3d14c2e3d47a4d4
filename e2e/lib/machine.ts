import { copyFileSync } from 'node:fs'
import path from 'node:path'
import type { MachineSegment } from './machine-segment.ts'
import type { RunningProcess } from './running-process.ts'

/** Who loads the first program over the network. */
export type Firmware =
  /** SeaBIOS and the iPXE in the network card's ROM. */
  | 'bios'
  /** OVMF with its own PXE client; the card has no ROM. */
  | 'uefi'
  /** OVMF with its HTTP boot client alone. */
  | 'uefi-http'

const ovmfCode = '/usr/share/OVMF/OVMF_CODE_4M.fd'
const ovmfVariables = '/usr/share/OVMF/OVMF_VARS_4M.fd'

export interface MachineOptions {
  segment: MachineSegment
  /** Which port of the segment, from 0. */
  port: number
  firmware: Firmware
  /** For the files of this machine. */
  directory: string
  memoryMib?: number
}

export const macOf = (port: number) => `52:54:00:78:00:${port.toString(16).padStart(2, '0')}`

/**
 * A virtual machine without a disk, emulated (there is no /dev/kvm on many test machines). Its serial console is the process's
 * output. It powers off when its system does, and never restarts.
 */
export function startMachine(options: MachineOptions): RunningProcess {
  const { segment, port, firmware, memoryMib = 256 } = options
  const card = `virtio-net-pci,netdev=n0,mac=${macOf(port)},bootindex=1${firmware === 'bios' ? '' : ',romfile='}`
  return segment.startOnSwitch('qemu-system-x86_64', [
    ...['-accel', 'tcg', '-cpu', 'max', '-smp', '1', '-m', String(memoryMib)],
    ...firmwareArguments(options),
    ...['-nodefaults', '-display', 'none', '-vga', 'none', '-no-reboot', '-monitor', 'none'],
    ...['-netdev', `tap,id=n0,ifname=tap${port},script=no,downscript=no`, '-device', card],
    ...['-object', 'rng-random,id=r0,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=r0'],
    ...['-chardev', 'stdio,id=c0,signal=off', '-serial', 'chardev:c0'],
  ])
}

function firmwareArguments({ firmware, directory, port }: MachineOptions): string[] {
  // SeaBIOS writes to the serial port only without graphics.
  if (firmware === 'bios') return ['-machine', 'pc,graphics=off']
  const variables = path.join(directory, `uefi-variables-${port}.fd`)
  copyFileSync(ovmfVariables, variables)
  const pxeClients = ['IPv4PXESupport', 'IPv6PXESupport'].flatMap((name) => [
    '-fw_cfg',
    `name=opt/org.tianocore/${name},string=n`,
  ])
  return [
    ...['-machine', 'q35', ...(firmware === 'uefi-http' ? pxeClients : [])],
    ...['-drive', `if=pflash,format=raw,unit=0,readonly=on,file=${ovmfCode}`],
    ...['-drive', `if=pflash,format=raw,unit=1,file=${variables}`],
  ]
}
