import type { Metadata } from 'next'
import { FindingsPage } from '../../../features/findings/findings-page'

export const metadata: Metadata = { title: 'Findings' }

export default function Page() {
  return <FindingsPage />
}
