export { type LackingEdge, lackingEdges, readSpread } from './lacking-edges.ts'
export { isOpen, type TimeWindow } from './placement-rule.ts'
export { waitReasons } from './transfer-facts.ts'
