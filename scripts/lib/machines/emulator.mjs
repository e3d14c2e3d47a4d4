import { copyFileSync } from 'node:fs'

/**
 * Which firmware loads the first program over the network: `bios` is SeaBIOS and the iPXE in the network card's ROM;
 * `uefi` OVMF with its own PXE client, the card has no ROM; `uefi-http` OVMF with its HTTP boot client alone;
 * `uefi-arm64` AAVMF with its PXE client, on another processor. `uefi-secure-site` and `uefi-secure-microsoft` are
 * `uefi` with Secure Boot: the first knows only the key of Debian's package ovmf (whose private half lies beside it),
 * as machines with a site's own key do, the second Microsoft's keys.
 * @typedef {'bios' | 'uefi' | 'uefi-http' | 'uefi-arm64' | 'uefi-secure-site' | 'uefi-secure-microsoft'} Firmware
 */

/**
 * What it starts from instead of the network: an image in its drive or on its USB port; or its own disk, which comes
 * after the network.
 * @typedef {{ kind: 'cd' | 'usb' | 'disk', file: string }} Medium
 */

const ovmfCode = '/usr/share/OVMF/OVMF_CODE_4M.fd'
const aavmfCode = '/usr/share/AAVMF/AAVMF_CODE.fd'
const aavmfVariables = '/usr/share/AAVMF/AAVMF_VARS.fd'
const ovmfVariables = '/usr/share/OVMF/OVMF_VARS_4M.fd'
const ovmfSecureCode = '/usr/share/OVMF/OVMF_CODE_4M.secboot.fd'
const secureVariables = {
  'uefi-secure-site': '/usr/share/OVMF/OVMF_VARS_4M.snakeoil.fd',
  'uefi-secure-microsoft': '/usr/share/OVMF/OVMF_VARS_4M.ms.fd',
}

/**
 * Describes an emulated virtual machine (many hosts have no /dev/kvm). Its serial console is the process's output. It
 * powers off when its system does.
 * @param {object} options
 * @param {Firmware} options.firmware
 * @param {string} options.mac
 * @param {string} options.tap the port of the switch
 * @param {string} options.uefiVariables file where UEFI keeps its variables, created again at each start; unused with a
 *   BIOS
 * @param {number} options.memoryMib
 * @param {Medium | undefined} [options.medium] without it, it starts from the network
 * @param {readonly string[]} [options.ownDisks] images of disks in the machine, which it may write and never starts
 *   from
 * @param {number | undefined} [options.mtu] bytes of the largest IP packet that its card takes; by default Ethernet's
 * @param {{ mbit: number, duplex: 'half' | 'full' } | undefined} [options.link] what its card says of its link; by
 *   default nothing
 * @param {string | undefined} [options.tpm] the control socket of a swtpm, which is its TPM 2.0
 * @param {boolean} options.mayRestart false: the process ends when the machine restarts
 * @returns {{ command: string, args: string[] }}
 */
export function emulator({
  firmware,
  mac,
  tap,
  uefiVariables,
  memoryMib,
  medium,
  ownDisks = [],
  mtu,
  link,
  tpm,
  mayRestart,
}) {
  // A BIOS boots from the network by the card's ROM.
  const fromNetwork = !medium || medium.kind === 'disk'
  const rom = firmware === 'bios' && fromNetwork ? '' : ',romfile='
  const size = mtu ? `,host_mtu=${mtu}` : ''
  const speed = link ? `,speed=${link.mbit},duplex=${link.duplex}` : ''
  const card = `virtio-net-pci,netdev=n0,mac=${mac}${fromNetwork ? ',bootindex=1' : ''}${rom}${size}${speed}`
  const args = [
    '-accel',
    'tcg',
    '-cpu',
    'max',
    '-smp',
    '1',
    '-m',
    String(memoryMib),
    ...firmwareArguments(firmware, uefiVariables),
    '-nodefaults',
    '-display',
    'none',
    '-monitor',
    'none',
    ...(mayRestart ? [] : ['-no-reboot']),
    ...(medium ? mediumArguments(medium) : []),
    ...ownDisks.flatMap((file, index) => [
      '-drive',
      `if=none,id=d${index},format=raw,file=${file}`,
      '-device',
      `virtio-blk-pci,drive=d${index}`,
    ]),
    '-netdev',
    `tap,id=n0,ifname=${tap},script=no,downscript=no`,
    '-device',
    card,
    ...(tpm ? tpmArguments(firmware, tpm) : []),
    '-object',
    'rng-random,id=r0,filename=/dev/urandom',
    '-device',
    'virtio-rng-pci,rng=r0',
    '-chardev',
    'stdio,id=c0,signal=off',
    '-serial',
    'chardev:c0',
  ]
  return { command: firmware === 'uefi-arm64' ? 'qemu-system-aarch64' : 'qemu-system-x86_64', args }
}

/**
 * The two interfaces that TPMs of PCs have: FIFO on older machines, command-response buffer on newer ones.
 * @param {Firmware} firmware
 * @param {string} socket
 */
function tpmArguments(firmware, socket) {
  const device = firmware === 'bios' ? 'tpm-tis' : 'tpm-crb'
  return [
    '-chardev',
    `socket,id=t0,path=${socket}`,
    '-tpmdev',
    'emulator,id=e0,chardev=t0',
    '-device',
    `${device},tpmdev=e0`,
  ]
}

/** @param {Medium} medium */
function mediumArguments({ kind, file }) {
  const drive = ['-drive', `if=none,id=m0,format=raw,readonly=on,file=${file}`]
  if (kind === 'disk') return [...drive, '-device', 'virtio-blk-pci,drive=m0,bootindex=2']
  if (kind === 'cd') return [...drive, '-device', 'virtio-scsi-pci', '-device', 'scsi-cd,drive=m0,bootindex=1']
  return [...drive, '-device', 'qemu-xhci', '-device', 'usb-storage,drive=m0,bootindex=1']
}

/**
 * @param {Firmware} firmware
 * @param {string} uefiVariables
 */
function firmwareArguments(firmware, uefiVariables) {
  // SeaBIOS writes to the serial port only without graphics.
  if (firmware === 'bios') return ['-machine', 'pc,graphics=off']
  if (firmware === 'uefi-arm64') {
    copyFileSync(aavmfVariables, uefiVariables)
    return ['-machine', 'virt', ...flash(aavmfCode, uefiVariables)]
  }
  const keys = secureVariables[firmware]
  if (keys) {
    copyFileSync(keys, uefiVariables)
    // Variables are safe only where the firmware alone, in system management mode, can write them.
    const guarded = ['-global', 'driver=cfi.pflash01,property=secure,value=on']
    const withoutIpv6 = ['-fw_cfg', 'name=opt/org.tianocore/IPv6PXESupport,string=n']
    const machine = ['-machine', 'q35,smm=on', ...withoutIpv6, ...guarded]
    return [...machine, ...flash(ovmfSecureCode, uefiVariables)]
  }
  copyFileSync(ovmfVariables, uefiVariables)
  const pxeClients = ['IPv4PXESupport', 'IPv6PXESupport'].flatMap((name) => [
    '-fw_cfg',
    `name=opt/org.tianocore/${name},string=n`,
  ])
  return ['-machine', 'q35', ...(firmware === 'uefi-http' ? pxeClients : []), ...flash(ovmfCode, uefiVariables)]
}

/**
 * @param {string} code
 * @param {string} variables
 */
function flash(code, variables) {
  return [
    '-drive',
    `if=pflash,format=raw,unit=0,readonly=on,file=${code}`,
    '-drive',
    `if=pflash,format=raw,unit=1,file=${variables}`,
  ]
}
