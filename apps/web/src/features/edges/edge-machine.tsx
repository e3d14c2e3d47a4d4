import type { stateRefusals } from '@bootfarm/proto/uplink'
import { EmptyState, Facts, Panel, ProblemNote } from '../../components/page'
import { formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

type EdgeDetail = RouterOutputs['edge']['get']

/** The edge's machine, according to its last heartbeat. */
export function EdgeMachine({ machine }: { machine: EdgeDetail['machine'] }) {
  return (
    <Panel title="Machine" flush={!machine}>
      {machine ? (
        <Facts
          facts={[
            {
              label: 'Load',
              value: `${machine.loadAverage.toFixed(2)} of ${machine.processors} processors (1 min average)`,
            },
            {
              label: 'Memory',
              value: `${formatBytes(machine.memoryAvailableBytes)} of ${formatBytes(machine.memoryTotalBytes)} available`,
            },
            { label: 'File cache', value: formatBytes(machine.fileCacheBytes) },
            { label: 'Store', value: <StoreFill machine={machine} /> },
          ]}
        />
      ) : (
        <EmptyState title="Not reported." text="This edge has not reported its load, memory and store." />
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
      {isAlmostFull && '. Free space, or new versions will not fit'}
    </span>
  )
}

export function VersionRefused({ refused }: { refused: NonNullable<EdgeDetail['refused']> }) {
  return (
    <ProblemNote>
      {refused.code === 'edge_too_old'
        ? `This edge is too old for this control plane (uplink version ${refused.version}). To update it, run the “Add edge” command on it again. Until then it keeps booting devices with its last desired state.`
        : `This edge is newer than this control plane (uplink version ${refused.version}). Update the control plane. Until then the edge keeps booting devices with its last desired state.`}
    </ProblemNote>
  )
}

/** By the words of `stateRefusals` in packages/proto. */
const stateRefusedText: Record<(typeof stateRefusals)[number], string> = {
  malformed: 'it is malformed. See the edge’s log.',
  other_edge: 'it is for another edge. See the edge’s log.',
  out_of_memory: 'the edge has too little memory for it. Add memory, or spread the devices over more edges and sites.',
  too_large:
    'it is larger than an edge accepts (8 MiB, 20,000 devices, 256 vDisks with 1,024 versions, 131,072 scheduled devices). Spread the devices over more sites, or use fewer schedules and versions.',
  signature_invalid:
    'it is not signed with the key that the edge trusts. If the control plane was restored from before a key change, run this on the edge with the key shown on the organization’s page: bootfarm-edge trust-key --data DIR --key KEY.',
  schema_too_new: 'it uses a newer schema. To update the edge, run the “Add edge” command on it again.',
  not_opened:
    'its keys are sealed to another key than the edge’s. The edge names its key in the next heartbeat, and gets a new state.',
  not_higher: 'it is not newer than the one the edge has. A restored control plane needs a new incarnation.',
}
/** A newer edge may have a reason that is not known here. */
const knownRefusals = new Map<string, string>(Object.entries(stateRefusedText))

export function StateRefused({ reason }: { reason: string }) {
  return (
    <ProblemNote>
      This edge refused its desired state: {knownRefusals.get(reason) ?? `${reason}. See the edge’s log.`} It keeps
      booting devices with the previous desired state.
    </ProblemNote>
  )
}
