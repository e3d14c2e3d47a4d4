/** The settings that decide how many of a site's devices an edge owns, as far as the control plane knows. */
export interface SharingEdge {
  id: string
  online: boolean
  revokedAt: string | null
  weight: number
  draining: boolean
}

/**
 * Returns each edge's share of the site's devices in percent, without subnets: by weight among those that are heard,
 * not drained and have a weight above 0; if there is none, among the others.
 */
export function sharesOf(edges: SharingEdge[]): Map<string, number> {
  const heard = edges.filter(({ online, revokedAt }) => online && revokedAt === null)
  const willing = orAll(
    heard.filter(({ draining }) => !draining),
    heard,
  )
  const weighted = orAll(
    willing.filter(({ weight }) => weight > 0),
    willing,
  )
  const weightOf = (edge: SharingEdge) => (weighted.some(({ weight }) => weight > 0) ? edge.weight : 1)
  const total = weighted.reduce((sum, edge) => sum + weightOf(edge), 0)
  return new Map(
    edges.map((edge) => [edge.id, weighted.includes(edge) ? Math.round((weightOf(edge) * 100) / total) : 0]),
  )
}

function orAll(chosen: SharingEdge[], all: SharingEdge[]): SharingEdge[] {
  return chosen.length > 0 ? chosen : all
}
