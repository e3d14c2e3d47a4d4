export { edgeInstallation } from './edge-releases.ts'
