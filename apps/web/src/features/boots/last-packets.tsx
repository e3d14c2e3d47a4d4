import { Age } from '../../components/instant'
import { Facts, Panel } from '../../components/panel'
import { formatOffset } from '../../lib/format-quantity'
import type { BootDetail } from './boot-types'

type NamedPacket = NonNullable<NonNullable<BootDetail['lastPackets']>['fromDevice']>

/** The last packet each way of a boot that did not get ready: who was silent. */
export function LastPackets({ packets }: { packets: BootDetail['lastPackets'] }) {
  if (!packets) return null
  return (
    <Panel title="Last packets">
      <Facts
        facts={[
          {
            label: 'From the device',
            value: packets.fromDevice ? <Packet packet={packets.fromDevice} /> : 'none received',
          },
          {
            label: 'From the edge',
            value: packets.fromEdge ? <Packet packet={packets.fromEdge} /> : 'none sent',
          },
        ]}
      />
    </Panel>
  )
}

function Packet({ packet: { what, atUs, at } }: { packet: NamedPacket }) {
  return (
    <>
      <span className="font-mono text-xs">{what}</span>
      <span className="block text-ink-soft text-xs">
        at +{formatOffset(atUs)}, <Age at={at} />
      </span>
    </>
  )
}
