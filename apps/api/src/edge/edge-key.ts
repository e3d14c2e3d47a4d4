import { randomBytes } from 'node:crypto'

const edgeKeySizeBytes = 32

export function newEdgeKey(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(randomBytes(edgeKeySizeBytes))
}
