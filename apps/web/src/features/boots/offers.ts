import type { BootDetail } from './boot-types'

type Offer = BootDetail['offers'][number]

export const offerKinds: Record<Offer['kind'], { word: string; meaning: string }> = {
  address: { word: 'address', meaning: 'Offers an IP address and no boot program.' },
  proxy: { word: 'boot', meaning: 'Offers a boot program and no IP address (proxyDHCP).' },
  both: { word: 'address and boot', meaning: 'Offers an IP address and a boot program.' },
}

/**
 * Explains the offers for this boot in a sentence: which other server's offer won, or could have won. Null if no other
 * server offered anything to boot.
 */
export function offersSentence({ offers, failedCause }: Pick<BootDetail, 'offers' | 'failedCause'>): string | null {
  const rivals = offers.filter(({ ours, kind, file }) => !ours && (kind !== 'address' || file))
  const [first] = rivals
  if (!first) return null
  const servers = [...new Set(rivals.map(({ server }) => server))]
  const who = servers.length === 1 ? `${first.server}` : `${servers.slice(0, -1).join(', ')} and ${servers.at(-1)}`
  const what = first.file && servers.length === 1 ? ` the boot program ${first.file}` : ' a boot program'
  return failedCause === 'other_offer_won'
    ? `${who} also offered${what}, and the device accepted that offer.`
    : `${who} also offered${what}. A device may accept that offer instead of this edge’s.`
}
