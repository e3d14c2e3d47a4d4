/** The storms that are predicted and then measured; none of them is known to the calibration. */

const once = null
const [bios, uefi, packed] = ['bios plain', 'uefi plain', 'uefi packed']

/** Devices, Mb/s, starts a second, cold, version. */
const rows = [
  [1, 100, once, false, bios],
  [1, 1000, once, true, bios],
  [5, 100, once, false, bios],
  [10, 100, once, false, packed],
  [10, 100, 1, false, uefi],
  [20, 250, once, false, bios],
  [20, 250, 2, false, packed],
  [25, 500, once, false, uefi],
  [25, 500, once, true, bios],
  [25, 1000, once, false, packed],
  [40, 500, 4, false, bios],
  [40, 1000, once, false, uefi],
  [50, 500, once, false, packed],
  [50, 1000, 5, false, bios],
  [50, 1000, once, true, packed],
  [60, 1000, once, false, bios],
  [80, 1000, 10, false, uefi],
  [80, 500, once, false, packed],
  [100, 1000, once, false, packed],
  [100, 1000, 10, false, bios],
  [120, 1000, once, true, packed],
  [150, 1000, 15, false, packed],
  [150, 1000, once, false, uefi],
  [200, 1000, once, false, packed],
]

export const configurations = rows.map(([devices, mbps, startsPerSecond, isCold, version]) => {
  const starts = startsPerSecond === null ? 'at once' : `${startsPerSecond} a second`
  const name = `${devices} devices ${starts}, ${mbps} Mb/s, ${isCold ? 'cold' : 'warm'}, ${version}`
  return { name, devices, mbps, startsPerSecond, isCold, version }
})

/** Single boots: so far apart that each has the link nearly to itself. */
const single = { devices: 6, mbps: 1000, startsPerSecond: 0.5, isCold: false }
const coldBoot = { devices: 1, mbps: 1000, startsPerSecond: null, isCold: true }

/** What a site has had before: some boots of each version, cold ones of two, and one storm. */
export const calibration = [
  ...[bios, uefi, packed].map((version) => ({ ...single, version })),
  ...[bios, packed].flatMap((version) => [coldBoot, coldBoot].map((boot) => ({ ...boot, version }))),
  { devices: 40, mbps: 400, startsPerSecond: null, isCold: false, version: bios },
]
