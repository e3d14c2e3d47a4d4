export { edgeInstallation } from './edge-releases.ts'
export type { UpdateRepository } from './update-repository.ts'
