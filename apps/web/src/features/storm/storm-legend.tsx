import { classNames } from '../../lib/class-names'
import { formatCount } from '../../lib/format-quantity'
import type { StormState } from './storm-model'
import { type StateLook, stateLook, stateOrder } from './storm-states'
import { slowMeaning } from './storm-text'

/** Shown also while no device is in them: the chain of phases, and how it ends well. */
const alwaysShown = new Set<StormState>([
  'firmware',
  'dhcp',
  'nbp',
  'loader',
  'breather',
  'stage2',
  'ready',
  'failed',
  'silent',
])

interface StormLegendProps {
  counts: Map<StormState, number>
  /** Devices that are slower than usual: their cells have a frame besides. */
  slowCount: number
  /** For a wall. */
  large?: boolean
}

/** The count of each state, and what the cells look like. */
export function StormLegend({ counts, slowCount, large = false }: StormLegendProps) {
  const states = stateOrder.filter((state) => alwaysShown.has(state) || (counts.get(state) ?? 0) > 0)
  return (
    <ul
      aria-label="Devices by phase"
      className={classNames('flex flex-wrap', large ? 'gap-x-[3vmin] gap-y-[1vmin]' : 'gap-x-5 gap-y-2')}
    >
      {states.map((state) => {
        const look = stateLook(state)
        const count = counts.get(state) ?? 0
        return (
          <li
            key={state}
            className={classNames(
              'flex items-center',
              itemSize(large),
              count === 0 ? 'text-ink-faint' : 'text-ink-soft',
            )}
          >
            <Swatch look={look} large={large} />
            {look.title}
            <b className={classNames('font-semibold', count > 0 && 'text-ink')}>{formatCount(count)}</b>
          </li>
        )
      })}
      {slowCount > 0 && (
        <li className={classNames('flex items-center text-ink-soft', itemSize(large))} title={slowMeaning}>
          <svg aria-hidden="true" viewBox="0 0 12 12" className={large ? 'size-[2.6vmin]' : 'size-3'}>
            <rect x={1} y={1} width={10} height={10} fill="none" stroke="var(--ink)" strokeWidth={2} />
          </svg>
          Slower than usual <b className="font-semibold text-ink">{formatCount(slowCount)}</b>
        </li>
      )}
    </ul>
  )
}

function itemSize(large: boolean): string {
  return large ? 'gap-[1vmin] text-[2.6vmin] leading-[3.2vmin]' : 'gap-1.5 text-xs'
}

/** The same figure as the cells of the map. */
function Swatch({ look, large }: { look: StateLook; large: boolean }) {
  const { colour, level, mark } = look
  const inner = level === 1 ? 'var(--surface)' : colour
  const filled = Math.round(12 * level)
  return (
    <svg aria-hidden="true" viewBox="0 0 12 12" className={large ? 'size-[2.6vmin]' : 'size-3'}>
      {mark === 'hollow' ? (
        <rect x={0.5} y={0.5} width={11} height={11} fill="none" stroke={colour} />
      ) : (
        <>
          <rect width={12} height={12} fill="var(--line)" />
          <rect y={12 - filled} width={12} height={filled} fill={colour} />
        </>
      )}
      {mark === 'cross' && <path d="M3 3l6 6M9 3l-6 6" stroke={inner} strokeWidth={1.6} />}
      {mark === 'bar' && <path d="M3 6h6" stroke={inner} strokeWidth={1.6} />}
      {mark === 'dot' && <circle cx={6} cy={6} r={2} fill={inner} />}
    </svg>
  )
}
