import type { RouterOutputs } from '../../lib/trpc'

export type Rule = RouterOutputs['discovered']['rules']['rules'][number]
export type Conditions = Rule['conditions']

export const architectureNames: Record<NonNullable<Conditions['architecture']>, string> = {
  bios: 'x86 BIOS',
  x86_uefi: 'x86 UEFI',
  x64_uefi: 'x86-64 UEFI',
  arm32_uefi: 'arm32 UEFI',
  arm64_uefi: 'arm64 UEFI',
}

/** Each condition that is set, in words; all of them must hold. */
export function conditionText(conditions: Conditions): string[] {
  const { macPrefix, vendorClassPrefix, vendorClassContains, architecture, relayNetwork } = conditions
  return [
    macPrefix && `MAC address begins with ${macPrefix}`,
    vendorClassPrefix && `vendor class begins with “${vendorClassPrefix}”`,
    vendorClassContains && `vendor class contains “${vendorClassContains}”`,
    architecture && `firmware is ${architectureNames[architecture]}`,
    relayNetwork && `relay agent is in ${relayNetwork}`,
  ].filter((words): words is string => Boolean(words))
}

/** @param nameOf a collection or a device by its id */
export function actionText(action: Rule['action'], nameOf: (id: string) => string): string {
  if (action.kind === 'ignore') return 'Ignore'
  const how =
    action.kind === 'copy'
      ? `using ${nameOf(action.templateDeviceId)} as template`
      : `into ${nameOf(action.collectionId)}`
  return `Adopt as ${action.namePattern} ${how}`
}

export const noConditions: Conditions = {
  macPrefix: null,
  vendorClassPrefix: null,
  vendorClassContains: null,
  architecture: null,
  relayNetwork: null,
}

/** The same rules with the one at `index` at `index + by`. */
export function moved(rules: Rule[], index: number, by: -1 | 1): Rule[] {
  const rule = rules[index]
  const others = rules.filter((_, place) => place !== index)
  return rule ? [...others.slice(0, index + by), rule, ...others.slice(index + by)] : rules
}
