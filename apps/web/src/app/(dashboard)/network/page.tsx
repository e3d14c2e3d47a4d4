import type { Metadata } from 'next'
import { FirstData } from '../../../features/first-data/first-data'
import { readFirstData } from '../../../features/first-data/read-first-data'
import { NetworkPage } from '../../../features/network/network-page'
import { readNetwork } from '../../../features/network/read-network'

export const metadata: Metadata = { title: 'Network' }

export default async function Page({ searchParams }: { searchParams: Promise<Record<string, string | string[]>> }) {
  const parameters = Object.entries(await searchParams).map(([name, value]) => [name, [value].flat()[0] ?? ''])
  const query = new URLSearchParams(Object.fromEntries(parameters))
  return (
    <FirstData data={await readFirstData((reader) => readNetwork(reader, query))}>
      <NetworkPage />
    </FirstData>
  )
}
