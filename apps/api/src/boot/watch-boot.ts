import { once } from 'node:events'
import { inOrganization } from '@bootfarm/db'
import { topicText } from '../context/notifications.ts'
import { getBoot } from './get-boot.ts'
import type { BootPageChange } from './schema.ts'
import type { WatchContext, WatchOptions } from './watch-boots.ts'

interface WatchBootOptions extends Omit<WatchOptions, 'after'> {
  bootId: string
  detailKeptDays: number
}

/**
 * Yields one boot as its page shows it: its current state, then each change, until `signal` aborts or the boot no
 * longer exists. Reports that arrive faster than they are read are one event with the newest state.
 */
export async function* watchBoot(
  { db, clock, actor }: WatchContext,
  { bootId, detailKeptDays, notifications, signal }: WatchBootOptions,
): AsyncGenerator<BootPageChange> {
  const { organizationId } = actor
  const waker = new EventTarget()
  let isWoken = false
  // Listening begins before the first read, so that no change falls between.
  const unsubscribe = notifications.subscribe(topicText({ boots: { organizationId } }), () => {
    isWoken = true
    waker.dispatchEvent(new Event('wake'))
  })
  let last: bigint | null = null
  try {
    while (!signal.aborted) {
      isWoken = false
      // No transaction is held between two reads. An unchanged boot is not read completely.
      const found = await inOrganization(db, organizationId, async (transaction) => {
        const key = await transaction.bootKey.findUnique({
          where: { organizationId_bootId: { organizationId, bootId } },
          select: { change: true },
        })
        if (key === null || key.change === last) return { change: key?.change ?? null, boot: null }
        return {
          change: key.change,
          boot: await getBoot({ db: transaction, clock, actor }, { bootId, detailKeptDays }),
        }
      })
      if (found.change === null) {
        yield { kind: 'withdrawn' }
        return
      }
      last = found.change
      if (found.boot) yield { kind: 'boot', boot: found.boot }
      if (!isWoken) await once(waker, 'wake', { signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    unsubscribe()
  }
}
