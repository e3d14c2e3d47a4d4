import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePortArguments, refusals } from '../lib/assert/refused-starts.ts'
import { scratchDirectory, startScript } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())
const refused = refusals(path.join(scratch.path, 'data'))

const start = (...args: string[]) => [startScript, ...freePortArguments, ...args]

/** Runs as a user other than root. */
function asUser(...args: string[]): string[] {
  const file = path.join(scratch.path, 'user.cjs')
  writeFileSync(file, 'process.getuid = () => 1000')
  return ['--require', file, ...start(...args)]
}

describe('npm start explains in one sentence why it boots no machines', () => {
  test.skipIf(process.arch !== 'x64')('--machine without root', async () => {
    expect(await refused(asUser('--machine'))).toMatch(/--machine needs root, .* sudo/)
  })

  test('--machine with an unknown firmware', async () => {
    expect(await refused(start('--machine', 'coreboot'))).toMatch(/--machine is bios or uefi, not "coreboot"/)
  })

  test('--lan with something that is no address, not one of this machine, or loopback', async () => {
    expect(await refused(start('--lan', 'lan.example'))).toMatch(/needs an IPv4 address/)
    expect(await refused(start('--lan', '203.0.113.77'))).toMatch(/is not an address of this machine; it has /)
    expect(await refused(start('--lan', '127.0.0.1'))).toMatch(/is loopback, which no machine reaches/)
  })

  test('files of a disk without --lan, or without the disk', async () => {
    expect(await refused(start('--disk', 'disk.raw'))).toMatch(/--disk goes with --lan/)
    expect(await refused(start('--lan', '10.0.0.1', '--kernel', 'k'))).toMatch(/--kernel goes with --disk/)
    const args = start('--lan', '10.0.0.1', '--disk', 'd', '--initrd', 'i')
    expect(await refused(args)).toMatch(/--initrd and --cmdline go with --kernel/)
  })
})

const dnsmasqProgram = '/usr/sbin/dnsmasq'
const missing = namespacesMissing()

describe.skipIf(missing)(`npm start --lan at an address of a LAN${missing ? ` (${missing})` : ''}`, () => {
  let segment: Segment
  beforeAll(() => {
    segment = new Segment('refused')
  })
  afterAll(() => segment.remove())

  function refusedOnEdge(nodeArguments: string[]): Promise<string> {
    const { command, args } = segment.onEdge(process.execPath, nodeArguments)
    return refused(args, {}, command)
  }

  /** Starts a program that holds what the statement binds. */
  async function holding(statement: string): Promise<RunningProcess> {
    const bound = "const bound = () => console.log('bound')"
    const { command, args } = segment.onEdge(process.execPath, ['-e', `${bound}; ${statement}`])
    const holder = new RunningProcess(command, args)
    await holder.waitFor(/bound/)
    return holder
  }

  test('without root', async () => {
    expect(await refusedOnEdge(asUser('--lan', segment.edgeIp))).toMatch(/--lan needs root, .* sudo/)
  })

  test('a disk that does not exist', async () => {
    const args = start('--lan', segment.edgeIp, '--disk', '/nowhere/disk.raw')
    expect(await refusedOnEdge(args)).toMatch(/--disk \/nowhere\/disk\.raw does not exist/)
  })

  test('a port that another program holds, and which program', async () => {
    const holder = await holding(`dgram.createSocket('udp4').bind(6910, '${segment.edgeIp}', bound)`)
    const sentence = await refusedOnEdge(start('--lan', segment.edgeIp))
    expect(sentence).toMatch(new RegExp(`UDP port 6910 for the disk stream .*\\(process ${holder.pid}\\) holds`))
    await holder.stop()
  })

  test('a DHCP server on the same machine', async () => {
    const server = await holding("dgram.createSocket('udp4').bind(67, '0.0.0.0', bound)")
    const sentence = await refusedOnEdge(start('--lan', segment.edgeIp))
    expect(sentence).toMatch(/UDP port 67 .* this machine is a DHCP server itself: .* --dhcp off/)
    await server.stop()
  })

  test.skipIf(!existsSync(dnsmasqProgram))(
    'but not because of programs at other addresses and interfaces',
    async () => {
      const elsewhere = await holding("dgram.createSocket('udp4').bind(6910, '127.0.0.1', bound)")
      for (const args of [
        ['link', 'add', 'other0', 'type', 'bridge'],
        ['addr', 'add', '10.79.0.1/24', 'dev', 'other0'],
        ['link', 'set', 'other0', 'up'],
      ]) {
        const ip = segment.onEdge('ip', args)
        execFileSync(ip.command, ip.args)
      }
      const dnsmasq = segment.onEdge('dnsmasq', [
        '--keep-in-foreground',
        '--conf-file=/dev/null',
        '--port=0',
        '--interface=other0',
        '--bind-interfaces',
        '--dhcp-range=10.79.0.50,10.79.0.60',
        '--leasefile-ro',
        '--pid-file=',
        '--log-facility=-',
      ])
      const otherServer = new RunningProcess(dnsmasq.command, dnsmasq.args)
      await otherServer.waitFor(/sockets bound exclusively to interface other0/)
      // The last port that is checked: everything before was accepted.
      const last = await holding(`net.createServer().listen(6980, '${segment.edgeIp}', bound)`)
      const sentence = await refusedOnEdge(start('--lan', segment.edgeIp))
      expect(sentence).toMatch(/TCP port 6980 for HTTP boot is in use/)
      for (const process of [elsewhere, otherServer, last]) await process.stop()
    },
  )
})
