import { Facts, Panel } from '../../components/panel'
import { EmptyState } from '../../components/states'
import { formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

type EdgeDetail = RouterOutputs['edge']['get']

/** What the edge runs on, as its last heartbeat said. */
export function EdgeMachine({ machine }: { machine: EdgeDetail['machine'] }) {
  return (
    <Panel title="Machine" flush={!machine}>
      {machine ? (
        <Facts
          facts={[
            {
              label: 'Load',
              value: `${machine.loadAverage.toFixed(2)} of ${machine.processors} processors, over a minute`,
            },
            {
              label: 'Memory',
              value: `${formatBytes(machine.memoryAvailableBytes)} of ${formatBytes(machine.memoryTotalBytes)} available`,
            },
            { label: 'Cache', value: `${formatBytes(machine.fileCacheBytes)} of files in memory` },
            { label: 'Store', value: <StoreFill machine={machine} /> },
          ]}
        />
      ) : (
        <EmptyState title="Not said." text="This edge has not reported its load, memory and store." />
      )}
    </Panel>
  )
}

const almostFullShare = 0.1

function StoreFill({
  machine: { storeTotalBytes, storeFreeBytes },
}: {
  machine: NonNullable<EdgeDetail['machine']>
}) {
  const isAlmostFull = storeFreeBytes < storeTotalBytes * almostFullShare
  return (
    <span className={isAlmostFull ? 'text-silent' : ''}>
      {formatBytes(storeFreeBytes)} of {formatBytes(storeTotalBytes)} free
      {isAlmostFull && ': make room, or new versions will not fit'}
    </span>
  )
}

export function VersionRefused({ refused }: { refused: NonNullable<EdgeDetail['refused']> }) {
  return (
    <p role="alert" className="rounded-md bg-failed-soft px-3 py-2 text-failed text-sm">
      {refused.code === 'edge_too_old'
        ? `This edge is too old for this control plane (version ${refused.version} of the uplink): run the line of “Add edge” on it again. It boots devices meanwhile by what it knows.`
        : `This edge is newer than this control plane (version ${refused.version} of the uplink): bring the control plane up to date. The edge boots devices meanwhile by what it knows.`}
    </p>
  )
}
