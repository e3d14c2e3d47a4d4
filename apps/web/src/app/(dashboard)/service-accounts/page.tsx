import type { Metadata } from 'next'
import { ServiceAccountsPage } from '../../../features/people/service-accounts-page'

export const metadata: Metadata = { title: 'Service accounts' }

export default function Page() {
  return <ServiceAccountsPage />
}
