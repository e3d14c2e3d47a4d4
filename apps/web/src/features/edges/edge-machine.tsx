import type { edgeProblems, stateRefusals } from '@bootfarm/proto/uplink'
import Link from 'next/link'
import { Instant } from '../../components/instant'
import { EmptyState, Facts, Panel, ProblemNote } from '../../components/page'
import { countOf, formatBytes, formatCount } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'
import { storageText } from '../boots/machine-text'

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
            ...(machine.storeMedium ? [{ label: 'Storage', value: mediumText(machine.storeMedium) }] : []),
          ]}
        />
      ) : (
        <EmptyState title="Not reported." text="This edge has not reported its load, memory and store." />
      )}
    </Panel>
  )
}

function mediumText({ kind, name }: { kind: string; name: string }): string {
  return name ? `${storageText(kind)}: ${name}` : storageText(kind)
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

/** By the words of `edgeProblems` in packages/proto. */
const problemText: Record<(typeof edgeProblems)[number], string> = {
  data_unwritable:
    'Its data directory is read-only, or the disk fails. Devices boot, but a restart of the edge loses what happened meanwhile. Mount it writable, or replace the disk.',
  data_low_space: 'The file system of its data directory is almost full. Free some space there.',
  data_replaced: 'The path of its data directory leads to another file system. Restart the edge.',
  epoch_not_kept: 'It cannot write the number of its start. It uses a higher one and retries.',
  boots_not_kept:
    'It cannot write its boots. After a restart of the edge, the devices of these boots have to restart. Free some space, or replace the disk.',
  leases_not_kept:
    'It cannot write its DHCP leases. After a restart it may lease an address twice. Free some space, or replace the disk.',
  reports_not_kept: 'It cannot keep reports, and counts them as lost. Free some space, or replace the disk.',
  stream_key_not_kept: 'It cannot read or write stream.key. Devices that run now have to restart when the edge does.',
  seal_key_not_kept: 'It cannot read or write seal.key. After a restart it needs a new state of the control plane.',
  other_files_not_kept: 'It cannot write some files of its data directory. Free some space, or replace the disk.',
  store_unwritable:
    'Its store is read-only, or the disk fails. Devices whose writes are kept at this edge cannot write.',
  store_low_space: 'The file system of its store is almost full. Write caches take no new blocks. Free some space.',
  store_replaced: 'The path of its store leads to another file system. Restart the edge.',
  store_damaged: 'Blocks of its store are damaged or unreadable. The edge’s log names them.',
  store_failing: 'Blocks of its store are damaged again and again. Replace its disk.',
  disk_stalled: 'A disk has not answered for ten seconds.',
}
/** A newer edge may have a problem that is not known here. */
const knownProblems = new Map<string, string>(Object.entries(problemText))

/** One note for each problem of the edge's disks. */
export function DiskProblems({ problems }: { problems: string[] }) {
  return problems.map((problem) => (
    <ProblemNote key={problem}>{knownProblems.get(problem) ?? `${problem}: see the edge’s log.`}</ProblemNote>
  ))
}

/** Which parts of which versions the edge could not read for its devices. */
export function StoreErrors({ errors }: { errors: EdgeDetail['storeErrors'] }) {
  return (
    <ProblemNote>
      This edge could not read parts of its versions, and devices that need them wait. Check the disk and the version,
      and import the version again if it is damaged.
      <ul className="mt-2 list-disc pl-5">
        {errors.map(({ versionId, vdisk, offset, length, count, since }) => (
          <li key={`${versionId}-${offset}`}>
            {vdisk ? (
              <Link prefetch={false} href={`/vdisks/${vdisk.id}`} className="underline underline-offset-4">
                {vdisk.name}, version {vdisk.number}
              </Link>
            ) : (
              `version ${versionId}`
            )}
            : {formatBytes(length)} at byte {formatCount(offset)}, {countOf(count, 'read')} since <Instant at={since} />
          </li>
        ))}
      </ul>
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
