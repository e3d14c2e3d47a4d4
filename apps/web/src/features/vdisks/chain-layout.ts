/** The layout of a vDisk's versions in the picture of its chain. Pure. */

/** Further branches are drawn over the last of these. */
const lanesMax = 5

export interface ChainRow {
  id: string
  /** 0 is the leftmost. */
  lane: number
  /** Lanes of others that go by, from the upper edge of the row to its lower one. */
  passing: number[]
  /** Lanes of versions made from this one, which end at it; its own among them. */
  fromAbove: number[]
  /** Its parent is further down. */
  goesOn: boolean
}

interface Link {
  id: string
  parentVersionId: string | null
}

/**
 * A lane for each line of descent, newest version first; a lane that has ended is used again.
 * @param versions newest first; a parent that is not among those that follow counts as none
 */
export function layOutChain(versions: readonly Link[]): ChainRow[] {
  const placeOf = new Map(versions.map(({ id }, index) => [id, index]))
  /** By lane: the version to which it leads down. */
  const awaited: (string | null)[] = []
  return versions.map(({ id, parentVersionId }, index) => {
    const fromAbove = lanesOf(awaited, (wanted) => wanted === id)
    const lane = fromAbove[0] ?? freeLane(awaited)
    for (const ended of fromAbove) awaited[ended] = null
    const passing = lanesOf(awaited, (wanted) => wanted !== null).filter((one) => one !== lane)
    const parentPlace = parentVersionId === null ? undefined : placeOf.get(parentVersionId)
    const goesOn = parentPlace !== undefined && parentPlace > index
    awaited[lane] = goesOn ? parentVersionId : null
    return { id, lane, passing, fromAbove, goesOn }
  })
}

function lanesOf(awaited: readonly (string | null)[], fits: (wanted: string | null) => boolean): number[] {
  return awaited.flatMap((wanted, lane) => (fits(wanted) ? [lane] : []))
}

function freeLane(awaited: (string | null)[]): number {
  const free = awaited.indexOf(null)
  const lane = free === -1 ? awaited.length : free
  return Math.min(lane, lanesMax - 1)
}
