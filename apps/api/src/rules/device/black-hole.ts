/** Packets of a size that were sent in vain, at least, before the size is blamed. */
const triesMin = 3
/** The chance that all of them were lost for another reason. */
const chanceMax = 0.0001

interface Measured {
  lostSizeCount?: number | undefined
  toDevice?: { packets: number; lost: number } | undefined
}

/** Packets above a size vanish on the path. On one that loses many packets of any size, it takes more tries. */
export function isBlackHole({ lostSizeCount = 0, toDevice }: Measured): boolean {
  if (lostSizeCount < triesMin) return false
  const share = toDevice && toDevice.packets > 0 ? toDevice.lost / toDevice.packets : 0
  return share ** lostSizeCount < chanceMax
}
