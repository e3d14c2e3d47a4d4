export { askToBoot } from './ask-to-boot.ts'
