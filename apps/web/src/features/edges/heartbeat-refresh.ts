/** An edge goes offline without an event, so its state is polled as often as edges report (UPLINK.md). */
export const heartbeatRefreshMs = 5000
