import type { ReactNode } from 'react'
import { type ChainRow, layOutChain } from './chain-layout'
import { VersionCard } from './version-card'
import type { VdiskDetail } from './version-types'

const laneWidthPx = 16
/** Of a row's dot below the row's upper edge: the middle of its first line. */
const dotTopPx = 24

const lines = 'absolute bg-line-strong'

/** The versions of a vDisk, newest first, with lines down to what each was made from. */
export function VersionChain({ vdisk }: { vdisk: VdiskDetail }) {
  const rows = layOutChain(vdisk.versions)
  const laneCount = Math.max(...rows.map(({ lane }) => lane)) + 1
  return (
    <ol aria-label="Versions" className="flex flex-col">
      {vdisk.versions.map((version, index) => {
        const row = rows[index]
        return (
          <li key={version.id} className="flex border-line border-t first:border-t-0">
            {row && (
              <Rail row={row} width={laneCount * laneWidthPx}>
                <span
                  className={
                    version.access === null || version.sealedAt === null
                      ? 'block size-2.5 rounded-full border-2 border-ink-faint bg-surface'
                      : 'block size-2.5 rounded-full bg-ink'
                  }
                />
              </Rail>
            )}
            <VersionCard vdisk={vdisk} version={version} />
          </li>
        )
      })}
    </ol>
  )
}

/** Decoration: each version says in words what it was made from. */
function Rail({ row, width, children }: { row: ChainRow; width: number; children: ReactNode }) {
  const middle = (lane: number) => lane * laneWidthPx + laneWidthPx / 2
  const x = middle(row.lane)
  return (
    <div aria-hidden="true" className="relative ml-2.5 shrink-0 sm:ml-4" style={{ width }}>
      {row.passing.map((lane) => (
        <span key={lane} className={`${lines} top-0 bottom-0 w-px`} style={{ left: middle(lane) }} />
      ))}
      {row.fromAbove.map((lane) => (
        <span key={lane}>
          <span className={`${lines} top-0 w-px`} style={{ left: middle(lane), height: dotTopPx }} />
          <span
            className={`${lines} h-px`}
            style={{ left: Math.min(x, middle(lane)), width: Math.abs(middle(lane) - x), top: dotTopPx }}
          />
        </span>
      ))}
      {row.goesOn && <span className={`${lines} bottom-0 w-px`} style={{ left: x, top: dotTopPx }} />}
      <span className="absolute" style={{ left: x - 5, top: dotTopPx - 5 }}>
        {children}
      </span>
    </div>
  )
}
