import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { edgeAddress, edgePorts, makeBootFiles, portArguments, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

interface Finding {
  check: string
  level: 'ok' | 'warning' | 'problem'
  text: string
  remedy: string
}

const missing = namespacesMissing()
const scratch = scratchDirectory()
const files = makeBootFiles(scratch.path, 64)
const running: RunningProcess[] = []
const segments: Segment[] = []

function site(name: string): Segment {
  const segment = new Segment(name)
  segments.push(segment)
  return segment
}

async function dhcpServer(segment: Segment, more: string[]): Promise<void> {
  const { command, args } = segment.dhcpServer(more)
  const server = new RunningProcess(command, args)
  running.push(server)
  await server.waitFor(/DHCP, IP range/)
}

function startOnEdge(segment: Segment, program: string, ...args: string[]): RunningProcess {
  const process = segment.startOnEdge(program, args)
  running.push(process)
  return process
}

/** Runs the doctor at a site's edge; returns its exit code, its findings, and those that are not ok as one text. */
async function doctor(segment: Segment, ...args: string[]) {
  const doctor = startOnEdge(segment, edgeProgram, 'doctor', '--listen', segment.edgeIp, '--json', ...args)
  const exit = await doctor.ended
  const [result] = doctor.jsonLines<{ ok: boolean; findings: Finding[] }>()
  if (!result) throw new Error(doctor.output)
  const { findings } = result
  const bad = findings.filter(({ level }) => level !== 'ok')
  for (const { remedy, text } of bad) expect(remedy, text).not.toBe('')
  return {
    exit,
    ok: result.ok,
    findings,
    wrong: bad.map(({ level, check, text }) => `${level} ${check}: ${text}`),
    remedies: bad.map(({ remedy }) => remedy),
  }
}

// Each run queries its own segment for four seconds.
describe.skipIf(missing)(`bootfarm-edge doctor${missing ? ` (${missing})` : ''}`, { concurrent: true }, () => {
  afterAll(async () => {
    await Promise.all(running.map((process) => process.stop()))
    for (const segment of segments) segment.remove()
    scratch.remove()
  })

  test('finds no problem with an edge beside a plain DHCP server, and starts no boot there', async () => {
    const segment = site('doctorgood')
    await dhcpServer(segment, [])
    const serve = ['--dhcp', 'proxy', ...serveArguments(files)]
    const edge = startOnEdge(
      segment,
      edgeProgram,
      'serve',
      '--listen',
      segment.edgeIp,
      '--silence-limit',
      '1',
      '--json',
      ...serve,
    )
    await edge.waitFor(/serving on/)
    const { exit, ok, findings, wrong } = await doctor(segment, ...serve)
    expect(wrong.filter((line) => line.startsWith('problem'))).toEqual([])
    expect([exit, ok]).toEqual([0, true])
    const texts = findings.map(({ text }) => text)
    expect(texts).toContain('An edge is already running here and has its ports.')
    expect(texts).toContainEqual(
      expect.stringMatching(/^10\.78\.0\.2 leases addresses: it offered 10\.78\.0\.\d+, and no boot file\.$/),
    )
    expect(texts).toContain(`edge0 has ${segment.edgeIp}/24, a link, and an MTU of 1500 bytes.`)
    expect(texts).toContain('BIOS machines get undionly.kpxe of the set default, unless another one is chosen.')
    // The doctor's first queries are four seconds old, and a boot from them would be over after one.
    expect(edge.jsonLines()).toEqual([])
  })

  test('names a server with its own boot file, the program that holds a port, and MTUs that differ', async () => {
    const segment = site('doctorbad')
    await dhcpServer(segment, [
      `--dhcp-boot=pxelinux.0,other,${segment.dhcpIp}`,
      '--dhcp-option-force=26,1300',
      '--dhcp-broadcast',
    ])
    const tftp = startOnEdge(
      segment,
      process.execPath,
      '-e',
      "require('dgram').createSocket('udp4').bind(69, () => console.log('bound'))",
    )
    await tftp.waitFor(/bound/)
    await startOnEdge(segment, 'ip', 'link', 'set', 'edge0', 'mtu', '1400').ended
    const { exit, wrong, remedies } = await doctor(
      segment,
      '--dhcp',
      'proxy',
      '--subnet',
      '10.79.0.0/24',
      '--vdisk',
      path.join(scratch.path, 'nowhere.raw'),
    )
    expect(exit).toBe(1)
    const text = wrong.join('\n')
    expect(text).toContain('problem dhcp: 10.78.0.2 also tells devices what to boot: "pxelinux.0" from 10.78.0.2.')
    expect(text).toContain('problem dhcp: 10.78.0.2 tells devices an MTU of 1300 bytes, but edge0 has 1400.')
    expect(text).toContain(`warning interface: edge0, which has ${segment.edgeIp}, has an MTU of 1400 bytes.`)
    expect(text).toMatch(new RegExp(`problem ports: udp port 69 \\(TFTP\\) is taken by .+ \\(process ${tftp.pid}\\)`))
    expect(text).toMatch(/problem vdisk: \S+nowhere\.raw /)
    expect(text).toContain('warning boot_files: No --boot-files DIR is given')
    expect(text).toMatch(/warning dhcp: Devices of 10\.79\.0\.0\/24 are behind a router .* refused with 403\./)
    expect(remedies.join('\n')).toContain('choose another port with --tftp-port')
    expect(remedies.join('\n')).toContain('Start the edge with --trust-mac-from 10.79.0.0/24')
  })

  test('reports two servers that give addresses, and their overlapping ranges', async () => {
    const segment = site('doctortwo')
    await dhcpServer(segment, [])
    const { exit, wrong } = await doctor(
      segment,
      '--dhcp',
      'server',
      '--dhcp-pool',
      segment.pool,
      '--trust-mac-from',
      segment.subnet,
      ...serveArguments(files),
    )
    expect(exit).toBe(1)
    expect(wrong.join('\n')).toMatch(/problem dhcp: --trust-mac-from 10\.78\.0\.0\/24 covers 10\.78\.0\.0\/24/)
    expect(wrong.join('\n')).toMatch(
      /problem dhcp: 10\.78\.0\.2 leases addresses, too: it offered 10\.78\.0\.\d+, which is in --dhcp-pool\./,
    )
  })

  test('reports a missing DHCP server, an unreachable control plane, the store’s gaps, and packet filters', async () => {
    const segment = site('doctoralone')
    const data = path.join(scratch.path, 'edge')
    mkdirSync(path.join(data, 'store'), { recursive: true })
    writeEnrolledEdge(
      data,
      ['02:bf:00:00:00:01'],
      [{ sizeBytes: 512, diskPath: 'absent/disk', kernelPath: null, initrdPath: null, commandLine: '' }],
    )
    writeFileSync(path.join(data, 'edge.key'), `${'07'.repeat(32)}\n`)
    const rules =
      'add table inet site; add chain inet site arriving { type filter hook input priority 0; policy drop; }; add rule inet site arriving iif lo accept'
    await startOnEdge(segment, 'nft', rules).ended
    const script = "require('net').createServer().listen(6911, '0.0.0.0', () => console.log('bound'))"
    const taken = startOnEdge(segment, process.execPath, '-e', script)
    await taken.waitFor(/bound/)
    const { exit, wrong, remedies } = await doctor(segment, '--dhcp', 'proxy', '--data', data)
    expect(exit).toBe(1)
    const text = wrong.join('\n')
    expect(text).toContain('problem dhcp: No DHCP server on this segment offered an address within 4 s')
    expect(text).toContain('warning firewall: The packet filter drops what no rule accepts (chain site arriving).')
    expect(remedies.join('\n')).toContain('and from other edges of the site UDP and TCP 6911.')
    expect(text).toMatch(new RegExp(`problem ports: tcp port 6911 \\(other edges\\) is taken by .+${taken.pid}\\)`))
    expect(text).toMatch(/problem store: \S+\/store\/absent\/disk /)
    expect(text).toMatch(/problem uplink: \S+ cannot be reached: nothing listens there\./)
  })

  test('reports missing privileges, and an address that the machine does not have', async () => {
    const segment = site('doctorweak')
    const weak = startOnEdge(
      segment,
      'setpriv',
      '--bounding-set',
      '-all',
      '--inh-caps',
      '-all',
      '--reuid',
      '65534',
      '--clear-groups',
      edgeProgram,
      'doctor',
      '--listen',
      segment.edgeIp,
      '--vdisk',
      files.vdisk,
    )
    expect(await weak.ended).toBe(1)
    expect(weak.output).toMatch(/problem +rights +This user may not open port 67 .*\.\n +-> Run as root/)
    expect(weak.output).toMatch(/warning +rights +CAP_NET_RAW is missing/)
    const ports = await edgePorts()
    // Root without capabilities: it may read its files and nothing else.
    const serving = startOnEdge(
      segment,
      'setpriv',
      '--bounding-set',
      '-all',
      '--inh-caps',
      '-all',
      edgeProgram,
      'serve',
      '--listen',
      edgeAddress,
      '--dhcp',
      'off',
      ...portArguments(ports),
      ...serveArguments(files),
    )
    await serving.waitFor(/serving on/)
    expect(serving.output).toMatch(
      /^bootfarm-edge: Cannot listen on lo \(needs root or CAP_NET_RAW\): offers of other DHCP servers are not heard/m,
    )
    const elsewhere = startOnEdge(segment, edgeProgram, 'doctor', '--listen', '192.0.2.7')
    expect(await elsewhere.ended).toBe(1)
    expect(elsewhere.output).toMatch(/problem +interface +192\.0\.2\.7 is not an address of this machine\./)
  })
})
