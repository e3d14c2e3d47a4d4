/** What the overview asks for: the server reads the same before the browser does. */
export const firstFarmInput = { limit: 1 } as const
export const bootingNowInput = { outcome: 'booting', limit: 8 } as const
export const firstReadyInput = { outcome: 'ready', limit: 1 } as const
const sitesShownMax = 20
export const edgesInput = { limit: sitesShownMax } as const
export const sitesInput = (farmId: string) => ({ farmId, limit: sitesShownMax })
