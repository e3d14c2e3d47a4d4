export { storedNetworkOf } from './stored-network.ts'
