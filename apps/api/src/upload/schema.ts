import { z } from 'zod'
import { count, instant, sha256Text, uuid } from '../rules/scalars.ts'

const nameSizeMax = 255
/** Of one vDisk; more are refused. */
export const uploadsPerVdiskMax = 32
/** Of one request that sends bytes: a longer one is cut at the limit for the arrival of requests. */
export const pieceSizeMax = 64 * 1024 * 1024
/** The media type of a piece (tus 1.0.0). */
export const pieceType = 'application/offset+octet-stream'

export const uploadCreateInput = z.object({
  vdiskId: uuid,
  name: z
    .string()
    .trim()
    .min(1, 'Name the file.')
    .max(nameSizeMax, `A file name can have at most ${nameSizeMax} characters.`)
    .refine((text) => !/\p{C}/u.test(text), 'A file name cannot contain control characters.')
    .describe('The name of the file.'),
  sizeBytes: count.min(1, 'The file is empty. Select an image.').describe('Size of the file.'),
  sha256: sha256Text
    .nullable()
    .default(null)
    .describe('Of the whole file, in hexadecimal digits: other bytes are refused. Null: not known.'),
})
export const uploadListInput = z.object({ vdiskId: uuid })
export const uploadGetInput = z.object({ vdiskId: uuid, uploadId: uuid })

export const uploadView = z
  .object({
    id: uuid,
    vdiskId: uuid,
    name: z.string().describe('The name of the file.'),
    sizeBytes: count,
    receivedBytes: count.describe('Bytes that arrived: a sender continues there.'),
    sha256: z.string().nullable().describe('SHA-256 of all bytes; null until they are complete.'),
    isComplete: z.boolean().describe('All bytes arrived: it can be imported.'),
    importJobId: uuid.nullable().describe('The import that takes it, until that job has ended; null: none.'),
    createdBy: z.string().describe('Who began it.'),
    createdAt: instant,
    expiresAt: instant.describe('It is deleted then, unless a piece arrives before or an import takes it.'),
  })
  .meta({ id: 'Upload' })
export type UploadView = z.infer<typeof uploadView>
export const uploadPage = z.object({ items: z.array(uploadView) }).meta({ id: 'UploadList' })
