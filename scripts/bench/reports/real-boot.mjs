import { randomUUID } from 'node:crypto'

/** A machine's boot over iPXE from its first packet until it has reported itself: each of these is one report. */
const steps = ['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'over', 'guest', 'write cache']
export const reportsPerBoot = steps.length

const phases = [
  { name: 'dhcp', ms: 1_900, packets: 4, reads: 0 },
  { name: 'nbp', ms: 700, packets: 780, reads: 0 },
  { name: 'loader', ms: 4_200, packets: 21_000, reads: 0 },
  { name: 'breather', ms: 2_600, packets: 0, reads: 0 },
  { name: 'stage2', ms: 14_500, packets: 88_000, reads: 9_400 },
]

/** @returns a boot of the device that started 25 s ago; `failed`: it ends in its last phase */
export function newBoot({ mac, deviceId, vdiskId, versionId, isFailed }) {
  const startedUnixMs = Date.now() - 25_000
  return { id: randomUUID(), mac, deviceId, vdiskId, versionId, isFailed, startedUnixMs }
}

/** The report of one step, as packages/proto/src/uplink-boot.ts has it: what is known by then, whole. */
export function reportOf({ isFailed, ...boot }, step) {
  const isOver = step >= steps.indexOf('over')
  return {
    ...boot,
    revision: step + 1,
    machineId: '4c4c4544-0042-3510-8051-b4c04f4d3332',
    simulated: false,
    generated: false,
    reconnects: 0,
    clientArch: 7,
    vendorClass: 'PXEClient:Arch:00007:UNDI:003016',
    ip: '10.1.2.3',
    program: { set: 'ipxe', file: 'ipxe-x86_64.efi' },
    offers: [
      { atUs: 4_100, server: '10.1.0.1', ours: false, kind: 'address', yourIp: '10.1.2.3' },
      { atUs: 4_900, server: '10.1.0.2', ours: true, kind: 'proxy', file: 'ipxe-x86_64.efi' },
    ],
    phases: phasesAt(step),
    ...(step >= steps.indexOf('stage2') ? { mtu: 1500, cipher: 'aegis_128l' } : {}),
    ...(isOver ? { outcome: outcomeOf(isFailed), readAhead, readTimes } : { lastPackets }),
    ...(step >= steps.indexOf('guest') ? { guest: guestAt(step) } : {}),
  }
}

function phasesAt(step) {
  let startUs = 0
  return phases.slice(0, step + 1).map(({ name, ms, packets, reads }, index) => {
    const one = {
      name,
      startUs,
      source: name === 'breather' ? 'inferred' : 'observed',
      bytesIn: packets * 60,
      bytesOut: packets * 1_400,
      packetsIn: Math.ceil(packets / 8),
      packetsOut: packets,
      retries: index,
      missingFragments: index,
      reads,
      ...(index < step ? { durationUs: ms * 1_000 } : {}),
      ...(reads > 0 ? { readSizes: [12, 80, 400, 900, 1_800, 1_700, 2_100, 2_400, 8] } : {}),
    }
    startUs += ms * 1_000
    return one
  })
}

const outcomeOf = (isFailed) =>
  isFailed
    ? { kind: 'failed', phase: 'stage2', cause: 'guest_reported_failure', text: 'the disk did not become ready' }
    : { kind: 'ready' }
const lastPackets = {
  fromDevice: { atUs: 6_000_000, what: 'TFTP ACK of block 145' },
  fromEdge: { atUs: 6_000_400, what: 'TFTP DATA of block 146' },
}
const readAhead = { hadProfile: true, askedBytes: 310_000_000, usedBytes: 270_000_000, waitedReads: 610 }
const histogram = {
  firstBucket: 4,
  counts: [40, 310, 2_100, 3_900, 2_200, 700, 120, 30],
  maxUs: 1_900,
  sumUs: 1_400_000,
}
const times = {
  bytes: 330_000_000,
  warm: histogram,
  cold: histogram,
  send: histogram,
  fetch: histogram,
  wait: histogram,
}
const readTimes = { ...times, phases: [{ name: 'initramfs', ...times }] }

function guestAt(step) {
  const unit = (name, startMs, ms) => ({ group: 'unit', name, startUs: startMs * 1_000, durationUs: ms * 1_000 })
  return {
    kernelStartUs: 9_400_000,
    steps: [
      { group: 'firmware', name: 'firmware', startUs: -11_000_000, durationUs: 9_000_000 },
      { group: 'kernel', name: 'kernel', startUs: 0, durationUs: 1_400_000 },
      { group: 'initramfs', name: 'disk', startUs: 1_490_000, durationUs: 210_000 },
      { group: 'system', name: 'systemd', startUs: 2_700_000, durationUs: 9_000_000 },
      unit('NetworkManager.service', 4_000, 1_100),
      unit('gdm.service', 6_000, 3_100),
      unit('ssh.service', 5_100, 620),
    ],
    writeCache: { usedBytes: (step - 4) * 120_000_000, sizeBytes: 4_000_000_000, atUs: 25_000_000 + step },
  }
}
