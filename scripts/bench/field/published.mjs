/**
 * Figures that practitioners measured and published about Citrix Provisioning, the product that users of this one
 * compare with.
 */
export const published = {
  /** Bytes that one boot of Windows reads, and seconds that reading them takes the server. */
  boot: { bytes: 115e6, coldSeconds: 6.29, cachedSeconds: 1.03, memorySeconds: 0.22 },
  /** Milliseconds of one read, by its size in KB; nothing is known of the other sizes. */
  reads: {
    32: { storage: 0.3, send: 0.5, acknowledgement: 0.2, turnaround: 0.4 },
    44: { storage: 0.1, send: 0.4, acknowledgement: 0.1, turnaround: 0.4 },
  },
  /** By the packets' size on the wire, the 14 bytes of Ethernet's header included. */
  packets: {
    1500: { payload: 1464, header: 56, perRead: 24, readMs: [4, 6] },
    9000: { payload: 8972, header: 56, perRead: 4, readMs: [1, 2] },
  },
  jumboGainMb: 4,
  /** 500 targets in 5 minutes, one server with 8 vCPU: the mean of the first and the last ten, in seconds. */
  storms: [
    { name: '33 ports x 40 threads', threads: 33 * 40, first: 49.8, last: 83.2 },
    { name: '33 ports x 8 threads', threads: 33 * 8, first: 28.2, last: 60.2 },
    { name: '56 ports x 8 threads', threads: 56 * 8, first: 29.4, last: 48.9 },
  ],
  stormProcessors: 8,
  unlimitedStorm: { first: 36.1, last: 92.5 },
  /** A differencing disk of 2.7 GB. */
  merge: { vhdSeconds: 120, vhdxSeconds: 4 },
}
