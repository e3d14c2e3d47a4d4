import { SchedulePage } from '../../../../features/schedules/schedule-page'

export default async function Page({ params }: { params: Promise<{ scheduleId: string }> }) {
  return <SchedulePage scheduleId={(await params).scheduleId} />
}
