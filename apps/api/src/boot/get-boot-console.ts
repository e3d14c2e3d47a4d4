import type { GuestReport } from '@bootfarm/proto/uplink'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { openConsole, readConsole } from './console-file.ts'
import { type BootConsole, consoleBytesMax, consoleLinesMax } from './console-schema.ts'
import { readGuest } from './get-boot.ts'
import { findNextBoot } from './newest-boots.ts'
import { type BootRow, findBoot } from './read-boots.ts'

/** Firmware writes before it sends its first packet, which is the boot's begin. */
const firmwareMs = 10_000
const firmwareMsMax = 300_000

interface Options {
  bootId: string
  after: number | undefined
  /** Null where nobody keeps consoles. */
  directory: string | null
}

/** What the device wrote to its serial console from the boot's begin to its next boot. Throws `not_found`. */
export async function getBootConsole(
  context: ServiceContext,
  { bootId, after, directory }: Options,
): Promise<BootConsole> {
  const boot = await findBoot(context, bootId)
  if (!boot) throw new AppError('not_found')
  if (directory === null || boot.generated) return null
  const file = await openConsole(directory, boot.mac)
  if (!file) return null
  try {
    const startedMs = boot.startedAt.getTime()
    const part = await readConsole(file, {
      fromUnixMs: startedMs - leadMs(await readGuest(context, boot)),
      untilUnixMs: (await nextBootAt(context, boot)) ?? Number.POSITIVE_INFINITY,
      after,
      linesMax: consoleLinesMax,
      bytesMax: consoleBytesMax,
    })
    const lines = part.lines.map(({ atUnixMs, text }) => ({ atMs: atUnixMs - startedMs, text }))
    return { ...part, lines }
  } finally {
    await file.close()
  }
}

/** How long before the boot's begin its firmware began, where the device said so; else some seconds. */
function leadMs(guest: GuestReport | null): number {
  const firstStepUs = Math.min(0, ...(guest?.steps ?? []).map((step) => step.startUs))
  const sinceMs = guest ? -(guest.kernelStartUs + firstStepUs) / 1000 : 0
  return Math.min(firmwareMsMax, Math.max(firmwareMs, Math.ceil(sinceMs)))
}

/** When the device began the next boot; the newest ones after this one end with it. */
async function nextBootAt(context: ServiceContext, boot: BootRow): Promise<number | null> {
  const sameDevice = boot.deviceId ? { deviceId: boot.deviceId } : { siteId: boot.siteId, mac: boot.mac }
  const next = await findNextBoot(context, { ...sameDevice, generated: false }, boot.startedAt)
  return next?.getTime() ?? null
}
