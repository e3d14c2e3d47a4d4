import type { RouterInputs, RouterOutputs } from '@bootfarm/api/router'

export type ScheduleSummary = RouterOutputs['schedule']['list']['items'][number]
export type ScheduleDetail = RouterOutputs['schedule']['get']
export type ScheduleTarget = ScheduleDetail['targets'][number]
export type RunDetail = RouterOutputs['schedule']['run']
export type RunSummary = RouterOutputs['schedule']['runs']['items'][number]
export type RunDevice = RouterOutputs['schedule']['runDevices']['items'][number]
export type PlannedInstant = RouterOutputs['schedule']['preview']['instants'][number]
export type ScheduleWhen = ScheduleSummary['when']
export type ScheduleFields = Omit<RouterInputs['schedule']['create'], 'farmId' | 'enabled'>
