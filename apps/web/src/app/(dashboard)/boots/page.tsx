import type { Metadata } from 'next'
import { BootsPage } from '../../../features/boots/boots-page'
import { readBoots } from '../../../features/boots/read-boots'
import { FirstData } from '../../../features/first-data/first-data'
import { readFirstData } from '../../../features/first-data/read-first-data'

export const metadata: Metadata = { title: 'Boots' }

export default async function Page({ searchParams }: { searchParams: Promise<Record<string, string | string[]>> }) {
  const parameters = Object.entries(await searchParams).map(([name, value]) => [name, [value].flat()[0] ?? ''])
  const query = new URLSearchParams(Object.fromEntries(parameters))
  return (
    <FirstData data={await readFirstData((reader) => readBoots(reader, query))}>
      <BootsPage />
    </FirstData>
  )
}
