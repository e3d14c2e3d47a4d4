import { randomUUID } from 'node:crypto'
import type { Sample, SampleTenant } from './sample.ts'
import type { SpareKind } from './spare-objects.ts'

/** One that is there, to be deleted. */
const spare = (kind: SpareKind) => (tenant: SampleTenant) => tenant.spares.objects[kind].pop() ?? ''
/** One whose deletion can be taken back. */
const deletion = (kind: SpareKind): Sample => ({
  idName: 'deletionId',
  ownId: (tenant) => tenant.spares.deletions[kind].pop() ?? '',
})
let macs = 0
const freshMac = () => `02:bf:01:00:00:${(macs++).toString(16).padStart(2, '0')}`
/** Samples of procedures that create, change, delete and restore objects. */
export const objectSamples: Record<string, Sample> = {
  'farm.create': { input: () => ({ name: randomUUID() }) },
  'farm.update': { idName: 'farmId', input: { revision: 1 }, ownId: (tenant) => tenant.farmId },
  'farm.remove': { idName: 'farmId', ownId: spare('farm') },
  'farm.restore': deletion('farm'),
  'site.create': {
    idName: 'farmId',
    input: () => ({ name: randomUUID(), timeZone: 'Europe/Berlin' }),
    ownId: (tenant) => tenant.farmId,
  },
  'site.update': {
    idName: 'siteId',
    input: { revision: 1, timeZone: 'UTC' },
    ownId: (tenant) => tenant.spares.objects.site[0] ?? '',
  },
  'site.move': {
    idName: 'siteId',
    input: ({ farmId }) => ({ revision: 1, farmId }),
    ownId: (tenant) => tenant.spares.objects.site[0] ?? '',
  },
  'site.remove': { idName: 'siteId', ownId: spare('site') },
  'site.restore': deletion('site'),
  'collection.get': { idName: 'collectionId', ownId: (tenant) => tenant.collectionId },
  'collection.create': {
    idName: 'siteId',
    input: () => ({ name: randomUUID() }),
    ownId: (tenant) => tenant.siteId,
  },
  'collection.update': {
    idName: 'collectionId',
    input: { revision: 1, templateDeviceId: null },
    ownId: (tenant) => tenant.spares.objects.collection[0] ?? '',
  },
  'collection.remove': { idName: 'collectionId', ownId: spare('collection') },
  'collection.restore': deletion('collection'),
  'device.create': {
    idName: 'collectionId',
    input: () => ({ name: randomUUID(), mac: freshMac() }),
    ownId: (tenant) => tenant.collectionId,
  },
  'device.update': {
    idName: 'deviceId',
    input: { revision: 1, enabled: true },
    ownId: (tenant) => tenant.spares.objects.device[0] ?? '',
  },
  'device.remove': { idName: 'deviceId', ownId: spare('device') },
  'device.restore': deletion('device'),
  'device.listIds': {},
  'device.changeMany': {
    input: { preview: true, addTags: ['x'] },
    idName: 'deviceIds',
    ownId: (tenant) => tenant.deviceIds[0] ?? '',
  },
  'device.removeMany': { idName: 'deviceIds', ownId: spare('device') },
  'device.powerMany': {
    idName: 'deviceIds',
    input: { order: 'power_on' },
    ownId: (tenant) => tenant.deviceIds[1] ?? '',
  },
  'device.importCsv': {
    idName: 'siteId',
    input: { csv: 'name,enabled\npc-01,yes\n' },
    ownId: (tenant) => tenant.siteId,
  },
  'vdisk.create': {
    idName: 'farmId',
    input: () => ({ name: randomUUID() }),
    ownId: (tenant) => tenant.farmId,
  },
  'vdisk.update': {
    idName: 'vdiskId',
    input: { revision: 1, note: '' },
    ownId: (tenant) => tenant.spares.objects.vdisk[0] ?? '',
  },
  'vdisk.remove': { idName: 'vdiskId', ownId: spare('vdisk') },
  'vdisk.restore': deletion('vdisk'),
  'vdisk.registerVersion': {
    idName: 'vdiskId',
    input: { diskPath: 'spare/disk.raw', sizeBytes: 512 },
    ownId: (tenant) => tenant.spares.objects.vdisk[0] ?? '',
  },
  'vdisk.updateVersion': {
    idName: 'versionId',
    input: { revision: 1, note: '' },
    ownId: (tenant) => tenant.spares.objects.version[0] ?? '',
  },
  'vdisk.removeVersion': { idName: 'versionId', ownId: spare('version') },
  'vdisk.restoreVersion': deletion('version'),
  'store.list': {},
  'store.get': { idName: 'storeId', ownId: (tenant) => tenant.spares.objects.store[0] ?? '' },
  'store.create': {
    idName: 'farmId',
    input: () => ({ name: randomUUID() }),
    ownId: (tenant) => tenant.farmId,
  },
  'store.update': {
    idName: 'storeId',
    input: { revision: 1, note: '' },
    ownId: (tenant) => tenant.spares.objects.store[0] ?? '',
  },
  'store.remove': { idName: 'storeId', ownId: spare('store') },
  'store.restore': deletion('store'),
  'trash.list': {},
  'trash.get': { idName: 'deletionId', ownId: (tenant) => tenant.spares.purgeable[0] ?? '' },
  'trash.purge': {
    idName: 'deletionId',
    ownId: (tenant) => tenant.spares.purgeable.pop() ?? '',
  },
}
