export { endPack, keepAtEdge } from './end-transfer.ts'
export type { Objects } from './objects.ts'
