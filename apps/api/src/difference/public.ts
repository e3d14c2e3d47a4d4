export { endPack, keepAtEdge } from './end-transfer.ts'
