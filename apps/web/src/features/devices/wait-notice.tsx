import { Banner } from '../../components/banner'
import { Instant } from '../../components/instant'
import { Tag } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'

type DeviceWait = NonNullable<RouterOutputs['device']['get']['waitsFor']>

/** Why a device stands still, or may, and what to do about it. */
export function WaitNotice({ wait }: { wait: DeviceWait }) {
  return (
    <Banner label="What the device waits for" tone={isCertain(wait) ? 'failed' : 'silent'}>
      <p className="font-medium">{wait.sentence}</p>
      <p className="mt-0.5 text-ink-soft">{wait.remedy}</p>
      <p className="mt-1.5 text-ink-soft text-xs">
        <Since wait={wait} />
      </p>
    </Banner>
  )
}

function Since({ wait: { reason, since, restartsAt, edge, asked } }: { wait: DeviceWait }) {
  if (since === null) return `${edge.name} has never reported.`
  if (reason === 'asked_another_edge')
    return (
      <>
        It contacted {asked?.name}, <Instant at={since} />.
      </>
    )
  if (reason === 'lost_disk')
    return (
      <>
        Reported by {edge.name} since <Instant at={since} />
        {restartsAt && (
          <>
            {'; it restarts '}
            <Instant at={restartsAt} />
          </>
        )}
        .
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
      {tagText(wait)}
    </Tag>
  )
}

function tagText({ reason, edge }: DeviceWait): string {
  switch (reason) {
    case 'asked_another_edge':
      return `blocked by ${edge.name}`
    case 'edge_not_heard':
      return `persistent writes on ${edge.name}`
    case 'lost_disk':
      return 'lost its disk'
  }
}

/** The device itself was heard. */
export function isCertain({ reason }: DeviceWait): boolean {
  return reason !== 'edge_not_heard'
}
