/** How much slower or faster than its class a device usually boots, so that a class can have devices of all speeds. */
export interface DevicePace {
  /** Boots that became ready. */
  count: number
  /** Mean distance from the centre of the class, in 1/10,000 of the natural logarithm of the time. */
  mean: number
}

/** How much the devices of a class differ, as they show by being slow or fast again and again. */
export interface PaceSpread {
  count: number
  /** Mean product of a boot's distance and the mean distance of its device before: the variance between devices. */
  product: number
  /** Mean square of a boot's distance: that variance, and the one of a device's boots. */
  square: number
}

/** The mean of so many boots hardly moves: a device's own shift must not become usual before it is found. */
const countMax = 400
/** Boots by which a class knows how much its devices differ; more only replace old ones. */
const spreadCountMax = 2_000
const spreadCountMin = 32
/** A device with fewer boots is not known. */
export const settledBoots = 3
/** Beyond this, a boot says that something went wrong, and not how fast a device is: 28 %. */
const distanceMax = 2_500
/** Limits of the ratio of the two variances. */
const ratioMax = 100
const ratioMin = 0.25

/** @param us at least 1 */
export function timeOf(us: number): number {
  return Math.round(10_000 * Math.log(us))
}

/**
 * Returns how much slower than its class the device is expected to be, from boots before only, so that what is left of
 * one boot after the other is independent (recursive residuals: Brown, Durbin and Evans, 1975). The fewer boots it has,
 * and the less devices differ, the nearer it is to none (shrinkage: James and Stein, 1961).
 */
export function expectedDistance(pace: DevicePace | null, spread: PaceSpread): number {
  if (!pace || pace.count < settledBoots || spread.count < spreadCountMin) return 0
  const within = Math.max(0, spread.square - spread.product)
  const ratio = spread.product <= 0 ? ratioMax : within / spread.product
  return (pace.mean * pace.count) / (pace.count + Math.min(ratioMax, Math.max(ratioMin, ratio)))
}

/** Adds a boot to the device's pace and, `spread` is changed, to what is known of how devices differ. */
export function paceWith(pace: DevicePace | null, distance: number, spread: PaceSpread): DevicePace {
  const { count, mean } = pace ?? { count: 0, mean: 0 }
  const bounded = Math.max(-distanceMax, Math.min(distanceMax, distance))
  if (count >= settledBoots) {
    spread.count = Math.min(spreadCountMax, spread.count + 1)
    spread.product += (bounded * mean - spread.product) / spread.count
    spread.square += (bounded * bounded - spread.square) / spread.count
  }
  const next = Math.min(countMax, count + 1)
  return { count: next, mean: mean + (bounded - mean) / next }
}
