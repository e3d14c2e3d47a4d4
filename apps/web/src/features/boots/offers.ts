import type { BootDetail } from './boot-types'

type Offer = BootDetail['offers'][number]

export const offerKinds: Record<Offer['kind'], { word: string; meaning: string }> = {
  address: { word: 'address', meaning: 'It gives an address and says nothing of what to boot.' },
  proxy: { word: 'boot', meaning: 'It says what to boot and gives no address (proxyDHCP).' },
  both: { word: 'address and boot', meaning: 'It gives an address and says what to boot.' },
}

/**
 * What the offers mean for this boot, as a sentence: whose boot offer won where it was another server's, or whose could have.
 * Null where no other server offered anything to boot.
 */
export function offersSentence({ offers, failedCause }: Pick<BootDetail, 'offers' | 'failedCause'>): string | null {
  const rivals = offers.filter(({ ours, kind, file }) => !ours && (kind !== 'address' || file))
  const [first] = rivals
  if (!first) return null
  const servers = [...new Set(rivals.map(({ server }) => server))]
  const who = servers.length === 1 ? `${first.server}` : `${servers.slice(0, -1).join(', ')} and ${servers.at(-1)}`
  const what = first.file && servers.length === 1 ? ` the boot program ${first.file}` : ' something to boot'
  return failedCause === 'other_offer_won'
    ? `${who} offered${what} as well, and the device took that offer.`
    : `${who} offered${what} as well: a device may take that offer instead of this edge’s.`
}
