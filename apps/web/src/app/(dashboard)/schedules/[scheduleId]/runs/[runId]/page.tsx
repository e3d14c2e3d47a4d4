import { RunPage } from '../../../../../../features/schedules/run-page'

export default async function Page({ params }: { params: Promise<{ runId: string }> }) {
  return <RunPage runId={(await params).runId} />
}
