import { countOf } from '../../lib/format-quantity.ts'
import type { BootDetail, BootSummary } from './boot-types'

type Machine = NonNullable<BootDetail['facts']['machine']>

type StorageKind = NonNullable<BootSummary['storage']>

const storageTexts: Record<StorageKind, string> = {
  nvme: 'NVMe SSD',
  ssd: 'SSD',
  hdd: 'Hard disk',
  network: 'Network file system',
  memory: 'Memory',
}
export const storageKinds = Object.keys(storageTexts) as [StorageKind, ...StorageKind[]]

/** By the words of `storageKinds` in packages/proto. */
export function storageText(kind: string): string {
  return Object.hasOwn(storageTexts, kind) ? storageTexts[kind as StorageKind] : kind
}

/** Model, processors, memory and card, as far as the device told them; null: nothing of it. */
export function hardwareText({ model, processors, memoryGib, networkCard }: BootSummary['hardware']): string | null {
  const parts = [
    model,
    processors && countOf(processors, 'processor'),
    memoryGib && `${memoryGib}\u00a0GiB`,
    networkCard,
  ]
  return parts.filter(Boolean).join(', ') || null
}

/** Driver, PCI ids and link speed, as far as the device knows them; null: nothing of it. */
export function cardText({ driver, card, linkMbit }: Machine): string | null {
  const link = linkMbit && (linkMbit >= 1000 ? `${linkMbit / 1000} Gbit/s` : `${linkMbit} Mbit/s`)
  const name = driver && card ? `${driver} (${card})` : (driver ?? card)
  return [name, link].filter(Boolean).join(', ') || null
}
