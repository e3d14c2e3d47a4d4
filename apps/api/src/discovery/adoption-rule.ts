import { z } from 'zod'
import { ipv4Network, isInNetwork } from '../rules/ipv4-network.ts'
import { nameOf, namePattern, namesMany } from '../rules/name-pattern.ts'

/** The kind of a machine's firmware, as far as rules distinguish it. */
const architectures = ['bios', 'x86_uefi', 'x64_uefi', 'arm32_uefi', 'arm64_uefi'] as const
const architecture = z.enum(architectures)
export type Architecture = z.infer<typeof architecture>

/**
 * By DHCP option 93 (RFC 4578 and IANA's list of processor architecture types). Firmware of x64 machines sends 7 or 9.
 */
const architectureOfType: Record<number, Architecture> = {
  0: 'bios',
  6: 'x86_uefi',
  7: 'x64_uefi',
  9: 'x64_uefi',
  10: 'arm32_uefi',
  11: 'arm64_uefi',
  15: 'x86_uefi',
  16: 'x64_uefi',
  17: 'x64_uefi',
  18: 'arm32_uefi',
  19: 'arm64_uefi',
  20: 'bios',
}

/** Returns null if the device reports none, or one that boots nothing here. */
function architectureOf(clientArch: number | null): Architecture | null {
  return clientArch === null ? null : (architectureOfType[clientArch] ?? null)
}

/** Actions on discovered devices without a click: the first rule of the site whose conditions all match. */

export const adoptionRulesMax = 32
/** Anybody at a site's network can forge addresses: beyond so many devices a site's rules adopt none. */
export const adoptingDevicesMax = 1000

const conditionText = z
  .string()
  .trim()
  .max(64)
  .regex(/^[\x20-\x7e]*$/, 'Use printable ASCII characters only.')
  .transform((text) => text || null)
const macPrefix = z
  .string()
  .trim()
  .toLowerCase()
  .transform((text) => text.replaceAll('-', ':'))
  .pipe(
    z.string().regex(/^([0-9a-f]{2}(:[0-9a-f]{2}){0,5})?$/, 'Enter whole octets of a MAC address, such as 00:50:56.'),
  )
  .transform((text) => text || null)

/** Empty text is no condition. */
const adoptionConditions = z.object({
  macPrefix: macPrefix.nullable(),
  vendorClassPrefix: conditionText.nullable(),
  vendorClassContains: conditionText.nullable(),
  architecture: architecture.nullable(),
  relayNetwork: ipv4Network.nullable().describe("That the relay agent's address is of."),
})

const pattern = namePattern.refine(namesMany, 'Use {n} or {mac} in the name pattern: a rule can match several devices.')

const adoptionAction = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ignore') }),
  z.object({ kind: z.literal('adopt'), namePattern: pattern, collectionId: z.uuid() }),
  /** The template device for the settings: its collection, boot programs and menu, and whether it is enabled. */
  z.object({ kind: z.literal('copy'), namePattern: pattern, templateDeviceId: z.uuid() }),
])

export const adoptionRule = z.object({ conditions: adoptionConditions, action: adoptionAction })
export type AdoptionRule = z.infer<typeof adoptionRule>

/** The facts that rules examine. */
export interface RuledDevice {
  mac: string
  vendorClass: string | null
  clientArch: number | null
  relay: string | null
}

export function ruleFits({ conditions }: AdoptionRule, device: RuledDevice): boolean {
  const vendorClass = device.vendorClass?.toLowerCase() ?? ''
  const { macPrefix, vendorClassPrefix, vendorClassContains, relayNetwork } = conditions
  return (
    (macPrefix === null || `${device.mac}:`.startsWith(`${macPrefix}:`)) &&
    (vendorClassPrefix === null || vendorClass.startsWith(vendorClassPrefix.toLowerCase())) &&
    (vendorClassContains === null || vendorClass.includes(vendorClassContains.toLowerCase())) &&
    (conditions.architecture === null || architectureOf(device.clientArch) === conditions.architecture) &&
    (relayNetwork === null || (device.relay !== null && isInNetwork(device.relay, relayNetwork)))
  )
}

/**
 * `none`: no rule fits; `full`: one does, but the site or its organization has as many devices, or it ignores as many,
 * as there may be.
 */
export type AdoptionPlan<Device> =
  | { device: Device; kind: 'none' }
  | { device: Device; kind: 'full' | 'ignore'; ruleIndex: number }
  | { device: Device; kind: 'adopt'; ruleIndex: number; name: string }

interface PlanOptions<Device> {
  rules: AdoptionRule[]
  devices: Device[]
  /** Names of the site's devices. */
  takenNames: ReadonlySet<string>
  /** How many more may be registered, and ignored. */
  room: { devices: number; ignored: number }
}

/** The actions of the rules on these devices, in their order. */
export function planAdoption<Device extends RuledDevice>({
  rules,
  devices,
  takenNames,
  room,
}: PlanOptions<Device>): AdoptionPlan<Device>[] {
  const taken = new Set(takenNames)
  const left = { ...room }
  return devices.map((device): AdoptionPlan<Device> => {
    const ruleIndex = rules.findIndex((rule) => ruleFits(rule, device))
    const action = rules[ruleIndex]?.action
    if (!action) return { device, kind: 'none' }
    if (action.kind === 'ignore') {
      if (left.ignored <= 0) return { device, kind: 'full', ruleIndex }
      left.ignored -= 1
      return { device, kind: 'ignore', ruleIndex }
    }
    if (left.devices <= 0) return { device, kind: 'full', ruleIndex }
    left.devices -= 1
    const name = nameOf(action.namePattern, device.mac, taken)
    taken.add(name)
    return { device, kind: 'adopt', ruleIndex, name }
  })
}
