import { type DeviceKeyReport, deviceKeyLabels, keyLearnings, keylessAccesses } from '@bootfarm/proto/uplink'
import { z } from 'zod'

/** What is known of the key in a device's TPM, and what people decide: packages/proto/UPLINK.md, "Device keys". */

export const deviceKeyLabel = z.enum(deviceKeyLabels)
export type DeviceKeyLabel = z.infer<typeof deviceKeyLabel>
/** A person has to decide. */
export const keyAlarms = ['key_changed', 'key_missing', 'signature_invalid'] as const satisfies DeviceKeyLabel[]

export const keyLearning = z.enum(keyLearnings)
export type KeyLearning = z.infer<typeof keyLearning>
export const keylessAccess = z.enum(keylessAccesses)
export type KeylessAccess = z.infer<typeof keylessAccess>
export interface KeyPolicy {
  learn: KeyLearning
  without: KeylessAccess
}
/**
 * Protects a device with a TPM from its first boot on, and refuses nothing to one without. It is also what edges do if
 * a state has no policy for a device.
 */
export const keyPolicyDefault: KeyPolicy = { learn: 'accept_first', without: 'everything' }

/** SHA-256 of a public key, in the form that `bootfarm-target identity` prints on the device. */
export const fingerprint = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[0-9a-f]{64}$/, 'A fingerprint has 64 hexadecimal digits.')

export function fingerprintOf(sha256: Uint8Array): string
export function fingerprintOf(sha256: Uint8Array | null): string | null
export function fingerprintOf(sha256: Uint8Array | null): string | null {
  return sha256 && Buffer.from(sha256).toString('hex')
}

export interface DeviceKey {
  /** The fingerprint that is known. */
  key: string | null
  /** A person has decided that it has no key; then `key` is null. */
  keyless: boolean
  revision: number
  /** Null: it was not judged yet. */
  label: DeviceKeyLabel | null
  /** The fingerprint that an alarm is about, or that waits. */
  claimed: string | null
  claimBootId: string | null
  claimedAt: Date | null
}

interface ReportFacts {
  learn: KeyLearning
  bootId: string
  /** No later boot of the device is known. */
  isNewestBoot: boolean
  now: Date
}

const noClaim = { claimed: null, claimBootId: null, claimedAt: null }

/**
 * Returns the device's key after an edge has reported its judgement; null if nothing changes. The edge may have judged
 * by an older state than this one: its label counts as far as it agrees with what is known here.
 */
export function takeKeyReport(device: DeviceKey, report: DeviceKeyReport, facts: ReportFacts): DeviceKey | null {
  if ((report.revision ?? 0) < device.revision) return null
  const key = report.key ? Buffer.from(report.key, 'base64').toString('hex') : null
  const after = afterReport(device, { label: report.label, key }, facts)
  return after && isEqual(device, after) ? null : after
}

interface Judged {
  label: DeviceKeyLabel
  key: string | null
}

function afterReport(device: DeviceKey, { label, key }: Judged, facts: ReportFacts): DeviceKey | null {
  switch (label) {
    case 'key_known':
    case 'key_waits':
    case 'key_changed':
      return key === null ? null : afterProof(device, { label, key }, facts)
    case 'no_key':
      // The report of an earlier boot may arrive after its key became known.
      if (!facts.isNewestBoot) return null
      return device.key === null ? calm(device, label) : alarm(device, { label: 'key_missing', key: null }, facts)
    case 'key_missing':
      return device.keyless ? null : alarm(device, { label, key: null }, facts)
    case 'signature_invalid':
      return alarm(device, { label, key: null }, facts)
  }
}

/** The device has proved a key. */
function afterProof(device: DeviceKey, { label, key }: Judged & { key: string }, facts: ReportFacts): DeviceKey {
  if (device.key === key) return calm(device, 'key_known')
  if (device.key !== null || device.keyless || label === 'key_changed')
    return alarm(device, { label: 'key_changed', key }, facts)
  if (label === 'key_known' && facts.learn === 'accept_first') {
    const accepted = isAlarm(device.label) ? device : { ...device, ...noClaim, label: 'key_known' as const }
    return { ...accepted, key }
  }
  return isAlarm(device.label) ? device : claim(device, { label: 'key_waits', key }, facts)
}

/** An alarm stays until a person decides, and so does a key that waits. */
function calm(device: DeviceKey, label: DeviceKeyLabel): DeviceKey {
  return isAlarm(device.label) || (device.label === 'key_waits' && label === 'no_key') ? device : { ...device, label }
}

/** The newest alarm is shown, but a key that was proved is not replaced by a missing one: a person may approve it. */
function alarm(device: DeviceKey, judged: Judged, facts: ReportFacts): DeviceKey {
  const hasKey = isAlarm(device.label) && device.claimed !== null
  return hasKey && judged.key === null ? device : claim(device, judged, facts)
}

function claim(device: DeviceKey, { label, key }: Judged, { bootId, isNewestBoot, now }: ReportFacts): DeviceKey {
  const isSame = device.label === label && device.claimed === key && device.claimedAt !== null
  const claimBootId = isSame && !isNewestBoot ? device.claimBootId : bootId
  return { ...device, label, claimed: key, claimBootId, claimedAt: isSame ? device.claimedAt : now }
}

export function isAlarm(label: DeviceKeyLabel | null): boolean {
  return (keyAlarms as readonly (DeviceKeyLabel | null)[]).includes(label)
}

function isEqual(one: DeviceKey, other: DeviceKey): boolean {
  return (Object.keys(one) as (keyof DeviceKey)[]).every((name) => one[name] === other[name])
}

/**
 * `approve`: the claimed key is the device's; `keep`: it is not, and what is known stays; `forget`: nothing is known,
 * as before its first boot; `keyless`: the device has no key.
 */
export const keyDecisions = ['approve', 'keep', 'forget', 'keyless'] as const
export type KeyDecision = (typeof keyDecisions)[number]

/** Returns the device's key after the decision; a text says why there is nothing to decide. */
export function decideKey(device: DeviceKey, decision: KeyDecision): DeviceKey | string {
  const next = { ...device, ...noClaim, revision: device.revision + 1 }
  switch (decision) {
    case 'approve':
      if (device.claimed === null) return 'It has proved no key that could be approved. Boot it first.'
      return { ...next, key: device.claimed, keyless: false, label: 'key_known' }
    case 'keep':
      if (!isAlarm(device.label)) return 'There is no alarm to dismiss.'
      return { ...next, label: device.key === null ? (device.keyless ? 'no_key' : null) : 'key_known' }
    case 'forget':
      if (device.key === null && !device.keyless && device.claimed === null) return 'No key of it is known.'
      return { ...next, key: null, keyless: false, label: null }
    case 'keyless':
      if (device.keyless && !isAlarm(device.label)) return 'It is known as a device without a key already.'
      return { ...next, key: null, keyless: true, label: 'no_key' }
  }
}
