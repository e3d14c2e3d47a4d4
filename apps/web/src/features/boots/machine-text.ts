import type { BootDetail } from './boot-types'

type Machine = NonNullable<BootDetail['facts']['machine']>

const storageTexts = new Map([
  ['nvme', 'NVMe SSD'],
  ['ssd', 'SSD'],
  ['hdd', 'Hard disk'],
  ['network', 'Network file system'],
  ['memory', 'Memory'],
])

/** By the words of `storageKinds` in packages/proto. */
export function storageText(kind: string): string {
  return storageTexts.get(kind) ?? kind
}

/** Driver, PCI ids and link speed, as far as the device knows them; null: nothing of it. */
export function cardText({ driver, card, linkMbit }: Machine): string | null {
  const link = linkMbit && (linkMbit >= 1000 ? `${linkMbit / 1000} Gbit/s` : `${linkMbit} Mbit/s`)
  const name = driver && card ? `${driver} (${card})` : (driver ?? card)
  return [name, link].filter(Boolean).join(', ') || null
}
