import type { Metadata } from 'next'
import { ExplorePage } from '../../../features/explore/explore-page'
import { readExplore } from '../../../features/explore/read-explore'
import { FirstData } from '../../../features/first-data/first-data'
import { readFirstData } from '../../../features/first-data/read-first-data'

export const metadata: Metadata = { title: 'Explore' }

export default async function Page({ searchParams }: { searchParams: Promise<Record<string, string | string[]>> }) {
  const parameters = Object.entries(await searchParams).map(([name, value]) => [name, [value].flat()[0] ?? ''])
  const query = new URLSearchParams(Object.fromEntries(parameters))
  return (
    <FirstData data={await readFirstData((reader) => readExplore(reader, query))}>
      <ExplorePage />
    </FirstData>
  )
}
