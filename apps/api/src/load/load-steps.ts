/** Which rows a range of loads is read from, and into how many steps they are summed up. Pure. */

/** The trigger keeps these two (the migration `edge_loads`). */
export const minuteStep = 1
export const quarterStep = 15
export const minutesKeptDays = 2
export const quartersKeptDays = 90

const dayMinutes = 1440
export const rangeMinutesMin = 5
export const rangeMinutesMax = quartersKeptDays * dayMinutes

/** As many points as a chart has pixels for. */
const pointsMax = 500
/** Each divides a day. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360] as const

const minuteMs = 60_000

export interface LoadRange {
  from: Date
  until: Date
  /** Of the rows. */
  rowMinutes: number
  /** Of the points. */
  stepMinutes: number
}

/** The range ends at `until`; its begin is that of a step. */
export function rangeOf({ until, rangeMinutes, now }: { until: Date; rangeMinutes: number; now: Date }): LoadRange {
  const from = until.getTime() - rangeMinutes * minuteMs
  const hasMinutes = from >= now.getTime() - minutesKeptDays * dayMinutes * minuteMs
  const rowMinutes = hasMinutes ? minuteStep : quarterStep
  const fits = (step: number) => step >= rowMinutes && rangeMinutes / step <= pointsMax
  const stepMinutes = steps.find(fits) ?? 360
  const stepMs = stepMinutes * minuteMs
  return { from: new Date(Math.floor(from / stepMs) * stepMs), until, rowMinutes, stepMinutes }
}
