import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { BootReport } from '@bootfarm/proto/uplink'
import { afterEach, describe, expect, test } from 'vitest'
import { bootWith, guestWith } from '../../test/edge-client.ts'
import { startTestApi } from '../../test/test-api.ts'
import { query } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { openConsole } from './get-boot-console.ts'
import type { BootConsole } from './schema.ts'

const site = useTestSite('operator')

const mac = '02:bf:00:00:00:01'
const startedUnixMs = Date.parse('2026-11-20T11:00:00Z')

afterEach(() => rmSync(logFile(), { recursive: true, force: true }))

const logFile = (address = mac) => path.join(site().api.consolesDirectory, `${address.replaceAll(':', '-')}.log`)
/** @param lines ms since the start of the boot, and the text written then */
const linesOf = (...lines: [number, string][]) =>
  lines.map(([atMs, text]) => `${startedUnixMs + atMs} ${text}\n`).join('')

async function report(changes: Partial<BootReport> = {}): Promise<string> {
  const boot = bootWith({ id: randomUUID(), mac, startedUnixMs, ...changes })
  await site().report(boot)
  return boot.id
}

const read = (bootId: string, after?: number) =>
  site().query<BootConsole>('boot.console', { bootId, ...(after === undefined ? {} : { after }) })
const textsOf = (answer: BootConsole) => answer?.lines.map(({ text }) => text)

describe('boot.console', () => {
  test('shows what the device wrote from its firmware to its next boot, with the time since the boot’s begin', async () => {
    const bootId = await report()
    await report({ startedUnixMs: startedUnixMs + 60_000 })
    const lines = linesOf(
      [-90_000, 'the boot before'],
      [-1500, 'SeaBIOS'],
      [0, 'DHCP'],
      [59_999, 'login:'],
      [60_000, 'next'],
    )
    writeFileSync(logFile(), lines)
    expect(await read(bootId)).toEqual({
      lines: [
        { atMs: -1500, text: 'SeaBIOS' },
        { atMs: 0, text: 'DHCP' },
        { atMs: 59_999, text: 'login:' },
      ],
      next: lines.indexOf(`${startedUnixMs + 60_000}`),
      more: false,
      over: true,
    })
  })

  test('goes on after the boot is ready, until the device begins the next one', async () => {
    const bootId = await report()
    writeFileSync(logFile(), linesOf([5000, 'Reached target multi-user']))
    const first = await read(bootId)
    expect(first?.over).toBe(false)
    appendFileSync(logFile(), linesOf([600_000, 'login:']))
    expect(textsOf(await read(bootId, first?.next))).toEqual(['login:'])
    await report({ startedUnixMs: startedUnixMs + 700_000 })
    expect((await read(bootId))?.over).toBe(true)
  })

  test('starts with the firmware if the device reports its duration', async () => {
    const steps = guestWith().steps.map((step) =>
      step.group === 'firmware' ? { ...step, startUs: -42_000_000 } : step,
    )
    const bootId = await report({ guest: guestWith({ kernelStartUs: 12_000_000, steps }) })
    writeFileSync(logFile(), linesOf([-30_100, 'before'], [-29_900, 'memory test']))
    expect(textsOf(await read(bootId))).toEqual(['memory test'])
  })

  test('continues at its end once the next line is complete', async () => {
    const bootId = await report()
    writeFileSync(logFile(), `${linesOf([1, 'one'])}${startedUnixMs + 2} tw`)
    const first = await read(bootId)
    expect(textsOf(first)).toEqual(['one'])
    expect(textsOf(await read(bootId, first?.next))).toEqual([])
    appendFileSync(logFile(), `o\n${linesOf([3, 'three'])}`)
    expect(textsOf(await read(bootId, first?.next))).toEqual(['two', 'three'])
  })

  test('is read from the start when its file was restarted', async () => {
    const bootId = await report()
    writeFileSync(logFile(), linesOf([1, 'long'.repeat(50)]))
    const next = (await read(bootId))?.next
    writeFileSync(logFile(), linesOf([2, 'new']))
    expect(textsOf(await read(bootId, next))).toEqual(['new'])
  })

  test('finds its position in a long file, and skips text that is no line', async () => {
    const bootId = await report()
    const filler = (fromMs: number) =>
      Array.from({ length: 20_000 }, (_, index): [number, string] => [fromMs + index, `filler ${'x'.repeat(40)}`])
    const before = linesOf(...filler(-200_000))
    const own = `${linesOf([5, 'a'])}no time\n\n${'\xff\xfe'}\n${linesOf([6, 'b'])}`
    writeFileSync(logFile(), before + own)
    expect(textsOf(await read(bootId))).toEqual(['a', 'b'])
  })

  test('is bounded to 2,000 lines, and the rest comes after them', async () => {
    const bootId = await report()
    writeFileSync(logFile(), linesOf(...Array.from({ length: 2001 }, (_, index): [number, string] => [index, 'x'])))
    const first = await read(bootId)
    expect([first?.lines.length, first?.more]).toEqual([2000, true])
    const second = await read(bootId, first?.next)
    expect(second).toMatchObject({ lines: [{ atMs: 2000 }], more: false })
  })

  test('is bounded to 200 KB', async () => {
    const bootId = await report()
    writeFileSync(
      logFile(),
      linesOf(...Array.from({ length: 400 }, (_, index): [number, string] => [index, 'x'.repeat(900)])),
    )
    const first = await read(bootId)
    expect(first?.more).toBe(true)
    expect((first?.lines ?? []).reduce((size, { text }) => size + text.length, 0)).toBeLessThanOrEqual(200 * 1024)
    const second = await read(bootId, first?.next)
    expect((first?.lines.length ?? 0) + (second?.lines.length ?? 0)).toBe(400)
  })

  test('has neither escape sequences nor boot tokens', async () => {
    const bootId = await report()
    writeFileSync(logFile(), linesOf([1, '\x1b[2Jbootfarm.token=secret \x1b[31mred\x1b[0m\r']))
    expect(textsOf(await read(bootId))).toEqual(['bootfarm.token=… red'])
  })

  test('is null for a device whose console nobody keeps, and for demo history', async () => {
    expect(await read(await report())).toBeNull()
    writeFileSync(logFile(), linesOf([1, 'x']))
    expect(await read(await report({ generated: true }))).toBeNull()
  })

  test('is null where the name is a named pipe, at once', async () => {
    const bootId = await report()
    execFileSync('mkfifo', [logFile()])
    expect(await read(bootId)).toBeNull()
  })

  test.each([-1, 1.5, '0', 2 ** 53])('refuses the position %s', async (after) => {
    const answer = await site().tryQuery('boot.console', { bootId: await report(), after })
    expect([answer.status, answer.code]).toEqual([400, 'invalid'])
  })

  test('at a position inside a line does not show a part of it', async () => {
    const bootId = await report()
    writeFileSync(logFile(), linesOf([1, `1 ${startedUnixMs} part`]))
    expect(textsOf(await read(bootId, 16))).toEqual([`1 ${startedUnixMs} part`])
  })
})

test('a name is made of an address alone', async () => {
  const { api } = site()
  const outside = `${path.basename(api.consolesDirectory)}-outside`
  const file = path.join(api.consolesDirectory, '..', `${outside}.log`)
  writeFileSync(file, '1 secret\n')
  for (const name of [`../${outside}`, '..', '', '/etc/passwd', '02:bf:00:00:00:0x', '02:BF:00:00:00:01'])
    expect(await openConsole(api.consolesDirectory, name)).toBeNull()
  rmSync(file)
})

test('the console of a machine is its organization’s alone, whoever else registers its address', async () => {
  const owner = site()
  const { slug } = await owner.api.db.organization.findUniqueOrThrow({
    where: { id: owner.tenant.organizationId },
    select: { slug: true },
  })
  const other = await owner.other('operator')
  const beside = await startTestApi({
    beside: owner.api,
    change: (options) => ({
      ...options,
      consolesDirectory: owner.api.consolesDirectory,
      consolesOrganization: slug,
    }),
  })
  writeFileSync(path.join(owner.api.consolesDirectory, `${mac.replaceAll(':', '-')}.log`), `${startedUnixMs} secret\n`)
  try {
    for (const [who, sees] of [
      [owner, true],
      [other, false],
    ] as const) {
      const boot = bootWith({ id: randomUUID(), mac, startedUnixMs })
      await who.report(boot)
      const input = { bootId: boot.id }
      const shown = await query<BootConsole>(beside, who.cookie, 'boot.console', input)
      expect(shown?.lines.length ?? 0).toBe(sees ? 1 : 0)
    }
  } finally {
    await beside.close()
    rmSync(path.join(owner.api.consolesDirectory, `${mac.replaceAll(':', '-')}.log`))
  }
})
