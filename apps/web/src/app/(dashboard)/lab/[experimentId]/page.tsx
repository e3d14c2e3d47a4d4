import { ExperimentPage } from '../../../../features/lab/experiment-page'

export default async function Page({ params }: { params: Promise<{ experimentId: string }> }) {
  return <ExperimentPage experimentId={(await params).experimentId} />
}
