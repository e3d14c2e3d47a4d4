import { Icon } from '../../components/icon'
import { Instant } from '../../components/instant'
import { Tag } from '../../components/tag'
import { classNames } from '../../lib/class-names'
import type { RouterOutputs } from '../../lib/trpc'

type DeviceWait = NonNullable<RouterOutputs['device']['get']['waitsFor']>

/** Why a device stands still, or may, and what to do about it. */
export function WaitNotice({ wait }: { wait: DeviceWait }) {
  const look = isCertain(wait) ? 'bg-failed-soft text-failed' : 'bg-silent-soft text-silent'
  return (
    <section aria-label="What the device waits for" className={classNames('flex gap-3 rounded-lg px-4 py-3', look)}>
      <span className="pt-0.5">
        <Icon name="alert" />
      </span>
      <div className="min-w-0 break-words text-sm">
        <p className="font-medium">{wait.sentence}</p>
        <p className="mt-0.5 text-ink-soft">{wait.remedy}</p>
        <p className="mt-1.5 text-ink-soft text-xs">
          <Since wait={wait} />
        </p>
      </div>
    </section>
  )
}

function Since({ wait: { reason, since, edge, asked } }: { wait: DeviceWait }) {
  if (since === null) return `${edge.name} has never reported.`
  if (reason === 'asked_another_edge')
    return (
      <>
        It contacted {asked?.name}, <Instant at={since} />.
      </>
    )
  return (
    <>
      {edge.name} was last seen <Instant at={since} />.
    </>
  )
}

/** For a row of a list. */
export function WaitTag({ wait }: { wait: DeviceWait | null }) {
  if (wait === null) return null
  return (
    <Tag tone={isCertain(wait) ? 'failed' : 'silent'} title={wait.sentence}>
      {isCertain(wait) ? 'blocked by' : 'persistent writes on'} {wait.edge.name}
    </Tag>
  )
}

/** The device itself was heard. */
export function isCertain({ reason }: DeviceWait): boolean {
  return reason === 'asked_another_edge'
}
