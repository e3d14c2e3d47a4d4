import { NewSchedulePage } from '../../../../features/schedules/new-schedule-page'

export default function Page() {
  return <NewSchedulePage />
}
