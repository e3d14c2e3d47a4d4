import path from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { edgeAddress, edgePorts, makeBootFiles, serveArguments, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { SlowFiles, slowFilesMissing } from '../lib/edge/slow-files.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const missing = slowFilesMissing()
const title = missing ? ` (${missing})` : ''
const scratch = scratchDirectory()
const running: RunningProcess[] = []
const devices: StreamDevice[] = []
afterEach(async () => {
  for (const device of devices.splice(0)) device.close()
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const files = makeBootFiles(scratch.path, 256)
const ports = await edgePorts()
const url = `http://${edgeAddress}:${ports.http}`
const delayMs = 200

async function start(writeCache: string): Promise<RunningProcess> {
  const data = path.join(scratch.path, writeCache)
  const edge = await startLoopbackEdge(ports, [...serveArguments(files), '--data', data, '--write-cache', writeCache])
  running.push(edge)
  return edge
}

async function boot(number: number): Promise<StreamDevice> {
  const device = await StreamDevice.boot(url, `02:bf:00:00:00:0${number}`)
  devices.push(device)
  return device
}

/** Counts how often this was answered, one question after the other, until the work has ended. */
async function answersDuring(work: Promise<unknown>, ask: () => Promise<void>): Promise<number> {
  let isOver = false
  const over = work.finally(() => {
    isOver = true
  })
  let answers = 0
  for (; !isOver; answers += 1) await ask()
  await over
  return answers
}

for (const writeCache of ['edge_persistent', 'edge'])
  test.skipIf(missing)(
    `with ${delayMs} ms in every file call, the packet loop makes none of them for a write cache of class ${writeCache}, and answers others meanwhile${title}`,
    async () => {
      const edge = await start(writeCache)
      const runs = await boot(1)
      expect(await runs.hello()).toMatchObject({ type: 'welcome' })
      const others = [await boot(2), await boot(3), await boot(4)]
      const disk = await SlowFiles.of(edge, delayMs, path.join(scratch.path, `${writeCache}.calls`))
      const probe = async () => expect(await runs.probe()).toBe('probe_ack')
      const read = async () => expect(await runs.read(9)).toBeInstanceOf(Buffer)
      const opened = Promise.all(others.map((device) => device.hello()))
      const whileOpened = await answersDuring(opened, probe)
      expect(await opened).toMatchObject(others.map(() => ({ type: 'welcome' })))
      const written = Promise.all(others.map((device, index) => device.write(3, index)))
      const whileWritten = await answersDuring(written, read)
      expect(await written).toEqual(others.map(() => 'done'))
      const { ofFirstThread, count } = await disk.end()
      expect(ofFirstThread).toEqual([])
      // A loop that waited for the calls would have answered once or twice for each of them.
      const each = count / others.length
      expect(each).toBeGreaterThan(4)
      expect(whileOpened + whileWritten).toBeGreaterThan(4 * each)
      for (const [index, device] of others.entries()) expect(await device.read(3)).toEqual(Buffer.alloc(512, index))
      expect(edge.isRunning).toBe(true)
    },
  )
