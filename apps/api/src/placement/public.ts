export { lackingEdges } from './lacking-edges.ts'
