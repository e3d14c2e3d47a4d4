const unitSize = 32 << 10

/** Unpacks the answer to a READ (STREAM.md, "Packed answers"); undefined where it is a mistake. */
export function unpack(packed: Buffer, offset: number, length: number): Buffer | undefined {
  const pieces: Buffer[] = []
  let at = 0
  for (let done = 0; done < length; ) {
    const size = Math.min(length - done, unitSize - ((offset + done) % unitSize))
    if (at + 2 > packed.length) return undefined
    const packedSize = packed.readUInt16BE(at)
    const from = packed.subarray(at + 2, at + 2 + packedSize)
    if (from.length < packedSize || packedSize > size) return undefined
    const piece = packedSize === 0 ? Buffer.alloc(size) : packedSize === size ? from : unpackBlock(from, size)
    if (!piece) return undefined
    pieces.push(piece)
    at += 2 + packedSize
    done += size
  }
  return at === packed.length ? Buffer.concat(pieces) : undefined
}

/** Unpacks an LZ4 block that gives exactly `size` bytes. */
function unpackBlock(from: Buffer, size: number): Buffer | undefined {
  const bytes: number[] = []
  let at = 0
  const next = () => from[at++] ?? Number.NaN
  const lengthOf = (short: number) => {
    let sum = short
    if (short === 15)
      for (let more = 255; more === 255; ) {
        more = next()
        sum += more
      }
    return sum
  }
  while (true) {
    const token = next()
    const literals = lengthOf(token >> 4)
    if (!(at + literals <= from.length)) return undefined
    bytes.push(...from.subarray(at, at + literals))
    at += literals
    if (at === from.length) return bytes.length === size ? Buffer.from(bytes) : undefined
    const distance = next() + 256 * next()
    const matched = lengthOf(token & 15) + 4
    if (!(distance >= 1 && distance <= bytes.length && bytes.length + matched <= size)) return undefined
    for (let index = 0; index < matched; index += 1) bytes.push(bytes[bytes.length - distance] ?? 0)
  }
}
