import type { TimeChartData } from '../../components/charts/time-chart'
import type { ChartSeries, Zoom } from '../../components/charts/use-time-plot'
import type { FindingDetail } from './finding-text.ts'

/**
 * The boots of both sides that became ready, with their medians, and a mark where the change begins.
 * @param zoom only boots within it; all if none is
 */
export function findingChart({ since, evidence, valueName }: FindingDetail, zoom: Zoom | null = null): TimeChartData {
  const all = [...evidence.before, ...evidence.after]
    .filter(({ outcome }) => outcome === 'ready')
    .map(({ bootId, startedAt, totalUs }) => ({ bootId, second: Date.parse(startedAt) / 1000, totalUs }))
    .sort((a, b) => a.second - b.second)
  const zoomed = all.filter(({ second }) => zoom && second >= zoom.from && second <= zoom.until)
  const ready = zoomed.length > 0 ? zoomed : all
  const isAfter = new Set(evidence.after.map(({ bootId }) => bootId))
  const { total } = evidence
  const of = (wanted: boolean, value: (boot: (typeof ready)[number]) => number | null) =>
    ready.map((boot) => (isAfter.has(boot.bootId) === wanted ? value(boot) : null))
  const medians: ChartSeries[] = total
    ? [
        { label: 'Median before', colour: 'c', dashed: true, values: of(false, () => total.beforeUs) },
        { label: 'Median since', colour: 'c', dashed: true, values: of(true, () => total.afterUs) },
      ]
    : []
  return {
    title: 'Boots before and after',
    hint: `Until ready. The dashed line across marks the first boot since ${valueName}.`,
    unit: 'us',
    at: ascending(ready.map(({ second }) => second)),
    series: [
      { label: 'Before', colour: 'b', values: of(false, ({ totalUs }) => totalUs) },
      { label: 'Since', colour: 'a', values: of(true, ({ totalUs }) => totalUs) },
      ...medians,
    ],
    marks: [Date.parse(since) / 1000],
  }
}

/** Boots that start at the same time stand a millisecond apart: a chart needs instants that grow. */
function ascending(seconds: number[]): number[] {
  let last = Number.NEGATIVE_INFINITY
  return seconds.map((second) => {
    last = Math.max(second, last + 0.001)
    return last
  })
}
