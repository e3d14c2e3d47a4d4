import type { DbTransaction } from '@bootfarm/db'
import { ignoredMacsMax } from '@bootfarm/proto/uplink'
import { roomFor } from '../organization/public.ts'
import {
  type AdoptionPlan,
  type AdoptionRule,
  adoptingDevicesMax,
  planAdoption,
  type RuledDevice,
} from './adoption-rule.ts'
import { readRules } from './adoption-rules.ts'
import { forgetDiscovered, namesOfSite, type SitePlace } from './rows.ts'

export type Plan<Device> = AdoptionPlan<Device>

/**
 * Returns the actions of the site's rules on these devices now. The caller holds the site's lock if it continues with
 * `carryOut`.
 */
export async function planRules<Device extends RuledDevice>(
  transaction: DbTransaction,
  place: SitePlace,
  devices: Device[],
): Promise<{ plans: Plan<Device>[]; rules: AdoptionRule[] }> {
  const rules = await readRules(transaction, place)
  if (rules.length === 0 || devices.length === 0)
    return { rules, plans: devices.map((device) => ({ device, kind: 'none' })) }
  const takenNames = await namesOfSite(transaction, place)
  const deviceCount = await transaction.device.count({ where: place })
  const ignoredCount = await transaction.discoveredDevice.count({
    where: { ...place, ignoredAt: { not: null } },
  })
  const devicesLeft = Math.min(adoptingDevicesMax - deviceCount, await roomFor(transaction, 'devices'))
  const room = { devices: devicesLeft, ignored: ignoredMacsMax - ignoredCount }
  return { rules, plans: planAdoption({ rules, devices, takenNames, room }) }
}

interface CarriedOut {
  adopted: { id: string; name: string; mac: string; collectionId: string }[]
  ignored: { id: string; mac: string }[]
}

interface CarryOutOptions<Device> {
  plans: Plan<Device>[]
  rules: AdoptionRule[]
  now: Date
}

/** Registers and ignores as planned, and wakes the site's edges. The caller records what it did. */
export async function carryOut<Device extends { mac: string }>(
  transaction: DbTransaction,
  place: SitePlace,
  { plans, rules, now }: CarryOutOptions<Device>,
): Promise<CarriedOut> {
  const adoptions = plans.flatMap((plan) => (plan.kind === 'adopt' ? plan : []))
  const ignoredMacs = plans.flatMap((plan) => (plan.kind === 'ignore' ? plan.device.mac : []))
  const settings = await settingsByRule(transaction, place, rules)
  const data = adoptions.flatMap(({ device: { mac }, name, ruleIndex }) => {
    const copied = settings[ruleIndex]
    return copied ? [{ ...place, ...copied, mac, name, createdAt: now }] : []
  })
  const adopted = await transaction.device.createManyAndReturn({
    data,
    skipDuplicates: true,
    select: { id: true, name: true, mac: true, collectionId: true },
  })
  await forgetDiscovered(
    transaction,
    place,
    data.map(({ mac }) => mac),
  )
  const ignored = await transaction.discoveredDevice.updateManyAndReturn({
    where: { ...place, mac: { in: ignoredMacs }, ignoredAt: null },
    data: { ignoredAt: now },
    select: { id: true, mac: true },
  })
  return { adopted, ignored }
}

/** Returns the settings of devices that a rule adopts, rule by rule; null if its template is gone. */
async function settingsByRule(transaction: DbTransaction, place: SitePlace, rules: AdoptionRule[]) {
  const templateIds = rules.flatMap(({ action }) => (action.kind === 'copy' ? action.templateDeviceId : []))
  const templates = await transaction.device.findMany({
    where: { ...place, id: { in: templateIds } },
    select: {
      id: true,
      collectionId: true,
      enabled: true,
      bootProgramSet: true,
      bootMenuChoice: true,
      bootMenuId: true,
    },
  })
  const settingsOf = new Map(templates.map(({ id, ...settings }) => [id, settings]))
  return rules.map(({ action }) => {
    if (action.kind === 'adopt') return { collectionId: action.collectionId }
    return action.kind === 'copy' ? (settingsOf.get(action.templateDeviceId) ?? null) : null
  })
}
