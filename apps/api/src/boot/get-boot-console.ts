import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import path from 'node:path'
import type { GuestReport } from '@bootfarm/proto/uplink'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type ConsoleLine, parseConsoleLine } from '../rules/console-text.ts'
import { findNextBoot } from './boots-by-start.ts'
import { readGuest } from './get-boot.ts'
import { type BootRow, findBoot } from './read-boots.ts'
import { type BootConsole, consoleBytesMax, consoleLinesMax } from './schema.ts'

/** Firmware writes before it sends its first packet, which starts the boot. */
const firmwareMs = 10_000
const firmwareMsMax = 300_000

interface Options {
  bootId: string
  after: number | undefined
  /** Null if no consoles are kept. */
  directory: string | null
  /** The slug of the organization whose machines write them; null: any. */
  organization: string | null
}

/** Returns the device's serial output from the start of the boot to its next boot. Throws `not_found`. */
export async function getBootConsole(
  context: ServiceContext,
  { bootId, after, directory, organization }: Options,
): Promise<BootConsole> {
  const boot = await findBoot(context, bootId)
  if (!boot) throw new AppError('not_found')
  if (directory === null || boot.generated) return null
  // Consoles are found by MAC address, and anybody can register one: they are this organization's alone.
  if (organization !== null && (await slugOf(context)) !== organization) return null
  const file = await openConsole(directory, boot.mac)
  if (!file) return null
  try {
    const startedMs = boot.startedAt.getTime()
    const nextBootMs = await nextBootAt(context, boot)
    const part = await readConsole(file, {
      fromUnixMs: startedMs - leadMs(await readGuest(context, boot)),
      untilUnixMs: nextBootMs ?? Number.POSITIVE_INFINITY,
      after,
      linesMax: consoleLinesMax,
      bytesMax: consoleBytesMax,
    })
    const lines = part.lines.map(({ atUnixMs, text }) => ({ atMs: atUnixMs - startedMs, text }))
    return { ...part, lines, over: nextBootMs !== null }
  } finally {
    await file.close()
  }
}

async function slugOf({ db, actor }: ServiceContext): Promise<string | undefined> {
  const where = { id: actor.organizationId }
  return (await db.organization.findUnique({ where, select: { slug: true } }))?.slug
}

/** How long before the boot the firmware started, if the device reported it; otherwise some seconds. */
function leadMs(guest: GuestReport | null): number {
  const firstStepUs = Math.min(0, ...(guest?.steps ?? []).map((step) => step.startUs))
  const sinceMs = guest ? -(guest.kernelStartUs + firstStepUs) / 1000 : 0
  return Math.min(firmwareMsMax, Math.max(firmwareMs, Math.ceil(sinceMs)))
}

/** When the device started the next boot; the newest boots after this one end with it. */
async function nextBootAt(context: ServiceContext, boot: BootRow): Promise<number | null> {
  const sameDevice = boot.deviceId ? { deviceId: boot.deviceId } : { siteId: boot.siteId, mac: boot.mac }
  const next = await findNextBoot(context, { ...sameDevice, generated: false }, boot.startedAt)
  return next?.getTime() ?? null
}

/** Read at once; a line that does not end within one is passed over. */
const chunkSize = 64 * 1024
const newline = 10

interface ReadOptions {
  /** Lines before are passed over. */
  fromUnixMs: number
  /** The first line of this time or later ends the reading. */
  untilUnixMs: number
  /** A position that an earlier answer gave; from the first line of `fromUnixMs` without it. */
  after: number | undefined
  linesMax: number
  bytesMax: number
}

interface ConsolePart {
  lines: ConsoleLine[]
  /** Where the next line starts. */
  next: number
  more: boolean
}

/** Null if no console is kept for this address. The file's name consists of the address alone. */
export async function openConsole(directory: string, mac: string): Promise<FileHandle | null> {
  if (!/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(mac)) return null
  const file = path.join(directory, `${mac.replaceAll(':', '-')}.log`)
  let handle: FileHandle
  try {
    // Without O_NONBLOCK a named pipe would block the request until somebody writes.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENXIO') return null
    throw error
  }
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  return null
}

/**
 * Returns the lines of a time span, bounded. A file that was started again since `after` is read from its first
 * matching line.
 */
async function readConsole(file: FileHandle, options: ReadOptions): Promise<ConsolePart> {
  const { size } = await file.stat()
  const { after } = options
  const isKnown = after !== undefined && after <= size && (await isLineStart(file, after))
  const from = isKnown ? after : await findTime(file, size, options.fromUnixMs)
  return collect(file, from, options)
}

async function isLineStart(file: FileHandle, position: number): Promise<boolean> {
  if (position === 0) return true
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, position - 1)
  return bytesRead === 1 && buffer[0] === newline
}

/** Lines stand in the order of their time, so the file is halved until one chunk is left, however long it is. */
async function findTime(file: FileHandle, size: number, unixMs: number): Promise<number> {
  let low = 0
  let high = size
  while (high - low > chunkSize) {
    const middle = Math.floor((low + high) / 2)
    const line = await firstLineAfter(file, middle)
    if (line && line.start < high && line.atUnixMs < unixMs) low = line.start
    else high = middle
  }
  return low
}

async function firstLineAfter(file: FileHandle, position: number): Promise<{ start: number; atUnixMs: number } | null> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(chunkSize), 0, chunkSize, position)
  let start = buffer.indexOf(newline) + 1
  while (start > 0 && start < bytesRead) {
    const end = buffer.indexOf(newline, start)
    if (end === -1) return null
    const line = parseConsoleLine(buffer.toString('utf8', start, end))
    if (line) return { start: position + start, atUnixMs: line.atUnixMs }
    start = end + 1
  }
  return null
}

async function collect(file: FileHandle, from: number, options: ReadOptions): Promise<ConsolePart> {
  const part: ConsolePart = { lines: [], next: from, more: false }
  let position = from
  let lineStart = from
  let bytes = 0
  // The first chunk may hold lines from before the span; after it each line counts. Anything longer is no line.
  for (const end = from + options.bytesMax + chunkSize; position < end; ) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(chunkSize), 0, chunkSize, position)
    let start = 0
    for (let stop = buffer.indexOf(newline); stop !== -1; stop = buffer.indexOf(newline, start)) {
      if (stop >= bytesRead) break
      const line = parseConsoleLine(buffer.toString('utf8', start, stop))
      if (line && line.atUnixMs >= options.untilUnixMs) return { ...part, next: position + start }
      if (line && line.atUnixMs >= options.fromUnixMs) {
        bytes += Buffer.byteLength(line.text)
        if (part.lines.length >= options.linesMax || bytes > options.bytesMax)
          return { ...part, next: position + start, more: true }
        part.lines.push(line)
      }
      start = stop + 1
    }
    if (bytesRead < chunkSize) return { ...part, next: position + start }
    if (start > 0) lineStart = position + start
    position += start === 0 ? chunkSize : start
  }
  return { ...part, next: lineStart, more: lineStart > from }
}
