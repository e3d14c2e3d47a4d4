import { type CapturedPacket, capturePacketsShownMax } from '../capture-schema.ts'
import { PacketWords } from './packet-words.ts'
import { pcapRecords } from './pcap-file.ts'

export function countPackets(pcap: Uint8Array): number {
  let count = 0
  for (const _record of pcapRecords(pcap)) count += 1
  return count
}

/** The first packets of a capture in words. @param deviceMac lower case, colon-separated */
export function listPackets(pcap: Uint8Array, deviceMac: string): CapturedPacket[] {
  const words = new PacketWords(deviceMac)
  const packets: CapturedPacket[] = []
  let beginUs: number | null = null
  for (const { atUs, frame, sizeBytes } of pcapRecords(pcap)) {
    if (packets.length === capturePacketsShownMax) break
    beginUs ??= atUs
    packets.push({ atUs: atUs - beginUs, ...words.read(frame), sizeBytes })
  }
  return packets
}
