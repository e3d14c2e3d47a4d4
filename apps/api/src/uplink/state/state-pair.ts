/** Orders desired states: first the control plane's incarnation, then the edge's counter. */
export interface StatePair {
  incarnation: number
  counter: number
}

export function parseStatePair(text: string): StatePair {
  const [incarnation, counter] = text.split('.')
  return { incarnation: Number(incarnation), counter: Number(counter) }
}

export function isLater(left: StatePair, right: StatePair): boolean {
  if (left.incarnation !== right.incarnation) return left.incarnation > right.incarnation
  return left.counter > right.counter
}
