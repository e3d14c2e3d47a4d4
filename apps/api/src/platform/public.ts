export { isPlatformOperator } from './platform-operator.ts'
