import type { SystemContext } from '../service-context.ts'

export const captureKeptDays = 30
/** Rows of one statement: each holds up to 256 KiB. */
const dropAtOnceMax = 200

const dayMs = 86_400_000

/** Drops what has been kept for longer than `captureKeptDays`, of all organizations. @returns how many */
export async function dropOldCaptures({ db, clock }: SystemContext): Promise<number> {
  const before = new Date(clock().getTime() - captureKeptDays * dayMs)
  let dropped = 0
  for (;;) {
    const count = await db.$executeRaw`
      delete from boot_capture where (organization_id, boot_id) in (
        select organization_id, boot_id from boot_capture where received_at < ${before}
        order by received_at limit ${dropAtOnceMax})`
    dropped += count
    if (count < dropAtOnceMax) return dropped
  }
}
