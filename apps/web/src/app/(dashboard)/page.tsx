import type { Metadata } from 'next'
import { FirstData } from '../../features/first-data/first-data'
import { readFirstData } from '../../features/first-data/read-first-data'
import { OverviewPage } from '../../features/overview/overview-page'
import { readOverview } from '../../features/overview/read-overview'

export const metadata: Metadata = { title: 'Overview' }

export default async function Page({ searchParams }: { searchParams: Promise<Record<string, string | string[]>> }) {
  const parameters = Object.entries(await searchParams).map(([name, value]) => [name, [value].flat()[0] ?? ''])
  const query = new URLSearchParams(Object.fromEntries(parameters))
  return (
    <FirstData data={await readFirstData((reader) => readOverview(reader, query))}>
      <OverviewPage />
    </FirstData>
  )
}
