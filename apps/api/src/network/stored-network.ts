import type { BootReport, NetworkReport } from '@bootfarm/proto/uplink'
import { type TftpBlocks, tftpBlocksOf } from './tftp-blocks.ts'

/** What a boot's row keeps of its network. */
export type StoredNetwork = NetworkReport & { tftp?: TftpBlocks[] | undefined }

/** Null: its device has measured nothing. */
export function storedNetworkOf({ network, transfers }: BootReport): StoredNetwork | null {
  if (!network) return null
  const tftp = tftpBlocksOf(transfers)
  return tftp ? { ...network, tftp } : network
}
