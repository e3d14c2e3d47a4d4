import type { Metadata } from 'next'
import { LabPage } from '../../../features/lab/lab-page'

export const metadata: Metadata = { title: 'Tuning lab' }

export default function Page() {
  return <LabPage />
}
