/** What people look at, by how often. Each names one procedure with one filter, so that a slow one does not hide among fast ones. */
export const reads = [
  read('boot.list', 'newest', 6, () => ({})),
  read('boot.list', 'failed', 4, () => ({ outcome: 'failed' })),
  read('boot.list', 'of a site', 4, ({ siteId }) => ({ siteId })),
  read('boot.list', 'failed of a site', 2, ({ siteId }) => ({ siteId, outcome: 'failed' })),
  read('boot.list', 'of an edge', 2, ({ edgeId }) => ({ edgeId })),
  read('boot.list', 'of a device', 6, ({ deviceId }) => ({ deviceId })),
  read('boot.list', 'simulated: none', 1, () => ({ origin: 'simulated' })),
  read('boot.get', '', 12, ({ bootId }) => ({ bootId })),
  read('device.list', 'by name', 6, () => ({})),
  read('device.list', 'search', 4, ({ search }) => ({ search })),
  read('device.list', 'of a collection', 3, ({ collectionId }) => ({ collectionId })),
  read('device.list', 'last boot failed', 3, () => ({ lastOutcome: 'failed' })),
  read('device.get', '', 5, ({ deviceId }) => ({ deviceId })),
  read('farm.overview', '', 4, ({ farmId }) => ({ farmId })),
  read('site.list', '', 2, () => ({})),
  read('site.get', '', 2, ({ siteId }) => ({ siteId })),
  read('edge.list', '', 2, () => ({})),
  read('edge.get', '', 2, ({ edgeId }) => ({ edgeId })),
]

function read(procedure, filter, weight, input) {
  return { procedure, name: filter ? `${procedure} (${filter})` : procedure, weight, input }
}

export function pick(random, weighted) {
  let left = random(weighted.reduce((sum, { weight }) => sum + weight, 0))
  return weighted.find(({ weight }) => {
    left -= weight
    return left < 0
  })
}
