import { procedure, router } from '../http/trpc/trpc.ts'
import { removedObject } from '../rules/changed-object.ts'
import { removeSchedule, setScheduleEnabled } from './change-schedule.ts'
import { getRun, listRunDevices, listRuns } from './list-runs.ts'
import { getSchedule, listSchedules } from './read-schedules.ts'
import { runScheduleNow } from './run-now.ts'
import { createSchedule, previewSchedule, updateSchedule } from './save-schedule.ts'
import {
  createScheduleInput,
  enableScheduleInput,
  previewInput,
  runDetail,
  runDevicePage,
  runDevicesInput,
  runGetInput,
  runNowInput,
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
} from './schema.ts'

export const scheduleRouter = router({
  list: procedure
    .meta({
      permission: 'schedule.read',
      place: 'visible',
      rest: { method: 'GET', path: '/schedules', summary: 'Boot schedules' },
    })
    .input(scheduleListInput)
    .output(schedulePage)
    .query(({ ctx, input }) => listSchedules(ctx, input)),
  get: procedure
    .meta({
      permission: 'schedule.read',
      place: { kind: 'schedule', id: 'scheduleId' },
      rest: { method: 'GET', path: '/schedules/{scheduleId}', summary: 'A boot schedule' },
    })
    .input(scheduleGetInput)
    .output(scheduleDetail)
    .query(({ ctx, input }) => getSchedule(ctx, input.scheduleId)),
  preview: procedure
    .meta({
      permission: 'schedule.read',
      place: 'visible',
      rest: {
        method: 'POST',
        path: '/farms/{farmId}/schedules/preview',
        summary: 'Preview the runs of a schedule and their devices',
      },
    })
    .input(previewInput)
    .output(schedulePreview)
    .query(({ ctx, input }) => previewSchedule(ctx, input)),
  create: procedure
    .meta({
      permission: 'schedule.change',
      place: 'visible',
      rest: {
        method: 'POST',
        path: '/farms/{farmId}/schedules',
        summary: 'Create a boot schedule',
        creates: '/schedules/{id}',
      },
    })
    .input(createScheduleInput)
    .output(scheduleDetail)
    .mutation(({ ctx, input }) => createSchedule(ctx, input)),
  update: procedure
    .meta({
      permission: 'schedule.change',
      place: { kind: 'schedule', id: 'scheduleId' },
      rest: { method: 'PUT', path: '/schedules/{scheduleId}', summary: 'Replace a boot schedule' },
    })
    .input(updateScheduleInput)
    .output(scheduleDetail)
    .mutation(({ ctx, input }) => updateSchedule(ctx, input)),
  setEnabled: procedure
    .meta({
      permission: 'schedule.change',
      place: { kind: 'schedule', id: 'scheduleId' },
      rest: {
        method: 'PUT',
        path: '/schedules/{scheduleId}/enabled',
        summary: 'Enable or disable a boot schedule',
      },
    })
    .input(enableScheduleInput)
    .output(scheduleDetail)
    .mutation(({ ctx, input }) => setScheduleEnabled(ctx, input)),
  remove: procedure
    .meta({
      permission: 'schedule.change',
      place: { kind: 'schedule', id: 'scheduleId' },
      rest: {
        method: 'DELETE',
        path: '/schedules/{scheduleId}',
        summary: 'Delete a boot schedule',
        silent: true,
      },
    })
    .input(scheduleChangeInput)
    .output(removedObject)
    .mutation(({ ctx, input }) => removeSchedule(ctx, input)),
  runNow: procedure
    .meta({
      permission: 'schedule.change',
      place: { kind: 'schedule', id: 'scheduleId' },
      rest: {
        method: 'POST',
        path: '/schedules/{scheduleId}/runs',
        summary: 'Run a boot schedule now',
        creates: '/schedule-runs/{runId}',
      },
    })
    .input(runNowInput)
    .output(runStarted)
    .mutation(({ ctx, input }) => runScheduleNow(ctx, input)),
  runs: procedure
    .meta({
      permission: 'schedule.read',
      place: { kind: 'schedule', id: 'scheduleId' },
      rest: { method: 'GET', path: '/schedules/{scheduleId}/runs', summary: 'Runs of a boot schedule' },
    })
    .input(runsInput)
    .output(runPage)
    .query(({ ctx, input }) => listRuns(ctx, input)),
  run: procedure
    .meta({
      permission: 'schedule.read',
      place: { kind: 'schedule_run', id: 'runId' },
      rest: { method: 'GET', path: '/schedule-runs/{runId}', summary: 'A run' },
    })
    .input(runGetInput)
    .output(runDetail)
    .query(({ ctx, input }) => getRun(ctx, input.runId)),
  runDevices: procedure
    .meta({
      permission: 'schedule.read',
      place: { kind: 'schedule_run', id: 'runId' },
      rest: {
        method: 'GET',
        path: '/schedule-runs/{runId}/devices',
        summary: 'Devices of a run, each with its boot',
      },
    })
    .input(runDevicesInput)
    .output(runDevicePage)
    .query(({ ctx, input }) => listRunDevices(ctx, input)),
})
