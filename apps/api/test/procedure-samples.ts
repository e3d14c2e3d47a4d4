import { createHash, randomUUID } from 'node:crypto'
import { apiSamples } from './api-samples.ts'
import { experimentSamples } from './matrix/experiment-samples.ts'
import { findingSamples } from './matrix/finding-samples.ts'
import { keySamples } from './matrix/key-samples.ts'
import { rolloutSamples } from './matrix/rollout-samples.ts'
import { objectSamples } from './object-samples.ts'
import { peopleSamples } from './people-samples.ts'
import type { Sample, SampleTenant } from './sample.ts'
import { scheduleSamples } from './schedule-samples.ts'
import { tenancySamples } from './tenancy-samples.ts'
import { versionSamples } from './version-samples.ts'

const discovered = { discoveredIds: ['0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'] }
/** The rules of a site without any. */
const noRules = { rules: [], revision: createHash('sha256').update('[]').digest('hex') }
export const menusMadeAt = new Date('2026-11-20T11:00:00.000Z')
const menuFields = () => ({
  name: randomUUID(),
  timeoutMs: 10_000,
  defaultEntry: 0,
  entries: [{ title: 'Local disk', starts: { kind: 'local_disk' } }],
})
const objective = { percent: 95, seconds: 30, days: 30 }
/** One line for each procedure, in any order. */
export const samples: Record<string, Sample> = {
  'session.me': {},
  'search.find': { input: { search: 'pc' } },
  'audit.list': {},
  'audit.get': { idName: 'entryId', ownId: (tenant) => tenant.auditEntryId },
  'event.list': {},
  'event.get': { idName: 'eventId', ownId: (tenant) => tenant.eventId },
  'alert.list': {},
  'alert.openCount': {},
  'alert.openCauses': {},
  'alert.get': { idName: 'alertId', ownId: (tenant) => tenant.alertId },
  'alert.acknowledge': { idName: 'alertId', input: { acknowledged: true }, ownId: (tenant) => tenant.alertId },
  'alert.subscription': {},
  'alert.subscribe': { input: { subscription: { quietHours: null, timeZone: 'UTC' } } },
  'objective.ofSite': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'objective.setOfSite': { idName: 'siteId', input: { objective }, ownId: (tenant) => tenant.siteId },
  'objective.ofCollection': { idName: 'collectionId', ownId: (tenant) => tenant.collectionId },
  'objective.setOfCollection': { idName: 'collectionId', input: { objective }, ownId: (tenant) => tenant.collectionId },
  ...apiSamples,
  ...peopleSamples,
  ...tenancySamples,
  'farm.list': {},
  'farm.get': { idName: 'farmId', ownId: (tenant) => tenant.farmId },
  'farm.overview': { idName: 'farmId', ownId: (tenant) => tenant.farmId },
  'overview.get': {},
  'storm.get': {},
  'explore.get': {},
  'network.report': {},
  'explore.compare': {},
  'explore.views': {},
  'explore.setViews': { input: () => ({ views: [{ name: randomUUID(), path: '/explore?by=site' }] }) },
  'explore.differences': { input: () => ({ boxSince: '2026-01-01T00:00:00Z', boxUntil: '2026-01-02T00:00:00Z' }) },
  'overview.ofCollection': { idName: 'collectionId', ownId: (tenant) => tenant.collectionId },
  'site.list': {},
  'site.get': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'edge.list': {},
  'edge.get': { idName: 'edgeId', ownId: (tenant) => tenant.edgeId },
  'edge.images': { idName: 'edgeId', ownId: (tenant) => tenant.edgeId },
  'edge.createJoinToken': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'edge.rotateKey': { idName: 'edgeId', ownId: (tenant) => tenant.edgeId },
  'edge.rotateSigningKey': {},
  'edge.installation': {},
  'edge.joinToken': {
    idName: 'siteId',
    input: ({ joinTokenId }) => ({ joinTokenId }),
    ownId: (tenant) => tenant.siteId,
  },
  'edge.joinTokens': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'edge.revokeJoinToken': {
    idName: 'siteId',
    input: ({ joinTokenId }) => ({ joinTokenId }),
    ownId: (tenant) => tenant.siteId,
  },
  'edge.setShare': {
    idName: 'edgeId',
    input: { revision: 1, weight: 10, subnets: [] },
    ownId: (tenant) => tenant.spareEdgeId,
  },
  'edge.drain': {
    idName: 'edgeId',
    input: { revision: 1, draining: false },
    ownId: (tenant) => tenant.spareEdgeId,
  },
  'edge.releases': {},
  'edge.orderRelease': {
    idName: 'edgeId',
    ownId: (tenant) => tenant.edgeId,
    input: { version: null },
  },
  'edge.update': {
    idName: 'edgeId',
    input: { revision: 1, name: 'edge-1' },
    ownId: (tenant) => tenant.spareEdgeId,
  },
  'edge.revoke': {
    idName: 'edgeId',
    input: { revision: 1, name: 'edge-1' },
    ownId: (tenant) => tenant.spareEdgeId,
  },
  'site.bootProgramSets': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'site.setBootProgramSet': {
    idName: 'siteId',
    input: { bootProgramSet: null },
    ownId: (tenant) => tenant.siteId,
  },
  'site.setCacheCopies': { idName: 'siteId', input: { cacheCopyHours: 6 }, ownId: (tenant) => tenant.siteId },
  'site.setCapture': { idName: 'siteId', input: { capture: 'never' }, ownId: (tenant) => tenant.siteId },
  'discovered.list': {},
  'discovered.get': { idName: 'discoveredId', ownId: (tenant) => tenant.discoveredId },
  'discovered.waitingCount': {},
  'discovered.adopt': {
    idName: 'siteId',
    input: ({ collectionId }) => ({ ...discovered, collectionId, namePattern: '{mac}' }),
    ownId: (tenant) => tenant.siteId,
  },
  'discovered.ignore': {
    idName: 'siteId',
    input: { ...discovered, ignored: true },
    ownId: (tenant) => tenant.siteId,
  },
  'discovered.rules': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'discovered.setRules': { idName: 'siteId', input: noRules, ownId: (tenant) => tenant.siteId },
  'discovered.previewRules': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'discovered.applyRules': { idName: 'siteId', ownId: (tenant) => tenant.siteId },
  'collection.list': {},
  'collection.setBootProgramSet': {
    idName: 'collectionId',
    input: { bootProgramSet: null },
    ownId: (tenant) => tenant.collectionId,
  },
  'collection.setBootMenu': {
    idName: 'collectionId',
    input: { menuId: null },
    ownId: (tenant) => tenant.collectionId,
  },
  'device.setBootMenu': {
    idName: 'deviceId',
    input: { menu: { choice: 'collection' } },
    ownId: (tenant) => tenant.deviceIds[0] ?? '',
  },
  'bootMenu.list': {},
  'bootMenu.get': { idName: 'menuId', ownId: (tenant) => tenant.spareMenuIds[0] ?? '' },
  'bootMenu.choices': { idName: 'farmId', ownId: (tenant) => tenant.farmId },
  'bootMenu.create': {
    idName: 'farmId',
    input: menuFields,
    ownId: (tenant) => tenant.farmId,
  },
  'bootMenu.update': {
    idName: 'menuId',
    input: () => ({ ...menuFields(), revision: 1 }),
    ownId: (tenant) => tenant.spareMenuIds.pop() ?? '',
  },
  'bootMenu.remove': { idName: 'menuId', ownId: (tenant) => tenant.spareMenuIds.pop() ?? '' },
  'device.setBootProgramSet': {
    idName: 'deviceId',
    input: { bootProgramSet: null },
    ownId: (tenant) => tenant.deviceIds[0] ?? '',
  },
  'device.list': {},
  'device.get': { idName: 'deviceId', ownId: (tenant) => tenant.deviceIds[0] ?? '' },
  'device.bootAgain': { idName: 'deviceId', ownId: (tenant) => tenant.deviceIds[0] ?? '' },
  'device.orderPower': {
    idName: 'deviceId',
    input: { order: 'restart' },
    ownId: (tenant) => tenant.deviceIds[0] ?? '',
  },
  'device.dropWrites': {
    idName: 'deviceId',
    input: { class: 'private' },
    ownId: (tenant) => tenant.versionSpares.layeredIds.pop() ?? '',
  },
  'device.moveHome': {
    idName: 'deviceId',
    input: (tenant: SampleTenant) => ({ edgeId: tenant.edgeId, giveUp: true }),
    ownId: (tenant) => tenant.versionSpares.homedIds.pop() ?? '',
  },
  'boot.list': {},
  'boot.get': { idName: 'bootId', ownId: (tenant) => tenant.bootId },
  'boot.usual': { idName: 'bootId', ownId: (tenant) => tenant.bootId },
  'boot.console': { idName: 'bootId', ownId: (tenant) => tenant.bootId },
  'boot.capture': { idName: 'bootId', ownId: (tenant) => tenant.bootId },
  'boot.filesRead': { idName: 'bootId', ownId: (tenant) => tenant.bootId },
  'boot.newestChange': {},
  'boot.onChange': {},
  ...keySamples,
  ...scheduleSamples,
  ...rolloutSamples,
  ...findingSamples,
  ...experimentSamples,
  'vdisk.list': {},
  ...objectSamples,
  ...versionSamples,
  'vdisk.get': { idName: 'vdiskId', ownId: (tenant) => tenant.vdiskId },
}

/** The whole input of a procedure's sample, with this id where it takes one. */
export function inputOfSample(path: string, tenant: SampleTenant, id?: string): object | undefined {
  const { idName, input } = samples[path] ?? {}
  const more = typeof input === 'function' ? input(tenant, id ?? '') : input
  // A procedure of many takes a list of ids.
  if (idName) return { [idName]: idName.endsWith('Ids') ? [id] : id, ...more }
  return path === 'session.me' || path === 'boot.onChange' ? undefined : (more ?? {})
}
