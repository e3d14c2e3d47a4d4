import type { Metadata } from 'next'
import { FirstData } from '../../features/first-data/first-data'
import { readFirstData } from '../../features/first-data/read-first-data'
import { OverviewPage } from '../../features/overview/overview-page'
import { readOverview } from '../../features/overview/read-overview'

export const metadata: Metadata = { title: 'Overview' }

export default async function Page() {
  return (
    <FirstData data={await readFirstData(readOverview)}>
      <OverviewPage />
    </FirstData>
  )
}
