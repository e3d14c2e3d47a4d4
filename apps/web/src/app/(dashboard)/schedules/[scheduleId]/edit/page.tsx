import { EditSchedulePage } from '../../../../../features/schedules/edit-schedule-page'

export default async function Page({ params }: { params: Promise<{ scheduleId: string }> }) {
  return <EditSchedulePage scheduleId={(await params).scheduleId} />
}
