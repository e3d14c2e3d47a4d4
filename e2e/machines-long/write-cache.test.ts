import { utimesSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/**
 * Prints what an earlier boot has left, then writes one file after the other and prints each that is on the disk, while
 * the edge is killed. At the end it reads all of them again, not from the machine's own memory.
 */
const files = 20
const bootLimitMs = 240_000
const script = `
echo "FOUND $(cat /written/* 2>/dev/null | md5sum | cut -d' ' -f1) $(ls /written 2>/dev/null | grep -c .)"
if [ ! -e /written/${files} ]; then
  mkdir -p /written
  sync
  for file in $(seq ${files}); do
    head -c 40000 /blob >/written/$file
    echo "$file" >>/written/$file
    sync
    echo "WRITTEN $file"
  done
  echo 3 >/proc/sys/vm/drop_caches
  echo "SUM $(cat /written/* | md5sum | cut -d' ' -f1)"
fi
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess
const options = ['--write-cache', 'edge_persistent', '--write-cache-size', '64M']
const start = () => site.startEdge('proxy', '', options)

describe.skipIf(missing)(`a machine whose writes are kept on its edge's disk${missing ? ` (${missing})` : ''}`, () => {
  let sum: string | undefined

  beforeAll(async () => {
    site = new MachineSite('writes', { script, blobSize: 4 << 20 })
    edge = await start()
    site.segment.loseEach(1)
  })
  afterAll(async () => {
    await site.remove()
  })

  test('keeps writing when its edge is killed, and loses nothing', { timeout: bootLimitMs }, async () => {
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^WRITTEN 5$/m)
    expect(machine.output).toMatch(/writes kept at the edge/)
    expect(machine.output).toMatch(/^FOUND \w+ 0$/m)
    edge.kill('SIGKILL')
    await edge.ended
    edge = await start()
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(machine.output).toMatch(/serves the disk again/)
    expect(machine.output).not.toMatch(/I\/O error/)
    sum = machine.output.match(/^SUM (\w+)/m)?.[1]
    expect(sum).toBeDefined()
    expect(await machine.ended).toBe(0)
    expect((await finishedBoot(edge)).outcome).toEqual({ kind: 'ready' })
  })

  test('finds its writes at its next start, also at another edge process', {
    timeout: bootLimitMs,
  }, async () => {
    edge.kill('SIGKILL')
    await edge.ended
    edge = await start()
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(machine.output).toMatch(new RegExp(`^FOUND ${sum} ${files}$`, 'm'))
    expect(machine.output).not.toMatch(/^WRITTEN/m)
    expect(await machine.ended).toBe(0)
  })

  test('learns that its write cache belongs to another version once its disk has changed', {
    timeout: bootLimitMs,
  }, async () => {
    await edge.stop()
    // The same file with another time is another version.
    utimesSync(site.disk.image, new Date(), new Date())
    edge = await start()
    const machine = await site.powerOn('bios')
    const report = await finishedBoot(edge, (boot) => boot.outcome?.kind === 'failed')
    expect(report.outcome).toMatchObject({ cause: 'write_cache_of_another_version' })
    await machine.waitFor(/belong to another version of its disk/)
    expect(machine.output).not.toMatch(/^FOUND/m)
    expect(edge.output).toMatch(/its write cache belong to another version of its disk/)
  })
})
