import type { Metadata } from 'next'
import { ComparePage } from '../../../../features/explore/compare-page'
import { readComparison } from '../../../../features/explore/read-comparison'
import { FirstData } from '../../../../features/first-data/first-data'
import { readFirstData } from '../../../../features/first-data/read-first-data'

export const metadata: Metadata = { title: 'Compare boots' }

export default async function Page({ searchParams }: { searchParams: Promise<Record<string, string | string[]>> }) {
  const parameters = Object.entries(await searchParams).map(([name, value]) => [name, [value].flat()[0] ?? ''])
  const query = new URLSearchParams(Object.fromEntries(parameters))
  return (
    <FirstData data={await readFirstData((reader) => readComparison(reader, query))}>
      <ComparePage />
    </FirstData>
  )
}
