/**
 * Reads pcap files (https://www.tcpdump.org/manpages/pcap-savefile.5.html): 24 bytes of header, then records of 16
 * bytes of header and the recorded bytes. The work is bounded by the file's size; once the header is valid, no content
 * makes it throw.
 */

const fileHeaderSize = 24
const recordHeaderSize = 16
const magicOfMicroseconds = 0xa1b2c3d4
const magicOfNanoseconds = 0xa1b23c4d
const linkTypeEthernet = 1

interface PcapRecord {
  /** µs since 1970 by the clock of who recorded it. */
  atUs: number
  /** The recorded part of the frame. */
  frame: Uint8Array
  /** Size of the whole frame on the wire. */
  sizeBytes: number
}

/** Returns the reason, as a sentence, why these bytes are no acceptable pcap file; null if they are one. */
export function pcapProblem(bytes: Uint8Array): string | null {
  if (bytes.byteLength < fileHeaderSize)
    return `A pcap file has at least ${fileHeaderSize} bytes; these are ${bytes.byteLength}.`
  const format = formatOf(bytes)
  if (!format) return 'This is no pcap file: it begins with neither 0xa1b2c3d4 nor 0xa1b23c4d.'
  if (format.linkType !== linkTypeEthernet)
    return `The pcap file's link type is ${format.linkType}; only Ethernet (1) is taken.`
  return null
}

/**
 * Returns the complete records in order, without a last one that was cut off. None if `pcapProblem` reports a problem.
 */
export function* pcapRecords(bytes: Uint8Array): Generator<PcapRecord> {
  const format = bytes.byteLength >= fileHeaderSize ? formatOf(bytes) : null
  if (!format) return
  const { littleEndian, nanoseconds } = format
  const view = viewOf(bytes)
  for (let at = fileHeaderSize; at + recordHeaderSize <= bytes.byteLength; ) {
    const seconds = view.getUint32(at, littleEndian)
    const fraction = view.getUint32(at + 4, littleEndian)
    const recordedSize = view.getUint32(at + 8, littleEndian)
    const begin = at + recordHeaderSize
    at = begin + recordedSize
    if (at > bytes.byteLength) return
    yield {
      atUs: seconds * 1_000_000 + (nanoseconds ? Math.floor(fraction / 1000) : fraction),
      frame: bytes.subarray(begin, at),
      sizeBytes: view.getUint32(begin - 4, littleEndian),
    }
  }
}

interface Format {
  littleEndian: boolean
  nanoseconds: boolean
  linkType: number
}

function formatOf(bytes: Uint8Array): Format | null {
  const view = viewOf(bytes)
  for (const littleEndian of [true, false]) {
    const magic = view.getUint32(0, littleEndian)
    if (magic !== magicOfMicroseconds && magic !== magicOfNanoseconds) continue
    // The upper bits contain the length of the frames' check sequence.
    const linkType = view.getUint32(20, littleEndian) & 0x0fffffff
    return { littleEndian, nanoseconds: magic === magicOfNanoseconds, linkType }
  }
  return null
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
