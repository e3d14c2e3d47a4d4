/** How long boots are kept, in days since their first report arrived: settings of an installation (env.ts). */
export interface BootRetention {
  summaryDays: number
  detailDays: number
}

export const defaultBootRetention: BootRetention = { summaryDays: 400, detailDays: 30 }
