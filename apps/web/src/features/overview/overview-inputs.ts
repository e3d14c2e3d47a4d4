import type { Scope } from './overview-scope'

/** What the overview asks for: the server reads the same before the browser does. */
export const firstFarmInput = { limit: 1 } as const
export const firstReadyInput = { outcome: 'ready', limit: 1 } as const
const sitesShownMax = 20
export const bootingNowInput = (scope: Scope) => ({ ...scope, outcome: 'booting' as const, limit: 8 })
export const edgesInput = (scope: Scope) => ({ ...scope, limit: sitesShownMax })
export const sitesInput = ({ farmId, siteId }: Scope) => ({
  ...(farmId && { farmId }),
  ...(siteId && { siteId }),
  limit: sitesShownMax,
})
