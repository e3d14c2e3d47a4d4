import { existsSync, readFileSync } from 'node:fs'

/** Option 93 of the firmware's DHCP (RFC 4578, 2.1; 16 is RFC 8415's registry for HTTP boot). */
const firmwareNames = { 0: 'BIOS', 7: 'UEFI PXE', 9: 'UEFI PXE', 16: 'UEFI HTTP boot' }

/** Records the tests' machines: each boot's phases, and where the consoles and packets of a failed boot are kept. */
export class MachineRecord {
  #file

  /** @param {string} file where the tests write lines of JSON */
  constructor(file) {
    this.#file = file
  }

  get env() {
    return { BOOTFARM_MACHINE_RECORD: this.#file }
  }

  print() {
    if (!existsSync(this.#file)) return
    const entries = readFileSync(this.#file, 'utf8').trim().split('\n').map(JSON.parse)
    for (const { test, boot } of entries.filter(({ boot }) => boot))
      process.stdout.write(`\n${phaseTable(test, boot)}\n`)
    const kept = new Set(entries.flatMap(({ kept }) => kept ?? []))
    if (kept.size > 0) process.stdout.write('\n')
    for (const directory of kept)
      process.stdout.write(`kept of a failed test: serial console, logs and packets in ${directory}\n`)
  }
}

/**
 * @param {string} test
 * @param {import('@bootfarm/proto/uplink').BootReport} boot
 */
function phaseTable(test, boot) {
  const firmware = firmwareNames[boot.clientArch] ?? `client architecture ${boot.clientArch ?? 'unknown'}`
  const { kind, cause } = boot.outcome
  const totalUs = Math.max(...boot.phases.map(({ startUs, durationUs = 0 }) => startUs + durationUs))
  const outcome = `${cause ? `${kind}: ${cause}` : kind} after ${milliseconds(totalUs)} ms`
  const rows = boot.phases.map(({ name, startUs, durationUs = 0, bytesOut, retries }) =>
    [
      name.padEnd(10),
      milliseconds(startUs).padStart(10),
      milliseconds(durationUs).padStart(10),
      String(bytesOut).padStart(11),
      String(retries).padStart(8),
    ].join(''),
  )
  return [
    `${boot.mac}  ${firmware}  ${outcome}  (${test})`,
    'phase       begin ms length ms      bytes retries',
    ...rows,
  ].join('\n')
}

const milliseconds = (us) => (us / 1000).toFixed(1)
