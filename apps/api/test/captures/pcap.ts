import { readFileSync } from 'node:fs'

/** Recorded by tcpdump: captures/README.md. */
export const uefiPxePcap = Uint8Array.from(readFileSync(new URL('./uefi-pxe.pcap', import.meta.url)))
/** The device in `uefiPxePcap`. */
export const uefiPxeMac = '52:54:00:78:00:00'
/** Packets in `uefiPxePcap`. */
export const uefiPxePackets = 51

/** A pcap file of these frames, recorded a millisecond apart. */
export function pcapOf(frames: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(24)
  header.writeUInt32LE(0xa1b2c3d4, 0)
  header.writeUInt16LE(2, 4)
  header.writeUInt16LE(4, 6)
  header.writeUInt32LE(65535, 16)
  header.writeUInt32LE(1, 20)
  const records = frames.flatMap((frame, index) => {
    const record = Buffer.alloc(16)
    record.writeUInt32LE(1_795_000_000, 0)
    record.writeUInt32LE(index * 1000, 4)
    record.writeUInt32LE(frame.byteLength, 8)
    record.writeUInt32LE(frame.byteLength, 12)
    return [record, frame]
  })
  return Uint8Array.from(Buffer.concat([header, ...records]))
}
