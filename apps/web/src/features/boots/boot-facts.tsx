import type { ReactNode } from 'react'
import { Instant } from '../../components/instant'
import { type Fact, Facts } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { formatBytes } from '../../lib/format-quantity'
import { keyLabels } from '../devices/key-text'
import { architecture } from './architecture'
import type { BootDetail } from './boot-types'
import { cardText, storageText } from './machine-text'
import { readAheadText } from './read-ahead-text'

const streamProtection: Record<NonNullable<BootDetail['facts']['cipher']>, string> = {
  clear: 'unencrypted, as configured on the edge',
  aegis_128l: 'encrypted (AEGIS-128L)',
  chacha20_poly1305: 'encrypted (ChaCha20-Poly1305)',
}

/** Facts about the machine and about the edge that served it. The machine's own texts are plain text here. */
export function BootFacts({ boot }: { boot: BootDetail }) {
  const { facts, vdisk, takenPowerOrder } = boot
  const rows: Fact[] = [
    {
      label: 'Device',
      value: boot.deviceId ? link(`/devices/${boot.deviceId}`, boot.deviceName) : 'not registered',
    },
    { label: 'MAC address', value: <Mono>{boot.mac}</Mono> },
    { label: 'IP address', value: facts.ip && <Mono>{facts.ip}</Mono> },
    { label: 'Edge', value: link(`/edges/${boot.edgeId}`, boot.edgeName) },
    ...(boot.handOver ? [{ label: 'Failed over to', value: <WentOn handOver={boot.handOver} /> }] : []),
    { label: 'Site', value: link(`/sites/${boot.siteId}`, boot.siteName) },
    { label: 'vDisk', value: vdisk && link(`/vdisks/${vdisk.id}`, versionName(vdisk)) },
    ...(boot.menuEntry ? [{ label: 'Menu entry', value: boot.menuEntry }] : []),
    ...(boot.experiment ? [{ label: 'Experiment', value: <OfExperiment experiment={boot.experiment} /> }] : []),
    ...(facts.program
      ? [{ label: 'Boot program', value: <Mono>{`${facts.program.file} (${facts.program.set})`}</Mono> }]
      : []),
    { label: 'Firmware', value: architecture(facts.clientArch) },
    ...(facts.machine
      ? [
          ...(facts.machine.model ? [{ label: 'Model', value: facts.machine.model }] : []),
          { label: 'Processors', value: facts.machine.processors },
          { label: 'Memory', value: formatBytes(facts.machine.memoryMib * 2 ** 20) },
          { label: 'Network card', value: cardText(facts.machine) },
        ]
      : []),
    ...(facts.storage ? [{ label: 'Edge’s storage', value: storageText(facts.storage) }] : []),
    { label: 'Vendor class', value: facts.vendorClass && <Mono>{facts.vendorClass}</Mono> },
    { label: 'User class', value: facts.userClass && <Mono>{facts.userClass}</Mono> },
    { label: 'Machine ID', value: facts.machineId && <Mono>{facts.machineId}</Mono> },
    { label: 'MTU', value: facts.mtuBytes === null ? null : `${facts.mtuBytes} B` },
    { label: 'Stream', value: facts.cipher && streamProtection[facts.cipher] },
    { label: 'Device key', value: facts.deviceKey && keyLabels[facts.deviceKey] },
    ...(boot.readAhead ? [{ label: 'Read ahead', value: readAheadText(boot.readAhead) }] : []),
    { label: 'Reconnects', value: facts.reconnects },
    ...(takenPowerOrder ? [{ label: 'Power order', value: <TakenOrder taken={takenPowerOrder} /> }] : []),
    { label: 'Boot ID', value: <Mono>{boot.id}</Mono> },
  ]
  return <Facts facts={rows} />
}

function WentOn({ handOver }: { handOver: NonNullable<BootDetail['handOver']> }) {
  const { edgeId, edgeName, fromEdgeName, at, count } = handOver
  return (
    <>
      {link(`/edges/${edgeId}`, edgeName)}, <Instant at={at} />, because {fromEdgeName ?? 'its edge'} did not answer
      {count > 1 && ` (${count} fail-overs in total)`}
    </>
  )
}

function OfExperiment({ experiment: { id, name, settings } }: { experiment: NonNullable<BootDetail['experiment']> }) {
  return (
    <>
      {link(`/lab/${id}`, name)}
      {settings.length > 0 ? (
        <>
          , with <Mono>{settings.join(' ')}</Mono>
        </>
      ) : (
        ', with the settings that the device has'
      )}
    </>
  )
}

function TakenOrder({ taken }: { taken: NonNullable<BootDetail['takenPowerOrder']> }) {
  return (
    <>
      {taken.order === 'power_off' ? 'power off' : 'restart'}, <Instant at={taken.takenAt} />
    </>
  )
}

function versionName({ name, versionNumber }: NonNullable<BootDetail['vdisk']>): string {
  return versionNumber === null ? name : `${name} version ${versionNumber}`
}

function link(href: string, text: string | null): ReactNode {
  return (
    <PageLink href={href} className="rounded underline decoration-line-strong underline-offset-4 hover:decoration-ink">
      {text}
    </PageLink>
  )
}

function Mono({ children }: { children: ReactNode }) {
  return <span className="break-all font-mono text-xs">{children}</span>
}
