/** Whether an edge is online changes by nothing happening, so it is asked for: as often as edges report (UPLINK.md). */
export const heartbeatRefreshMs = 5000
