import type { TransferReport } from '@bootfarm/proto/uplink'

/** Blocks of TFTP of one size that a boot was sent. */
export interface TftpBlocks {
  blockSize: number
  blocks: number
  /** Of these, how many were sent more than once. */
  again: number
}

/** Returns the blocks of a boot's files by their size; absent without any, or from an older edge. */
export function tftpBlocksOf(transfers: TransferReport[] = []): TftpBlocks[] | undefined {
  const bySize = new Map<number, TftpBlocks>()
  for (const { protocol, blockSize, bytes, retransmitted = 0 } of transfers) {
    if (protocol !== 'tftp' || blockSize === undefined) continue
    const known = bySize.get(blockSize) ?? { blockSize, blocks: 0, again: 0 }
    const blocks = Math.floor(bytes / blockSize) + 1
    bySize.set(blockSize, {
      blockSize,
      blocks: known.blocks + blocks,
      again: known.again + Math.min(blocks, retransmitted),
    })
  }
  return bySize.size > 0 ? [...bySize.values()] : undefined
}
