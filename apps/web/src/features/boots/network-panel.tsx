import { type Fact, Facts, Panel } from '../../components/page'
import { formatCount, formatDuration } from '../../lib/format-quantity'
import { linkText, shareText } from '../network/network-text'
import type { BootDetail } from './boot-types'
import { cardCounters, type Network, sizeSentence } from './network-words'

/** What was measured of the network between this boot's device and its edge. */
export function NetworkPanel({ boot }: { boot: BootDetail }) {
  const { network } = boot.facts
  if (!network) return null
  const sentence = sizeSentence(network)
  return (
    <Panel title="Network" aside="between device and edge">
      <div className="flex flex-col gap-3">
        {sentence && (
          <p role="alert" className="rounded-md bg-failed-soft px-3 py-2 text-failed text-sm">
            {sentence}
          </p>
        )}
        <Facts facts={factsOf(network)} />
      </div>
    </Panel>
  )
}

function factsOf(network: Network): Fact[] {
  const { toDevice, fromDevice, order, rtt, mtuBytes } = network
  const isKnown = network.linkMbit !== null || network.duplex !== null
  return [
    { label: 'Link', value: isKnown ? linkText(network) : null },
    { label: 'MTU of the card', value: mtuBytes === null ? null : `${formatCount(mtuBytes)} B` },
    { label: 'Largest packet', value: `${formatCount(network.sizeBytes)} of ${formatCount(network.sizeMaxBytes)} B` },
    { label: 'Round trip', value: rtt && <RoundTrip rtt={rtt} /> },
    { label: 'Lost to device', value: toDevice && lossText(toDevice) },
    ...(toDevice && toDevice.runs > 0 ? [{ label: 'Gaps', value: gapsText(toDevice) }] : []),
    { label: 'Lost to edge', value: fromDevice && lossText(fromDevice) },
    { label: 'Overtaken', value: order && overtakenText(order) },
    ...cardCounters(network).map(({ label, count }) => ({ label, value: formatCount(count) })),
  ]
}

function RoundTrip({ rtt: { minUs, p50Us, p95Us, count } }: { rtt: NonNullable<Network['rtt']> }) {
  return (
    <span title={`${formatCount(count)} probes`}>
      p50 {formatDuration(p50Us)}, p95 {formatDuration(p95Us)}, least {formatDuration(minUs)}
    </span>
  )
}

function lossText({ packets, lost }: { packets: number; lost: number }): string {
  return `${formatCount(lost)} of ${formatCount(packets)} packets (${shareText(packets > 0 ? lost / packets : 0)})`
}

function gapsText({ runs, runPackets, longestRun }: NonNullable<Network['toDevice']>): string {
  const mean = Number((runPackets / runs).toPrecision(2))
  return `${formatCount(runs)}, of ${mean} packets on average, ${formatCount(longestRun)} at most`
}

function overtakenText({ packets, late, distance }: NonNullable<Network['order']>): string {
  const share = `${formatCount(late)} of ${formatCount(packets)} packets (${shareText(packets > 0 ? late / packets : 0)})`
  return late === 0 ? share : `${share}, by ${formatCount(distance)} places at most`
}
