import type { Metadata } from 'next'
import { NewExperimentPage } from '../../../../features/lab/new-experiment-page'

export const metadata: Metadata = { title: 'New experiment' }

export default function Page() {
  return <NewExperimentPage />
}
