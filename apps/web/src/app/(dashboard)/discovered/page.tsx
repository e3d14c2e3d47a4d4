import type { Metadata } from 'next'
import { DiscoveredPage } from '../../../features/discovered/discovered-page'

export const metadata: Metadata = { title: 'Discovered' }

export default function Page() {
  return <DiscoveredPage />
}
