import { describe, expect, test } from 'vitest'
import { pcapOf, uefiPxeMac, uefiPxePackets, uefiPxePcap } from '../../../test/captures/pcap.ts'
import { capturePacketsShownMax } from '../schema.ts'
import { countPackets, listPackets } from './list-packets.ts'
import { pcapProblem } from './pcap-file.ts'

const wordsOf = (pcap: Uint8Array, mac = uefiPxeMac) =>
  listPackets(pcap, mac).map(({ direction, what }) => `${direction}: ${what}`)
/** The bytes with a change at a place. */
const changed = (bytes: Uint8Array, at: number, value: number) => {
  const copy = Uint8Array.from(bytes)
  copy[at] = value
  return copy
}

describe('the packets of a UEFI machine that tcpdump recorded', () => {
  test('are all counted, in order of time and with their size on the wire', () => {
    const packets = listPackets(uefiPxePcap, uefiPxeMac)
    expect([countPackets(uefiPxePcap), packets.length]).toEqual([uefiPxePackets, uefiPxePackets])
    expect(packets[0]).toMatchObject({ atUs: 0, sizeBytes: 389 })
    expect(packets.at(-1)?.atUs).toBe(9_404_010)
    expect(packets.map(({ atUs }) => atUs)).toEqual(packets.map(({ atUs }) => atUs).sort((a, b) => a - b))
    expect(packets[13]).toMatchObject({ sizeBytes: 1514, what: 'TFTP DATA block 1, 1468 B' })
  })

  test('name the server of the address, the server of the boot program, and the requested file', () => {
    expect(wordsOf(uefiPxePcap)).toEqual(
      expect.arrayContaining([
        'from_device: DHCP DISCOVER, PXEClient:Arch:00007:UNDI:003000',
        'to_device: DHCP OFFER, no address, next server 10.78.0.1, file b/89a9e9b29072e06e/snponly.efi',
        'to_device: DHCP OFFER, address 10.78.0.84, next server 10.78.0.2',
        'from_device: DHCP REQUEST, PXEClient:Arch:00007:UNDI:003000, of server 10.78.0.2',
        'from_device: TFTP RRQ b/89a9e9b29072e06e/snponly.efi (octet), tsize 0, blksize 1468, windowsize 4',
        'to_device: TFTP OACK tsize 173792, blksize 1468, windowsize 4',
        'from_device: TFTP ERROR 8: User aborted the transfer',
        'from_device: TFTP ACK of block 100',
        'from_device: DHCP DISCOVER, PXEClient:Arch:00007:UNDI:003010, iPXE',
        'from_device: TCP connect, port 32200 to 6980',
        'from_device: HTTP GET /b/89a9e9b29072e06e/boot.ipxe',
        'to_device: HTTP 200 OK',
        'from_device: HTTP GET /b/89a9e9b29072e06e/initrd',
        'from_device: ARP who has 10.78.0.1, asks 10.78.0.84',
      ]),
    )
  })

  test('of another device are neither from nor to the boot’s, and DHCP identifies it', () => {
    const [first = ''] = wordsOf(uefiPxePcap, '02:bf:00:00:00:01')
    expect(first).toBe(`other: DHCP DISCOVER, PXEClient:Arch:00007:UNDI:003000, of ${uefiPxeMac}`)
    expect(wordsOf(uefiPxePcap, '02:bf:00:00:00:01').every((words) => words.startsWith('other'))).toBe(true)
  })
})

describe('an invalid or damaged capture', () => {
  test.each([
    [new Uint8Array(23), /at least 24 bytes; these are 23/],
    [changed(uefiPxePcap, 0, 0), /neither 0xa1b2c3d4 nor 0xa1b23c4d/],
    [changed(uefiPxePcap, 20, 113), /link type is 113; only Ethernet/],
  ])('is refused with a sentence (%#)', (bytes, sentence) => {
    expect(pcapProblem(bytes)).toMatch(sentence)
  })

  test('in the other byte order and with nanoseconds is read alike', () => {
    const swapped = Uint8Array.from(Buffer.from(pcapOf([uefiPxePcap.subarray(40, 40 + 60)])).subarray(0, 40))
    Buffer.from(swapped.buffer).subarray(0, 4).reverse()
    Buffer.from(swapped.buffer).subarray(20, 24).reverse()
    for (const at of [24, 28, 32, 36])
      Buffer.from(swapped.buffer)
        .subarray(at, at + 4)
        .reverse()
    const file = Uint8Array.from([...swapped, ...uefiPxePcap.subarray(40, 100)])
    expect(pcapProblem(file)).toBeNull()
    expect(countPackets(file)).toBe(1)
    expect(pcapProblem(changed(changed(uefiPxePcap, 0, 0x4d), 1, 0x3c))).toBeNull()
  })

  test('that ends anywhere gives its complete records', () => {
    for (let size = 24; size < uefiPxePcap.byteLength; size += 7) {
      const packets = wordsOf(uefiPxePcap.subarray(0, size))
      expect(packets).toEqual(wordsOf(uefiPxePcap).slice(0, packets.length))
    }
  })

  test('with any byte another is read to its end, in printable ASCII', () => {
    const [first] = [uefiPxePcap.subarray(0, 1600)]
    for (let at = 24; at < first.byteLength; at++)
      for (const value of [0, 0x1b, 0x7f, 0xff])
        for (const words of wordsOf(changed(first, at, value))) expect(words).toMatch(/^[\x20-\x7e]*$/)
  })

  test('of frames cut off at any place are read as far as they go', () => {
    for (let at = 40; at < uefiPxePcap.byteLength - 64; at += 61) {
      const frame = uefiPxePcap.subarray(at, at + 64)
      for (let size = 0; size <= 64; size += 9) expect(wordsOf(pcapOf([frame.subarray(0, size)]))).toHaveLength(1)
    }
  })

  test('of more packets than anybody reads shows the first ones', () => {
    const pcap = pcapOf(Array.from({ length: capturePacketsShownMax + 5 }, () => new Uint8Array(60)))
    expect(countPackets(pcap)).toBe(capturePacketsShownMax + 5)
    expect(wordsOf(pcap)).toHaveLength(capturePacketsShownMax)
  })
})
