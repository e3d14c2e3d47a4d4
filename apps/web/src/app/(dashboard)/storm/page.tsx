import type { Metadata } from 'next'
import { FirstData } from '../../../features/first-data/first-data'
import { readFirstData } from '../../../features/first-data/read-first-data'
import { readStorm } from '../../../features/storm/read-storm'
import { StormPage } from '../../../features/storm/storm-page'

export const metadata: Metadata = { title: 'Storm' }

export default async function Page({ searchParams }: { searchParams: Promise<Record<string, string | string[]>> }) {
  const parameters = Object.entries(await searchParams).map(([name, value]) => [name, [value].flat()[0] ?? ''])
  const query = new URLSearchParams(Object.fromEntries(parameters))
  return (
    <FirstData data={await readFirstData((reader) => readStorm(reader, query))}>
      <StormPage />
    </FirstData>
  )
}
