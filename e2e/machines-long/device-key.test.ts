import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { MachineSite } from '../lib/lab/machine-site.ts'

/** Prints the fingerprint of the key in the machine's TPM, and how long the TPM took to make it and to sign with it. */
const script = `
uptime() { read -r seconds rest </proc/uptime; echo "\${seconds%.*}\${seconds#*.}0"; }
before=$(uptime)
echo "IDENTITY $(bootfarm-target identity)"
echo "TOOK $(($(uptime) - before)) ms"
`
const missing = machinesMissing(['swtpm'])
/** What the commands of a TPM may add to a boot. */
const limitMs = 1500

describe.skipIf(missing)(`a machine with a TPM${missing ? ` (${missing})` : ''}`, () => {
  let site: MachineSite
  const seen = async (firmware: 'bios' | 'uefi') => {
    const machine = await site.powerOn(firmware)
    const [, took] = await machine.waitFor(/^TOOK (\d+) ms/m)
    expect(Number(took)).toBeLessThan(limitMs)
    expect(await machine.ended).toBe(0)
    return machine.output.match(/^IDENTITY (\w*)/m)?.[1]
  }

  beforeAll(async () => {
    site = new MachineSite('tpm', { script, blobSize: 1 << 20 })
    await site.startEdge('proxy')
  })
  afterAll(async () => {
    await site.remove()
  })

  test('has the same key at each start, whatever its firmware, and another one once the TPM was cleared', {
    timeout: 400_000,
  }, async () => {
    site.hasTpm = true
    const key = await seen('bios')
    expect(key).toMatch(/^[0-9a-f]{64}$/)
    expect(await seen('bios')).toBe(key)
    expect(await seen('uefi')).toBe(key)
    site.clearTpm()
    const other = await seen('bios')
    expect(other).toMatch(/^[0-9a-f]{64}$/)
    expect(other).not.toBe(key)
  })

  test('without a TPM says so, and boots', { timeout: 240_000 }, async () => {
    site.hasTpm = false
    const machine = await site.powerOn('bios')
    expect(await machine.ended).toBe(0)
    expect(machine.output).toMatch(/^IDENTITY \r?$/m)
    expect(machine.output).toMatch(/this machine has no TPM that Linux knows; it is known by its MAC address/)
  })
})
