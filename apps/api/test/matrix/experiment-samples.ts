import { randomUUID } from 'node:crypto'
import type { ExperimentSpares, Sample } from '../sample.ts'
import type { TestApi } from '../test-api.ts'
import type { TestTenant } from '../test-tenant.ts'

const spareCount = 40
const changing = (kind: keyof ExperimentSpares, more: object = {}): Sample => ({
  idName: 'experimentId',
  input: { revision: 1, ...more },
  ownId: (tenant) => tenant.experimentSpares[kind].pop() ?? '',
})
const shown = (tenant: { experimentSpares: ExperimentSpares }) => tenant.experimentSpares.runningIds[0] ?? ''

export const experimentSamples: Record<string, Sample> = {
  'experiment.list': {},
  'experiment.get': { idName: 'experimentId', ownId: shown },
  'experiment.trials': { idName: 'experimentId', ownId: shown },
  'experiment.create': {
    idName: 'siteId',
    input: (tenant) => ({
      name: 'Read sizes',
      deviceIds: [tenant.experimentSpares.deviceIds.pop() ?? ''],
      factors: [{ setting: 'read-limit', values: ['4k'] }],
      repetitions: 2,
      atOnce: 1,
    }),
    ownId: (tenant) => tenant.siteId,
  },
  'experiment.pause': changing('runningIds'),
  'experiment.resume': changing('pausedIds'),
  'experiment.stop': changing('runningIds'),
  'experiment.applyCell': changing('doneIds', { cell: 1 }),
}

const mac = (id: string) =>
  `02:${id
    .replace(/-/g, '')
    .slice(0, 10)
    .replace(/(..)(?=.)/g, '$1:')}`

/** Creates devices, and experiments in each state, each with an ended boot of a device. */
export async function createExperimentSpares(
  { db, clock }: TestApi,
  { organizationId, siteId, collectionId }: TestTenant,
): Promise<ExperimentSpares> {
  const ids = () => Array.from({ length: spareCount }, () => randomUUID())
  const spares = { runningIds: ids(), pausedIds: ids(), doneIds: ids(), deviceIds: ids() }
  const { now } = clock
  const place = { organizationId, siteId }
  const deviceId = randomUUID()
  await db.device.createMany({
    data: [...spares.deviceIds, deviceId].map((id) => ({
      ...place,
      collectionId,
      id,
      name: `lab-${id}`,
      mac: mac(id),
    })),
  })
  const experiment = { ...place, ...plan, createdAt: now, endsAt: new Date(now.getTime() + 3_600_000) }
  await db.experiment.createMany({
    data: [
      ...spares.runningIds.map((id) => ({ ...experiment, id })),
      ...spares.pausedIds.map((id) => ({ ...experiment, id, state: 'paused' as const })),
      ...spares.doneIds.map((id) => ({ ...experiment, id, state: 'done' as const, endedAt: now })),
    ],
  })
  const trial = {
    ...place,
    deviceId,
    position: 0,
    repetition: 0,
    cell: 0,
    settings: [],
    state: 'dropped' as const,
    endedAt: now,
  }
  const { runningIds, pausedIds, doneIds } = spares
  await db.experimentTrial.createMany({
    data: [...runningIds, ...pausedIds, ...doneIds].map((experimentId) => ({ ...trial, experimentId })),
  })
  return spares
}

const plan = {
  name: 'An experiment',
  factors: [{ setting: 'codec', values: ['off'] }],
  cells: [[], ['codec=off']],
  repetitions: 1,
  atOnce: 1,
  bootSeconds: 300,
  seed: 1,
  createdByName: 'Somebody',
}
