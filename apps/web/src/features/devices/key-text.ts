import type { RouterOutputs } from '../../lib/trpc'

export type DeviceKey = RouterOutputs['device']['get']['key']
export type KeyLabel = NonNullable<RouterOutputs['device']['get']['keyLabel']>
type KeyPolicy = DeviceKey['policy']

/** The names of labels in lists, filters and tags. */
export const keyLabels: Record<KeyLabel, string> = {
  key_known: 'Key known',
  key_waits: 'Key waits for approval',
  key_changed: 'Another key than before',
  key_missing: 'Known key not proved',
  no_key: 'No TPM key',
  signature_invalid: 'Wrong signature',
}

/** The values of the URL's filter. */
export const keyFilters = [
  'alarm',
  'key_waits',
  'key_known',
  'no_key',
  'key_changed',
  'key_missing',
  'signature_invalid',
  'unjudged',
] as const
export const keyFilterOptions = keyFilters.map((value) => ({
  value,
  label: value === 'alarm' ? 'Any alarm' : value === 'unjudged' ? 'Not checked yet' : keyLabels[value],
}))

export function isKeyAlarm(label: KeyLabel | null): boolean {
  return label === 'key_changed' || label === 'key_missing' || label === 'signature_invalid'
}

/** Groups of eight digits: two people can read it to each other. */
export function fingerprintText(fingerprint: string): string {
  return fingerprint.match(/.{1,8}/g)?.join(' ') ?? fingerprint
}

/** What the label means for the device, in one or two sentences. */
export function keySentence(
  label: KeyLabel | null,
  { keyless, policy }: Pick<DeviceKey, 'keyless' | 'policy'>,
): string {
  switch (label) {
    case null:
      return 'No edge has checked the key of this device yet. Its next boot does.'
    case 'key_known':
      return 'This device is known by the key in its TPM. Only this machine opens its private image, stored writes and maintenance versions.'
    case 'key_waits':
      return `This device has proved a key that nobody has approved yet. Until then it ${accessText(policy)}.`
    case 'key_changed':
      return `A machine with this MAC address has proved another key${keyless ? '. This device is known as one without a key' : ' than the one that is known'}. Either its TPM was cleared or its mainboard replaced, or it is another machine.`
    case 'key_missing':
      return 'A machine with this MAC address has not proved the known key. Either its TPM is switched off in the firmware or does not answer, or it is another machine.'
    case 'signature_invalid':
      return 'A machine with this MAC address has sent a wrong signature, and its boot was refused. Devices never do that by themselves.'
    case 'no_key':
      return keyless
        ? 'Somebody has decided that this device has no key. It is known by its MAC address only.'
        : `This device has proved no key: it has no TPM 2.0, or does not use it. It ${accessText(policy)}.`
  }
}

/** What a device without a known key gets: "it …". */
export function accessText({ without }: Pick<KeyPolicy, 'without'>): string {
  const texts = {
    everything: 'is known by its MAC address and gets everything, private images included',
    shared: 'gets shared versions, and no private image, stored writes or maintenance version',
    nothing: 'gets nothing: its boot is refused',
  }
  return texts[without]
}

export const learnOptions: { value: KeyPolicy['learn']; label: string }[] = [
  { value: 'accept_first', label: 'Accept the key of the first boot' },
  { value: 'approve', label: 'Require approval of each key' },
]
export const withoutOptions: { value: KeyPolicy['without']; label: string }[] = [
  { value: 'everything', label: 'Everything' },
  { value: 'shared', label: 'Shared versions only' },
  { value: 'nothing', label: 'Nothing' },
]

/** What the choice costs. */
export const learnCost: Record<KeyPolicy['learn'], string> = {
  accept_first:
    'No work, but whoever boots first with a device’s MAC address takes its place. The device itself is then the alarm.',
  approve:
    'Each new device, and each one with a new mainboard, waits until somebody has compared its fingerprint and approved it.',
}
export const withoutCost: Record<KeyPolicy['without'], string> = {
  everything:
    'Nothing is refused to machines without a TPM 2.0, and a MAC address opens what belongs to them. A device whose key is known still has to prove it.',
  shared:
    'Machines without a TPM 2.0 lose their private images and stored writes: devices of such vDisks do not boot without a key.',
  nothing: 'Machines without a TPM 2.0 do not boot. Devices that wait for approval do not boot either.',
}
