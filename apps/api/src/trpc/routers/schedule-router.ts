import { z } from 'zod'
import {
  createScheduleInput,
  enableScheduleInput,
  previewInput,
  runDetail,
  runDevicePage,
  runDevicesInput,
  runGetInput,
  runPage,
  runStarted,
  runsInput,
  scheduleChangeInput,
  scheduleDetail,
  scheduleGetInput,
  scheduleListInput,
  schedulePage,
  schedulePreview,
  updateScheduleInput,
} from '../../domain/schedule-view.ts'
import { removeSchedule, setScheduleEnabled } from '../../services/schedule/change-schedule.ts'
import { getSchedule } from '../../services/schedule/get-schedule.ts'
import { getRun, listRunDevices, listRuns } from '../../services/schedule/list-runs.ts'
import { listSchedules } from '../../services/schedule/list-schedules.ts'
import { previewSchedule } from '../../services/schedule/preview-schedule.ts'
import { runScheduleNow } from '../../services/schedule/run-now.ts'
import { createSchedule, updateSchedule } from '../../services/schedule/save-schedule.ts'
import { procedure, router } from '../trpc.ts'

export const scheduleRouter = router({
  list: procedure
    .meta({ permission: 'schedule.read', place: 'visible' })
    .input(scheduleListInput)
    .output(schedulePage)
    .query(({ ctx, input }) => listSchedules(ctx, input)),
  get: procedure
    .meta({ permission: 'schedule.read', place: { kind: 'schedule', id: 'scheduleId' } })
    .input(scheduleGetInput)
    .output(scheduleDetail)
    .query(({ ctx, input }) => getSchedule(ctx, input.scheduleId)),
  preview: procedure
    .meta({ permission: 'schedule.read', place: 'visible' })
    .input(previewInput)
    .output(schedulePreview)
    .query(({ ctx, input }) => previewSchedule(ctx, input)),
  create: procedure
    .meta({ permission: 'schedule.change', place: 'visible' })
    .input(createScheduleInput)
    .output(scheduleDetail)
    .mutation(({ ctx, input }) => createSchedule(ctx, input)),
  update: procedure
    .meta({ permission: 'schedule.change', place: { kind: 'schedule', id: 'scheduleId' } })
    .input(updateScheduleInput)
    .output(scheduleDetail)
    .mutation(({ ctx, input }) => updateSchedule(ctx, input)),
  setEnabled: procedure
    .meta({ permission: 'schedule.change', place: { kind: 'schedule', id: 'scheduleId' } })
    .input(enableScheduleInput)
    .output(scheduleDetail)
    .mutation(({ ctx, input }) => setScheduleEnabled(ctx, input)),
  remove: procedure
    .meta({ permission: 'schedule.change', place: { kind: 'schedule', id: 'scheduleId' } })
    .input(scheduleChangeInput)
    .output(z.object({ removed: z.literal(true) }))
    .mutation(({ ctx, input }) => removeSchedule(ctx, input)),
  runNow: procedure
    .meta({ permission: 'schedule.change', place: { kind: 'schedule', id: 'scheduleId' } })
    .input(scheduleGetInput)
    .output(runStarted)
    .mutation(({ ctx, input }) => runScheduleNow(ctx, input.scheduleId)),
  runs: procedure
    .meta({ permission: 'schedule.read', place: { kind: 'schedule', id: 'scheduleId' } })
    .input(runsInput)
    .output(runPage)
    .query(({ ctx, input }) => listRuns(ctx, input)),
  run: procedure
    .meta({ permission: 'schedule.read', place: { kind: 'schedule_run', id: 'runId' } })
    .input(runGetInput)
    .output(runDetail)
    .query(({ ctx, input }) => getRun(ctx, input.runId)),
  runDevices: procedure
    .meta({ permission: 'schedule.read', place: { kind: 'schedule_run', id: 'runId' } })
    .input(runDevicesInput)
    .output(runDevicePage)
    .query(({ ctx, input }) => listRunDevices(ctx, input)),
})
