import { z } from 'zod'
import { objectName, objectNote, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { diskSize } from '../vdisk/version-schema.ts'

/** The states of a capture: docs/guides/capture.md. The last three are ends. */
export const captureStates = [
  'preparing',
  'waiting',
  'copying',
  'asking',
  'sealing',
  'undoing',
  'done',
  'failed',
  'cancelled',
] as const
export type CaptureState = (typeof captureStates)[number]

/** The only disk of a machine, whatever its name is. */
export const onlyDisk = 'auto'
const waitHoursMax = 168

const diskName = z
  .string()
  .trim()
  .regex(/^(\/dev\/)?[A-Za-z0-9][A-Za-z0-9!_-]{0,30}$/, 'Enter the kernel’s name of a disk, such as sda or nvme0n1.')
  .transform((name) => name.replace(/^\/dev\//, ''))

export const captureInput = z.object({ deviceId: uuid })
export const startCaptureInput = z
  .object({
    deviceId: uuid,
    revision: seenRevision.describe("The device's."),
    bootVersionId: uuid.describe('The version whose kernel and initramfs the device boots; the edge must hold it.'),
    vdiskId: uuid
      .nullable()
      .default(null)
      .describe('The vDisk of the new version; null: a new vDisk of the farm, with this name.')
      .meta({ examples: ['0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'] }),
    farmId: uuid.nullable().default(null),
    name: objectName.nullable().default(null),
    edgeId: uuid
      .nullable()
      .default(null)
      .describe("The edge of the device's site that keeps the disk; null: one that can.")
      .meta({ examples: [null] }),
    disk: diskName.default(onlyDisk).describe('The kernel’s name of the disk; `auto`: the only one of the device.'),
    sizeBytes: diskSize
      .nullable()
      .default(null)
      .describe('The size of the disk. Null: the device says it, and boots once more.')
      .meta({ examples: [null] }),
    bootFiles: z
      .enum(['image', 'none'])
      .default('image')
      .describe('`image`: the version boots with the kernel on the disk; `none`: with the boot loader of the disk.'),
    note: objectNote.default(''),
    waitHours: z
      .number()
      .int()
      .min(1)
      .max(waitHoursMax, `A capture waits for at most ${waitHoursMax} hours.`)
      .default(24)
      .describe('How long it waits for the device to boot, or for an answer, before it is given up.'),
    whileRunning: z
      .boolean()
      .default(false)
      .describe('Whether it begins although the device is running: the device has to be restarted then.'),
  })
  .refine(({ vdiskId, farmId, name }) => (vdiskId === null) === (farmId !== null && name !== null), {
    path: ['vdiskId'],
    message: 'say either a vDisk, or the farm and the name of a new one',
  })
export const answerCaptureInput = z
  .object({
    deviceId: uuid,
    disk: diskName
      .nullable()
      .default(null)
      .describe('One of `disks`, if the question is `disk`.')
      .meta({ examples: ['sda'] }),
    bootFiles: z
      .enum(['image', 'none'])
      .nullable()
      .default(null)
      .describe('If the question is `boot_files`: tried again like this.')
      .meta({ examples: [null] }),
  })
  .refine(({ disk, bootFiles }) => (disk === null) !== (bootFiles === null), {
    path: ['disk'],
    message: 'say either a disk or the boot files',
  })

const named = z.object({ id: uuid, name: z.string() })

export const captureView = z
  .object({
    id: uuid,
    deviceId: uuid,
    state: z.enum(captureStates).describe('What it waits for, or how it ended: the guide to captures has all of them.'),
    question: z.enum(['disk', 'boot_files']).nullable().describe('Null: nothing is asked.'),
    disk: z.string().describe('The disk that is captured; `auto`: the only one of the device.'),
    disks: z.array(z.string()).describe('The disks of the device of which one has to be named.'),
    sizeBytes: count.nullable().describe('Null: not known before the device has booted.'),
    vdisk: named.nullable().describe('Null: it was deleted.'),
    version: z.object({ id: uuid, number: count }).nullable().describe('The version that is written, or was made.'),
    edge: named.describe('The edge that keeps it.'),
    bootVersion: z
      .object({ id: uuid, number: count, vdiskName: z.string() })
      .nullable()
      .describe('The version whose kernel and initramfs the device boots; null: it was deleted.'),
    copied: z
      .object({
        bytes: count.describe('Bytes that the edge keeps of it: zeros are not sent. In the end the size of the disk.'),
        totalBytes: count.describe('Size of the disk.'),
        bytesPerSecond: count.nullable().describe('Between the last two reports; null: not known yet.'),
        reportedAt: instant,
      })
      .nullable()
      .describe('How far the copy is; null: not reported yet.'),
    deadlineAt: instant.describe('The present state is given up then.'),
    reason: z.string().nullable().describe('Why it failed.'),
    untrusted: z
      .object({ remark: z.string().nullable().describe('The words of a device or of an edge.') })
      .describe('What the device or the edge said last.'),
    askedBy: z.string(),
    askedAt: instant,
    endedAt: instant.nullable(),
  })
  .meta({ id: 'DiskCapture' })
export type CaptureView = z.infer<typeof captureView>
export const captureOfDevice = z
  .object({ capture: captureView.nullable().describe('The newest one; null: there was none lately.') })
  .meta({ id: 'DeviceDiskCapture' })
