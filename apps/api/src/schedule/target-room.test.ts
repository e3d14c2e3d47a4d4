import { stateTargetsMax } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { useTestSite } from '../../test/test-site.ts'
import type { ScheduleDetail } from './schema.ts'
import { readOverfullSites } from './target-room.ts'

const site = useTestSite('operator')
const deviceCount = 1024
/** Schedules of the whole site: its edges would refuse a state with one more. */
const schedulesThatFit = stateTargetsMax / deviceCount

const tagged = [{ kind: 'tag', tag: 'all' }]
const create = (name: string, targets: object[] = tagged) =>
  site().tryMutation('schedule.create', {
    farmId: site().tenant.farmId,
    siteId: site().tenant.siteId,
    name,
    power: 'wake_on_lan',
    ratePerMinute: 60,
    when: { kind: 'cron', expression: '30 6 * * *' },
    timeZone: 'Europe/Berlin',
    targets,
  })

/** Creates as many schedules of all devices as edges accept, minus one. */
async function fillSite(): Promise<void> {
  const { db, clock } = site().api
  const { organizationId, farmId, siteId, collectionId, deviceIds } = site().tenant
  const place = { organizationId, siteId, collectionId, tags: ['all'] }
  await db.device.updateMany({ where: { organizationId }, data: { tags: ['all'] } })
  await db.device.createMany({
    data: Array.from({ length: deviceCount - deviceIds.length }, (_, index) => ({
      ...place,
      name: `more-${index}`,
      mac: `02:bf:0c:00:${(index >> 8).toString(16).padStart(2, '0')}:${(index & 255).toString(16).padStart(2, '0')}`,
    })),
  })
  const now = clock.read()
  const instants = [new Date(now.getTime() + 3_600_000)]
  const schedules = await db.schedule.createManyAndReturn({
    data: Array.from({ length: schedulesThatFit - 1 }, (_, index) => ({
      organizationId,
      farmId,
      siteId,
      name: `Filling ${index}`,
      ratePerMinute: 60,
      kind: 'cron' as const,
      cron: '30 6 * * *',
      timeZone: 'Europe/Berlin',
      instants,
      preparedUntil: now,
      createdAt: new Date(now.getTime() - 1_000),
      updatedAt: now,
    })),
    select: { id: true },
  })
  await db.scheduleTarget.createMany({
    data: schedules.map(({ id }) => ({
      organizationId,
      scheduleId: id,
      position: 0,
      kind: 'tag' as const,
      tag: 'all',
    })),
  })
}

const namedIn = async () =>
  ((await site().state()).schedules ?? []).reduce((sum, { devices }) => sum + devices.length, 0)

beforeEach(fillSite)

test('a schedule with which the edges of a site would have too much is refused, with the numbers', async () => {
  const last = await create('The last one')
  expect(last.status).toBe(200)
  expect(await namedIn()).toBe(stateTargetsMax)
  const answer = await create('One too many', [{ kind: 'device', deviceId: site().deviceId }])
  expect([answer.status, answer.code]).toEqual([409, 'conflict'])
  expect(answer.text).toContain(`name ${stateTargetsMax + 1} devices in total`)
  expect(answer.text).toContain(`its edges accept ${stateTargetsMax}`)
  expect(answer.text).toContain('disable or delete schedules')
  expect(await site().query('schedule.list', { limit: 100 })).not.toMatchObject({
    items: [{ name: 'One too many' }],
  })
  // A smaller schedule is accepted, and then there is capacity.
  const { id: scheduleId, revision } = await site().query<ScheduleDetail>('schedule.get', {
    scheduleId: (await site().query<{ items: { id: string }[] }>('schedule.list', { limit: 1 })).items[0]?.id,
  })
  await site().mutate('schedule.setEnabled', { scheduleId, revision, enabled: false })
  expect((await create('One too many', [{ kind: 'device', deviceId: site().deviceId }])).status).toBe(200)
  const again = await site().tryMutation('schedule.setEnabled', {
    scheduleId,
    revision: revision + 1,
    enabled: true,
  })
  expect([again.status, again.code]).toEqual([409, 'conflict'])
  expect((await site().tryMutation('schedule.runNow', { scheduleId })).status).toBe(409)
})

test('later devices keep the newest schedule from its edges, and its page reports it', async () => {
  const last = await create('The last one')
  const { collectionId, siteId } = site().tenant
  const more = { collectionId, name: 'late', mac: '02:bf:0d:00:00:01', tags: ['all'] }
  await site().mutate('device.create', more)
  const { id: scheduleId } = last.data as ScheduleDetail
  const shown = await site().query<ScheduleDetail>('schedule.get', { scheduleId })
  const namedCount = (deviceCount + 1) * schedulesThatFit
  expect(shown.withheldAt).toMatchObject([{ siteId, namedCount, limit: stateTargetsMax }])
  const told = (await site().state()).schedules ?? []
  expect(told.map(({ id }) => id)).not.toContain(scheduleId)
  expect(told).toHaveLength(schedulesThatFit - 1)
})

test('a smaller limit is counted the same way, each device once for each schedule', async () => {
  const { db } = site().api
  const { organizationId, farmId, siteId } = site().tenant
  const scope = { organizationId, farmId, siteId }
  const [overfull, ...others] = await readOverfullSites(db, scope, deviceCount)
  expect(others).toEqual([])
  expect(overfull).toMatchObject({
    siteId,
    namedCount: deviceCount * (schedulesThatFit - 1),
    limit: deviceCount,
  })
  expect(overfull?.withheldScheduleIds).toHaveLength(schedulesThatFit - 2)
  expect(await readOverfullSites(db, { ...scope, siteId: null })).toEqual([])
})
