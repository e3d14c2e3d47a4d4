export { cancelPromotion } from './cancel-promotion.ts'
export { getPromotion } from './get-promotion.ts'
export { promoteVersion, revertVersion } from './promote-version.ts'
