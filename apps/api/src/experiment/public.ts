export { takeTrialBoots } from './take-boots.ts'
