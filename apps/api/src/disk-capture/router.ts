import { procedure, router } from '../http/trpc/trpc.ts'
import { answerCapture, cancelCapture } from './change-capture.ts'
import { getCapture } from './get-capture.ts'
import { answerCaptureInput, captureInput, captureOfDevice, captureView, startCaptureInput } from './schema.ts'
import { startCapture } from './start-capture.ts'

const ofDevice = { kind: 'device', id: 'deviceId' } as const

export const diskCaptureRouter = router({
  get: procedure
    .meta({
      permission: 'device.read',
      place: ofDevice,
      rest: { method: 'GET', path: '/devices/{deviceId}/disk-capture', summary: 'The capture of a device’s disk' },
    })
    .input(captureInput)
    .output(captureOfDevice)
    .query(({ ctx, input }) => getCapture(ctx, input.deviceId)),
  start: procedure
    .meta({
      permission: 'device.capture',
      place: [
        ofDevice,
        { kind: 'vdisk', id: 'vdiskId', optional: true },
        { kind: 'farm', id: 'farmId', optional: true },
      ],
      rest: {
        method: 'POST',
        path: '/devices/{deviceId}/disk-capture',
        summary: 'Capture the local disk of a device as a version',
        creates: '/devices/{deviceId}/disk-capture',
      },
    })
    .input(startCaptureInput)
    .output(captureView)
    .mutation(({ ctx, input }) => startCapture(ctx, input)),
  answer: procedure
    .meta({
      permission: 'device.capture',
      place: ofDevice,
      rest: {
        method: 'POST',
        path: '/devices/{deviceId}/disk-capture/answer',
        summary: 'Name the disk of a capture, or choose its boot files again',
      },
    })
    .input(answerCaptureInput)
    .output(captureView)
    .mutation(({ ctx, input }) => answerCapture(ctx, input)),
  cancel: procedure
    .meta({
      permission: 'device.capture',
      place: ofDevice,
      rest: {
        method: 'POST',
        path: '/devices/{deviceId}/disk-capture/cancel',
        summary: 'Cancel the capture of a device’s disk',
      },
    })
    .input(captureInput)
    .output(captureView)
    .mutation(({ ctx, input }) => cancelCapture(ctx, input.deviceId)),
})
