export { quantileOf } from './figures.ts'
export { normalQuantile } from './normal-quantile.ts'
export { medianOf, shareDifference } from './set-differences.ts'
