import type { Metadata } from 'next'
import { BootsPage } from '../../../features/boots/boots-page'

export const metadata: Metadata = { title: 'Boots' }

export default function Page() {
  return <BootsPage />
}
