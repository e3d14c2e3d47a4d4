import { Facts, Panel } from '../../components/panel'
import { ProblemNote } from '../../components/problem-note'
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

function StoreFill({ machine: { storeTotalBytes, storeFreeBytes } }: { machine: NonNullable<EdgeDetail['machine']> }) {
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
    <ProblemNote>
      {refused.code === 'edge_too_old'
        ? `This edge is too old for this control plane (version ${refused.version} of the uplink): run the line of “Add edge” on it again. It boots devices meanwhile by what it knows.`
        : `This edge is newer than this control plane (version ${refused.version} of the uplink): bring the control plane up to date. The edge boots devices meanwhile by what it knows.`}
    </ProblemNote>
  )
}

/** By the words of `stateRefusals` in packages/proto. */
const stateRefusedWords: Record<string, string> = {
  too_large:
    'it holds more than an edge takes (8 MiB, 20,000 devices, 256 vDisks with 1,024 versions, 131,072 devices of schedules). Spread the devices over more sites, or have fewer schedules and versions.',
  signature_invalid:
    'it is not signed by the key that the edge knows. If the control plane was restored from before a change of that key, name the one on the organization’s page on the edge’s machine: bootfarm-edge trust-key --data DIR --key KEY.',
  schema_too_new: 'it is of a newer schema: run the line of “Add edge” on it again.',
  not_higher: 'it is not newer than the one that it has. A restored control plane needs a new incarnation.',
}

export function StateRefused({ reason }: { reason: string }) {
  return (
    <ProblemNote>
      This edge has refused its desired state: {stateRefusedWords[reason] ?? `${reason}. Its log says more.`} It boots
      devices meanwhile by the state before.
    </ProblemNote>
  )
}
