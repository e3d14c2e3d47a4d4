import { TextLink } from '../../components/button'
import { formatInstant } from '../../lib/format-time'
import type { Exploration } from './heat-layout'

const listedMax = 8

/** Where versions became the production version, over a chart of all steps; `Promotions` names them. */
export function PromotionLines({ promotions, steps, stepMs }: Pick<Exploration, 'promotions' | 'steps' | 'stepMs'>) {
  const firstMs = Date.parse(steps[0]?.at ?? '')
  return promotions.map(({ at, versionId }) => (
    <span
      key={`${at} ${versionId}`}
      aria-hidden="true"
      className="pointer-events-none absolute inset-y-0 border-ink-soft border-l-2 border-dashed"
      style={{ left: `${((Date.parse(at) - firstMs) / (stepMs * steps.length)) * 100}%` }}
    />
  ))
}

/** What the dashed lines on the axes of time are. */
export function Promotions({ promotions }: Pick<Exploration, 'promotions'>) {
  const now = new Date()
  if (promotions.length === 0) return null
  return (
    <ul aria-label="Promoted versions" className="flex flex-wrap gap-x-5 gap-y-1 text-ink-soft text-xs">
      {promotions.slice(0, listedMax).map(({ at, vdiskId, vdiskName, versionId, versionNumber }) => (
        <li key={`${at} ${versionId}`} className="flex items-center gap-1.5">
          <span aria-hidden="true" className="h-3 border-ink-soft border-l-2 border-dashed" />
          <TextLink quiet href={`/vdisks/${vdiskId}`}>
            {vdiskName} version {versionNumber}
          </TextLink>
          promoted {formatInstant(new Date(at), now)}
        </li>
      ))}
      {promotions.length > listedMax && <li>and {promotions.length - listedMax} more</li>}
    </ul>
  )
}
