import { Instant } from '../../components/instant'
import { Dot, Tag, type Tone } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'
import { powerText } from './power-text'

type PowerOrderView = NonNullable<RouterOutputs['device']['get']['powerOrder']>

const tones: Record<PowerOrderView['state'], Tone> = { waiting: 'live', taken: 'ready', expired: 'silent' }

/** The result of the newest order: a line on the device's page. */
export function PowerOrderNote({ order }: { order: PowerOrderView }) {
  const { noun } = powerText[order.order]
  return (
    <p role="status" className="flex items-start gap-2.5 rounded-lg bg-hover px-4 py-2.5 text-ink-soft text-sm">
      <span className="pt-px">
        <Dot tone={tones[order.state]} pulsing={order.state === 'waiting'} />
      </span>
      <span>
        <span className="font-medium text-ink capitalize">{noun}</span> <State order={order} />
      </span>
    </p>
  )
}

function State({ order }: { order: PowerOrderView }) {
  if (order.state === 'waiting')
    return (
      <>
        order is waiting for the device’s next report. Expires <Instant at={order.expiresAt} />.
      </>
    )
  if (order.state === 'taken' && order.takenAt)
    return (
      <>
        order was accepted by the device, <Instant at={order.takenAt} />.
      </>
    )
  return (
    <>
      order expired <Instant at={order.expiresAt} />. The device did not report in time. It may be powered off, or its
      operating system may not run bootfarm-target.
    </>
  )
}

/** In a list: only while it waits, or after a failure. */
export function PowerOrderTag({ order }: { order: PowerOrderView | null }) {
  if (order === null || order.state === 'taken') return null
  return (
    <Tag
      tone={tones[order.state]}
      title={
        order.state === 'waiting'
          ? 'The device receives the order with its next report.'
          : 'The device did not report in time.'
      }
    >
      {powerText[order.order].noun} {order.state === 'waiting' ? 'waiting' : 'expired'}
    </Tag>
  )
}
