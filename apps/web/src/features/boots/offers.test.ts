import { describe, expect, test } from 'vitest'
import { offersSentence } from './offers.ts'

type Offer = Parameters<typeof offersSentence>[0]['offers'][number]

const own: Offer = {
  atUs: 0,
  server: '10.0.0.1',
  ours: true,
  kind: 'proxy',
  file: 'snponly.efi',
  yourIp: null,
  nextServer: '10.0.0.1',
  relay: null,
  vendorClass: null,
}
const address: Offer = { ...own, server: '10.0.0.2', ours: false, kind: 'address', file: null }
const rival: Offer = { ...own, server: '10.0.0.3', ours: false, kind: 'both', file: 'other.efi' }

describe('what the offers mean', () => {
  test('is nothing where others gave addresses alone', () => {
    expect(offersSentence({ offers: [own, address], failedCause: null })).toBeNull()
    expect(offersSentence({ offers: [], failedCause: 'other_offer_won' })).toBeNull()
  })

  test('is who won, and with what', () => {
    expect(offersSentence({ offers: [own, address, rival], failedCause: 'other_offer_won' })).toBe(
      '10.0.0.3 also offered the boot program other.efi, and the device accepted that offer.',
    )
  })

  test('is who could have, also several', () => {
    const offers = [rival, { ...rival, server: '10.0.0.4' }, rival]
    expect(offersSentence({ offers, failedCause: 'tftp_timeout' })).toBe(
      '10.0.0.3 and 10.0.0.4 also offered a boot program. A device may accept that offer instead of this edge’s.',
    )
  })

  test('counts a plain DHCP server that names a boot file', () => {
    const offers = [{ ...address, file: 'pxelinux.0' }]
    expect(offersSentence({ offers, failedCause: null })).toContain('10.0.0.2 also offered the boot program pxelinux.0')
  })
})
