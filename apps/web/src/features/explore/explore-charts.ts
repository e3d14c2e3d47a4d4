import type { TimeChartData } from '../../components/charts/time-chart'
import type { ChartColour } from '../../components/charts/use-time-plot'
import { type AttributeName, valueText } from './attribute-text.ts'
import type { Exploration } from './heat-layout'

/** A share of fewer boots is one device's bad morning. */
const shareBootsMin = 5
const groupColours: ChartColour[] = ['a', 'b', 'c']

/** Figures over the steps of the heat map; steps without boots are gaps. */
export function exploreCharts(exploration: Exploration, by: AttributeName | undefined): TimeChartData[] {
  const { steps, promotions } = exploration
  const axis = {
    at: steps.map(({ at }) => Date.parse(at) / 1000),
    marks: promotions.map(({ at }) => Date.parse(at) / 1000),
  }
  return [
    {
      ...axis,
      title: 'Boot time',
      hint: 'Of boots that became ready: half, 95 and 99 in 100 are as quick.',
      unit: 'us',
      series: [
        { label: 'p50', colour: 'a', values: steps.map(({ p50Us }) => p50Us) },
        { label: 'p95', colour: 'b', values: steps.map(({ p95Us }) => p95Us) },
        { label: 'p99', colour: 'c', dashed: true, values: steps.map(({ p99Us }) => p99Us) },
      ],
    },
    {
      ...axis,
      title: 'Failures',
      hint: 'Share of boots that failed or timed out, of those that are over, where five or more are.',
      unit: 'rate',
      series: [{ label: 'Failed or timed out', colour: 'b', values: steps.map(failedShare) }],
    },
    ...(by && exploration.groups.length > 1 ? groupCharts(exploration, { by, axis }) : []),
  ]
}

function failedShare({ readyCount, failedCount }: Exploration['steps'][number]): number | null {
  const over = readyCount + failedCount
  return over < shareBootsMin ? null : failedCount / over
}

interface GroupAxis {
  by: AttributeName
  axis: Pick<TimeChartData, 'at' | 'marks'>
}

/** The largest groups: more lines are none that a person tells apart. */
function groupCharts({ groups }: Exploration, { by, axis }: GroupAxis): TimeChartData[] {
  const chart = (title: string, name: 'p50ByStepUs' | 'p95ByStepUs'): TimeChartData => ({
    ...axis,
    title,
    unit: 'us',
    series: groups.flatMap((group, index) => {
      const [values, colour] = [group[name], groupColours[index]]
      return values && colour ? [{ label: valueText(by, group), colour, dashed: index === 2, values }] : []
    }),
  })
  return [chart('Median of the largest groups', 'p50ByStepUs'), chart('p95 of the largest groups', 'p95ByStepUs')]
}
