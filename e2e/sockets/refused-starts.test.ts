import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import {
  edgePorts,
  makeBootFiles,
  portArguments,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { ext4Begin, markedInitramfs, x86Kernel } from '../lib/images/loader-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

async function refused(args: string[]): Promise<string> {
  const edge = new RunningProcess(edgeProgram, args)
  const result = await edge.ended
  expect(result, edge.output).toBe(1)
  const lines = edge.output.trim().split('\n')
  expect(lines, edge.output).toHaveLength(1)
  return lines[0] ?? ''
}

async function serveWith(vdisk: string, more: string[] = []): Promise<string> {
  return refused(['serve', '--vdisk', vdisk, '--listen', '127.0.0.1', ...portArguments(await edgePorts()), ...more])
}

function fileOf(name: string, content: number | Buffer): string {
  const file = path.join(scratch.path, name)
  writeFileSync(file, typeof content === 'number' ? Buffer.alloc(content) : content)
  return file
}

describe('an edge that cannot serve says why in one sentence and ends with 1', () => {
  test('the vDisk file is missing', async () => {
    expect(await serveWith(path.join(scratch.path, 'absent.raw'))).toMatch(
      /absent\.raw.*(not exist|not found|no such)/i,
    )
  })

  test('the vDisk file is empty', async () => {
    expect(await serveWith(fileOf('empty.raw', 0))).toMatch(/empty\.raw.*empty/i)
  })

  test('the vDisk is not a multiple of 512 bytes', async () => {
    expect(await serveWith(fileOf('odd.raw', 1000))).toMatch(/odd\.raw.*512/)
  })

  test('the vDisk is a directory', async () => {
    expect(await serveWith(scratch.path)).toMatch(/neither a (regular )?file nor|not a (regular )?file|directory/i)
  })

  test('the vDisk is smaller than the file system on it', async () => {
    const disk = fileOf('short.raw', ext4Begin(6144))
    expect(await serveWith(disk)).toBe(
      `bootfarm-edge: ${disk} is smaller than its contents: ext4 needs 25165824 bytes, 4096 are there; ` +
        'import the whole image again.',
    )
  })

  test('the kernel is truncated', async () => {
    const kernel = fileOf('cut', x86Kernel('6.1.0-53-amd64', Buffer.alloc(4096)).subarray(0, 4096))
    const refusal = await serveWith(fileOf('good.raw', 512), ['--kernel', kernel])
    expect(refusal).toBe(`bootfarm-edge: ${kernel} is a kernel that was cut short.`)
  })

  test('the kernel is not a kernel', async () => {
    const page = fileOf('page', Buffer.from('<html>404</html>'))
    const refusal = await serveWith(fileOf('good.raw', 512), ['--kernel', page])
    expect(refusal).toBe(`bootfarm-edge: ${page} is not a kernel.`)
  })

  test('the initramfs is for another kernel', async () => {
    const kernel = fileOf('kernel-53', x86Kernel('6.1.0-53-amd64', Buffer.alloc(4096)))
    const initrd = fileOf('initrd-51', markedInitramfs('6.1.0-51-amd64', 'x86_64', Buffer.alloc(4096)))
    const refusal = await serveWith(fileOf('good.raw', 512), ['--kernel', kernel, '--initrd', initrd])
    expect(refusal).toBe(
      `bootfarm-edge: ${initrd} does not belong to ${kernel}: kernel 6.1.0-53-amd64, initramfs for 6.1.0-51-amd64; ` +
        'build it again with bootfarm-edge initramfs build.',
    )
  })

  test('the listen address is not on this machine', async () => {
    const args = ['--vdisk', fileOf('good.raw', 512), '--listen', '192.0.2.7', ...portArguments(await edgePorts())]
    expect(await refused(['serve', ...args])).toMatch(/192\.0\.2\.7/)
  })

  test('a port is in use', async () => {
    const ports = await edgePorts()
    const edge = await startLoopbackEdge(ports, serveArguments(makeBootFiles(scratch.path, 64)))
    const args = ['--vdisk', fileOf('good.raw', 512), '--listen', '127.0.0.1', ...portArguments(ports)]
    expect(await refused(['serve', ...args])).toMatch(/port.*in use/i)
    await edge.stop()
  })

  test('the port of the stream is that of an edge whose shards share it', async () => {
    const shards = ['--stream-shards', '2']
    const ports = await edgePorts()
    const edge = await startLoopbackEdge(ports, [...serveArguments(makeBootFiles(scratch.path, 64)), ...shards])
    const good = fileOf('good.raw', 512)
    for (const options of [shards, ['--stream-shards', '1']])
      expect(await serveWith(good, ['--stream-port', String(ports.stream), ...options])).toMatch(/\(stream\).*in use/)
    await edge.stop()
  })

  test('the number of shards is invalid', async () => {
    for (const number of ['0', '17', '-1', 'many'])
      expect(await serveWith(fileOf('good.raw', 512), ['--stream-shards', number])).toMatch(
        /--stream-shards is a number from 1 to 16/,
      )
  })

  test('the number of devices is invalid', async () => {
    for (const number of ['0', '63', '16385', 'many'])
      expect(await serveWith(fileOf('good.raw', 512), ['--devices-max', number])).toMatch(
        /--devices-max is a number from 64 to 16384/,
      )
  })

  test('another edge uses the data directory', async () => {
    const data = path.join(scratch.path, 'data')
    const files = makeBootFiles(scratch.path, 64)
    const edge = await startLoopbackEdge(await edgePorts(), [...serveArguments(files), '--data', data])
    expect(await serveWith(files.vdisk, ['--data', data])).toMatch(/data directory|another.*edge|already/i)
    await edge.stop()
  })

  test('a DHCP server has no addresses to give, or ones of another network', async () => {
    const good = fileOf('good.raw', 512)
    expect(await serveWith(good, ['--dhcp', 'server'])).toMatch(/--dhcp-pool/)
    expect(await serveWith(good, ['--dhcp', 'server', '--dhcp-pool', '10.0.0.1-10.0.0.9'])).toMatch(
      /10\.0\.0\.1-10\.0\.0\.9 of 127\.0\.0\.0\/8/,
    )
    expect(await serveWith(good, ['--subnet', '10.1.0.0/16,server=192.0.2.1'])).toMatch(/192\.0\.2\.1.*--listen/)
  })

  test('a network is trusted that this machine is attached to, or that is none', async () => {
    const good = fileOf('good.raw', 512)
    expect(await serveWith(good, ['--trust-mac-from', '10.9.0.0/16,0.0.0.0/0'])).toMatch(
      /--trust-mac-from 0\.0\.0\.0\/0 covers .* attached to .*Name only networks behind routers/,
    )
    expect(await serveWith(good, ['--trust-mac-from', '10.9.0.1/16'])).toMatch(/needs networks .*not '10\.9\.0\.1\/16'/)
  })

  test('a network is described wrongly, or twice', async () => {
    const good = fileOf('good.raw', 512)
    expect(await serveWith(good, ['--subnet', '10.1.0.0/16,pool=10.1.0.1'])).toMatch(
      /--subnet 10\.1\.0\.0\/16: pool '10\.1\.0\.1' is not FIRST-LAST/,
    )
    const twice = ['--subnet', '127.0.0.0/8', '--subnet', '127.0.0.0/16']
    expect(await serveWith(good, twice)).toMatch(/two descriptions/)
    const config = fileOf('dhcp.json', Buffer.from('{"subnets": [\n  {"subnet": "10.1.0.0/16", "mtu": 9000,}\n]}'))
    expect(await serveWith(good, ['--dhcp-config', config])).toMatch(/dhcp\.json, line 2, column \d+/)
    const wrong = fileOf('dhcp.json', Buffer.from('{"subnets": [{"subnet": "10.1.0.0/16", "mtu": 9}]}'))
    expect(await serveWith(good, ['--dhcp-config', wrong])).toMatch(/subnets\[0\]\.mtu.*68 to 65535/)
  })

  test('an option is unknown', async () => {
    expect(await refused(['serve', '--vdsk', 'x'])).toMatch(/--vdsk/)
  })
})
