import type { Metadata } from 'next'
import { RolloutsPage } from '../../../../features/rollouts/rollouts-page'

export const metadata: Metadata = { title: 'Releases' }

export default function Page() {
  return <RolloutsPage />
}
