import { randomUUID } from 'node:crypto'
import type { Sample, SampleTenant } from './sample.ts'

const scheduleFields = (tenant: SampleTenant) => ({
  name: randomUUID(),
  siteId: null,
  power: 'wake_on_lan',
  ratePerMinute: 10,
  timeZone: 'Europe/Berlin',
  when: { kind: 'cron', expression: '30 6 * * 1-5' },
  targets: [{ kind: 'collection', collectionId: tenant.collectionId }],
})

export const scheduleSamples: Record<string, Sample> = {
  'schedule.list': {},
  'schedule.get': { idName: 'scheduleId', ownId: (tenant) => tenant.spareScheduleIds[0] ?? '' },
  'schedule.preview': { idName: 'farmId', input: scheduleFields, ownId: (tenant) => tenant.farmId },
  'schedule.create': { idName: 'farmId', input: scheduleFields, ownId: (tenant) => tenant.farmId },
  'schedule.update': {
    idName: 'scheduleId',
    input: (tenant: SampleTenant) => ({ ...scheduleFields(tenant), revision: 1 }),
    ownId: (tenant) => tenant.spareScheduleIds.pop() ?? '',
  },
  'schedule.setEnabled': {
    idName: 'scheduleId',
    input: { enabled: true, revision: 1 },
    ownId: (tenant) => tenant.spareScheduleIds.pop() ?? '',
  },
  'schedule.remove': {
    idName: 'scheduleId',
    input: { revision: 1 },
    ownId: (tenant) => tenant.spareScheduleIds.pop() ?? '',
  },
  'schedule.runNow': { idName: 'scheduleId', ownId: (tenant) => tenant.spareScheduleIds[0] ?? '' },
  'schedule.runs': { idName: 'scheduleId', ownId: (tenant) => tenant.spareScheduleIds[0] ?? '' },
  'schedule.run': { idName: 'runId', ownId: (tenant) => tenant.runId },
  'schedule.runDevices': { idName: 'runId', ownId: (tenant) => tenant.runId },
}
