import { chooseMenuOfDevice } from '../boot-menu/public.ts'
import { chosenMenu, setMenuOfDeviceInput } from '../boot-menu/schema.ts'
import { procedure, router } from '../http/trpc/trpc.ts'
import { chosenSetResult, setOfDeviceInput } from '../rules/boot-programs.ts'
import { changedObject, deletedObject } from '../rules/changed-object.ts'
import { chooseForDevice } from '../site/public.ts'
import { restoring } from '../trash/restore-router.ts'
import { createDevice, removeDevice, updateDevice } from './change-device.ts'
import { approveWaitingKeys, decideDeviceKey } from './decide-key.ts'
import { dropWrites } from './drop-writes.ts'
import { getDevice } from './get-device.ts'
import { importDevices } from './import-devices.ts'
import { listDevices } from './list-devices.ts'
import { changeManyDevices, listDeviceIds, powerManyDevices, removeManyDevices } from './many-devices.ts'
import { moveHome } from './move-home.ts'
import { bootAgain, orderPower } from './order-power.ts'
import {
  approveKeysInput,
  bootAgainInput,
  bootAgainResult,
  changeManyInput,
  createDeviceInput,
  decideKeyInput,
  decideKeyResult,
  deviceDetail,
  deviceFilterInput,
  deviceGetInput,
  deviceIdsResult,
  deviceListInput,
  devicePage,
  dropWritesInput,
  dropWritesResult,
  importCsvInput,
  manyDone,
  moveHomeInput,
  moveHomeResult,
  planResult,
  powerManyInput,
  powerOrderInput,
  powerOrderResult,
  removeDeviceInput,
  removeManyInput,
  updateDeviceInput,
} from './schema.ts'

export const deviceRouter = router({
  list: procedure
    .meta({
      permission: 'device.read',
      place: 'visible',
      rest: { method: 'GET', path: '/devices', summary: 'Devices' },
    })
    .input(deviceListInput)
    .output(devicePage)
    .query(({ ctx, input }) => listDevices(ctx, input)),
  get: procedure
    .meta({
      permission: 'device.read',
      place: { kind: 'device', id: 'deviceId' },
      rest: { method: 'GET', path: '/devices/{deviceId}', summary: 'A device' },
    })
    .input(deviceGetInput)
    .output(deviceDetail)
    .query(({ ctx, input }) => getDevice(ctx, input.deviceId)),
  bootAgain: procedure
    .meta({
      permission: 'device.power',
      place: { kind: 'device', id: 'deviceId' },
      rest: {
        method: 'POST',
        path: '/devices/{deviceId}/boot-again',
        summary: 'Wake a device (Wake-on-LAN)',
      },
    })
    .input(bootAgainInput)
    .output(bootAgainResult)
    .mutation(({ ctx, input }) => bootAgain(ctx, input)),
  orderPower: procedure
    .meta({
      permission: 'device.power',
      place: { kind: 'device', id: 'deviceId' },
      rest: {
        method: 'POST',
        path: '/devices/{deviceId}/power-orders',
        summary: 'Restart or power off a running device',
        creates: null,
      },
    })
    .input(powerOrderInput)
    .output(powerOrderResult)
    .mutation(({ ctx, input }) => orderPower(ctx, input)),
  dropWrites: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'device', id: 'deviceId' },
      rest: {
        method: 'POST',
        path: '/devices/{deviceId}/drop-writes',
        summary: 'Delete the stored writes of a device: its write cache or its private image',
        creates: null,
      },
    })
    .input(dropWritesInput)
    .output(dropWritesResult)
    .mutation(({ ctx, input }) => dropWrites(ctx, input)),
  moveHome: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'device', id: 'deviceId' },
      rest: {
        method: 'POST',
        path: '/devices/{deviceId}/move-home',
        summary: 'Move the stored writes of a device to another edge of its site',
        creates: null,
      },
    })
    .input(moveHomeInput)
    .output(moveHomeResult)
    .mutation(({ ctx, input }) => moveHome(ctx, input)),
  decideKey: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'device', id: 'deviceId' },
      rest: {
        method: 'POST',
        path: '/devices/{deviceId}/key-decisions',
        summary: 'Approve, keep or forget the TPM key of a device, or record that it has none',
        creates: null,
      },
    })
    .input(decideKeyInput)
    .output(decideKeyResult)
    .mutation(({ ctx, input }) => decideDeviceKey(ctx, input)),
  approveKeys: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'collection', id: 'collectionId' },
      rest: {
        method: 'POST',
        path: '/collections/{collectionId}/key-approvals',
        summary: 'Approve the waiting TPM keys of all devices of a collection, all or none',
      },
    })
    .input(approveKeysInput)
    .output(manyDone)
    .mutation(({ ctx, input }) => approveWaitingKeys(ctx, input)),
  setBootProgramSet: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'device', id: 'deviceId' },
      rest: {
        method: 'PUT',
        path: '/devices/{deviceId}/boot-program-set',
        summary: 'Choose the boot programs of a device',
      },
    })
    .input(setOfDeviceInput)
    .output(chosenSetResult)
    .mutation(({ ctx, input }) => chooseForDevice(ctx, input)),
  setBootMenu: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'device', id: 'deviceId' },
      rest: {
        method: 'PUT',
        path: '/devices/{deviceId}/boot-menu',
        summary: 'Choose the boot menu of a device',
      },
    })
    .input(setMenuOfDeviceInput)
    .output(chosenMenu)
    .mutation(({ ctx, input }) => chooseMenuOfDevice(ctx, input)),
  create: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'collection', id: 'collectionId' },
      rest: { method: 'POST', path: '/devices', summary: 'Create a device', creates: '/devices/{id}' },
    })
    .input(createDeviceInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => createDevice(ctx, input)),
  update: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'device', id: 'deviceId' },
      rest: { method: 'PATCH', path: '/devices/{deviceId}', summary: 'Edit a device' },
    })
    .input(updateDeviceInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => updateDevice(ctx, input)),
  remove: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'device', id: 'deviceId' },
      rest: { method: 'DELETE', path: '/devices/{deviceId}', summary: 'Move a device to the trash' },
    })
    .input(removeDeviceInput)
    .output(deletedObject)
    .mutation(({ ctx, input }) => removeDevice(ctx, input)),
  restore: restoring('device'),
  listIds: procedure
    .meta({
      permission: 'device.read',
      place: 'visible',
      rest: { excluded: 'for selections of the dashboard: the list of devices gives the same ids' },
    })
    .input(deviceFilterInput)
    .output(deviceIdsResult)
    .query(({ ctx, input }) => listDeviceIds(ctx, input)),
  changeMany: procedure
    .meta({
      permission: 'device.change',
      place: [
        { kind: 'device', id: 'deviceIds' },
        { kind: 'collection', id: 'collectionId', optional: true },
      ],
      rest: {
        method: 'POST',
        path: '/device-changes',
        summary: 'Edit or move up to 1,000 devices, all or none',
      },
    })
    .input(changeManyInput)
    .output(planResult)
    .mutation(({ ctx, input }) => changeManyDevices(ctx, input)),
  removeMany: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'device', id: 'deviceIds' },
      rest: {
        method: 'POST',
        path: '/device-removals',
        summary: 'Move up to 1,000 devices to the trash, all or none',
      },
    })
    .input(removeManyInput)
    .output(manyDone)
    .mutation(({ ctx, input }) => removeManyDevices(ctx, input)),
  powerMany: procedure
    .meta({
      permission: 'device.power',
      place: { kind: 'device', id: 'deviceIds' },
      rest: {
        method: 'POST',
        path: '/device-power-orders',
        summary: 'Power up to 200 devices on or off, all or none',
      },
    })
    .input(powerManyInput)
    .output(manyDone)
    .mutation(({ ctx, input }) => powerManyDevices(ctx, input)),
  importCsv: procedure
    .meta({
      permission: 'device.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'POST',
        path: '/sites/{siteId}/device-imports',
        summary: 'Create and edit devices of a site by CSV, all rows or none',
        isLarge: true,
      },
    })
    .input(importCsvInput)
    .output(planResult)
    .mutation(({ ctx, input }) => importDevices(ctx, input)),
})
