import { TextLink } from '../../components/button'
import type { RouterOutputs } from '../../lib/trpc'

type Schedule = Pick<RouterOutputs['schedule']['get'], 'farmId' | 'farmName' | 'siteId' | 'siteName'>

/** The site of a schedule, or all of its farm. */
export function SchedulePlace({ schedule, quiet = false }: { schedule: Schedule; quiet?: boolean }) {
  const { farmId, farmName, siteId, siteName } = schedule
  if (siteId !== null)
    return (
      <TextLink quiet={quiet} href={`/sites/${siteId}`}>
        {siteName}
      </TextLink>
    )
  return (
    <>
      all sites of{' '}
      <TextLink quiet={quiet} href={`/farms/${farmId}`}>
        {farmName}
      </TextLink>
    </>
  )
}
