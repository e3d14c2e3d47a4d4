import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { DhcpNetworks, leasesIn } from '../lib/lab/dhcp-networks.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing } from '../lib/lab/segment.ts'

interface Lease {
  ip: string
  state: 'bound' | 'remembered' | 'declined'
  mac: string | null
  clientId: string | null
}

const missing = namespacesMissing(['isc-dhcp-client', 'isc-dhcp-relay', 'busybox-static', 'dnsmasq-base', 'ndisc6'])
const scratch = scratchDirectory()
const data = path.join(scratch.path, 'data')
const leaseFile = path.join(data, 'leases')
const reservedMac = '02:bf:00:00:0e:01'
let networks: DhcpNetworks
let edge: RunningProcess
const running: RunningProcess[] = []

const config = {
  subnets: [
    {
      subnet: '10.91.1.0/24',
      dhcp: 'server',
      pools: ['10.91.1.100-10.91.1.109'],
      routers: ['10.91.1.254'],
      dnsServers: ['10.91.1.3', '10.91.1.4'],
      ntpServers: ['10.91.1.5'],
      domainName: 'tills.example',
      mtu: 1400,
      leaseTimeS: 600,
      renewalTimeS: 2,
      rebindingTimeS: 300,
      reservations: [
        { ip: '10.91.1.20', mac: reservedMac, hostName: 'till-1' },
        { ip: '10.91.1.21', clientId: '00746f6b656e' },
      ],
    },
    { subnet: '10.91.2.0/24', dhcp: 'off' },
    { subnet: '10.91.3.0/24', dhcp: 'server', pools: ['10.91.3.50-10.91.3.50'], routers: ['10.91.3.1'] },
  ],
}

async function startEdge(): Promise<void> {
  edge = networks.start('edge', edgeProgram, [
    'serve',
    ...serveArguments(makeBootFiles(scratch.path, 64)),
    '--data',
    data,
    '--router-advertisement',
    '--listen',
    '10.91.1.1',
    '--listen',
    '10.91.2.1',
    '--dhcp-config',
    path.join(scratch.path, 'dhcp.json'),
  ])
  running.push(edge)
  await edge.waitFor(/serving on /)
}

function leases(): Lease[] {
  const text = execFileSync(edgeProgram, ['leases', '--data', data, '--json'], { encoding: 'utf8' })
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Lease)
}

function leaseOf(ip: string | undefined): Lease | undefined {
  return leases().find((lease) => lease.ip === ip)
}

/** A client that identifies itself by these bytes. */
function named(name: string): string[] {
  return ['-x', `0x3d:00${Buffer.from(name).toString('hex')}`, '-C']
}

describe.skipIf(missing)(`DHCP server mode${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    networks = new DhcpNetworks(scratch.path)
    mkdirSync(data)
    writeFileSync(path.join(scratch.path, 'dhcp.json'), JSON.stringify(config))
    await startEdge()
  })

  afterAll(async () => {
    for (const process of running.reverse()) await process.stop()
    networks?.remove()
    scratch.remove()
  })

  test('busybox gets an address and every parameter that it requests, and no other', async () => {
    const lease = await networks.udhcpc('client', ['-O', 'ntpsrv', '-O', 'mtu', '-O', 'lease'])
    expect(lease).toMatchObject({
      ip: expect.stringMatching(/^10\.91\.1\.10\d$/),
      mask: '24',
      router: '10.91.1.254',
      dns: '10.91.1.3 10.91.1.4',
      domain: 'tills.example',
      ntpsrv: '10.91.1.5',
      mtu: '1400',
      lease: '600',
      serverid: '10.91.1.1',
    })
    expect(leaseOf(lease?.ip)).toMatchObject({ state: 'bound', clientId: null })
    const modest = await networks.udhcpc('client', ['-o', '-O', 'router'])
    expect(modest?.ip).toBe(lease?.ip)
    expect(modest).toMatchObject({ mask: '24', router: '10.91.1.254' })
    expect(modest).not.toHaveProperty('dns')
    expect(modest).not.toHaveProperty('mtu')
  })

  test('dhclient gets an address, renews it and releases it', async () => {
    networks.flush('client')
    const client = networks.dhclient('client', 'first')
    running.push(client)
    await client.waitFor(/^lease BOUND/m)
    const [bound] = leasesIn(client.output, 'BOUND')
    expect(bound).toMatchObject({ new_subnet_mask: '255.255.255.0', new_dhcp_lease_time: '600' })
    expect(bound).toMatchObject({ new_dhcp_renewal_time: '2', new_dhcp_rebinding_time: '300' })
    await client.waitFor(/^lease RENEW/m)
    expect(client.output).toMatch(/DHCPREQUEST for \S+ on net0 to 10\.91\.1\.1 port 67/)
    expect(leasesIn(client.output, 'RENEW')[0]?.new_ip_address).toBe(bound?.new_ip_address)
    await client.stop()
    await networks.dhclient('client', 'first', ['-r']).ended
    expect(leaseOf(bound?.new_ip_address)?.state).toBe('remembered')
    // After a restart it asks for its previous address (INIT-REBOOT) or starts over; it gets the same one.
    const again = networks.dhclient('client', 'first', ['-1'])
    running.push(again)
    await again.waitFor(/^lease (BOUND|REBOOT)/m)
    const lease = [...leasesIn(again.output, 'BOUND'), ...leasesIn(again.output, 'REBOOT')]
    expect(lease[0]?.new_ip_address).toBe(bound?.new_ip_address)
    await again.stop()
  })

  test('an address that a client finds in use is set aside', async () => {
    const first = await networks.udhcpc('client', named('finder'))
    // Somebody has set it by hand meanwhile.
    networks.addAddress('edge', 'net1', `${first?.ip}/32`)
    networks.flush('client')
    const { lease, output } = await networks.udhcpcWithOutput('client', [...named('finder'), '-a1000'])
    expect(output).toMatch(/declin/)
    expect(lease?.ip).toMatch(/^10\.91\.1\.10\d$/)
    expect(lease?.ip).not.toBe(first?.ip)
    expect(leaseOf(first?.ip)).toMatchObject({ state: 'declined', mac: null })
    networks.removeAddress('edge', 'net1', `${first?.ip}/32`)
  })

  test('a client with a fixed address gets the parameters alone', async () => {
    networks.flush('client')
    networks.addAddress('client', 'net0', '10.91.1.77/24')
    const before = leases()
    const answer = await inform('10.91.1.77')
    expect(answer.readUInt8(0)).toBe(2)
    expect(answer.readUInt32BE(16), 'yiaddr').toBe(0)
    expect(optionOf(answer, 53)).toEqual(Buffer.from([5]))
    expect(optionOf(answer, 51)).toBeUndefined()
    expect(optionOf(answer, 3)).toEqual(Buffer.from([10, 91, 1, 254]))
    expect(leases()).toEqual(before)
    networks.flush('client')
  })

  test('reserved addresses go to their MAC address or client identifier', async () => {
    expect((await networks.udhcpc('client', named('token')))?.ip).toBe('10.91.1.21')
    networks.setMac('client', reservedMac)
    const lease = await networks.udhcpc('client', ['-O', 'hostname'])
    expect(lease).toMatchObject({ ip: '10.91.1.20', hostname: 'till-1' })
    networks.setMac('client', '02:bf:00:00:0e:02')
    expect((await networks.udhcpc('client'))?.ip).toMatch(/^10\.91\.1\.10\d$/)
  })

  test('a relay agent gets addresses of its own network for its clients, and none when they run out', async () => {
    const relay = networks.start('relay', 'dnsmasq', [
      '--keep-in-foreground',
      '--conf-file=/dev/null',
      '--port=0',
      '--pid-file=',
      '--log-dhcp',
      '--log-facility=-',
      '--dhcp-relay=10.91.3.1,10.91.2.1',
    ])
    running.push(relay)
    await relay.waitFor(/DHCP relay/)
    const lease = await networks.udhcpc('far', named('far-1'))
    expect(lease).toMatchObject({ ip: '10.91.3.50', router: '10.91.3.1', serverid: '10.91.2.1' })
    networks.flush('far')
    expect(await networks.udhcpc('far', named('far-2'))).toBeUndefined()
    await relay.stop()
  })

  test('a relay agent gets its own option back unchanged', async () => {
    const relay = networks.start('relay', 'dhcrelay', [
      '-4',
      '-d',
      '-a',
      '-pf',
      path.join(scratch.path, 'relay.pid'),
      '-id',
      'net3',
      '-iu',
      'net2',
      '10.91.2.1',
    ])
    running.push(relay)
    await relay.waitFor(/Sending on\s+Socket/)
    // The relay drops answers whose option 82 is not its own.
    const lease = await networks.udhcpc('far', named('far-1'))
    expect(lease).toMatchObject({ ip: '10.91.3.50' })
    expect(relay.output).toMatch(/Forwarded BOOTREPLY/)
    await relay.stop()
  })

  test('devices of each network use the address that the edge has there, for TFTP, HTTP and in scripts', async () => {
    networks.addAddress('client', 'net0', '10.91.1.78/24')
    for (const [namespace, own] of [
      ['client', '10.91.1.1'],
      ['relay', '10.91.2.1'],
    ] as const) {
      const script = networks.start(namespace, 'busybox', ['wget', '-q', '-O', '-', `http://${own}:6980/boot.ipxe`])
      running.push(script)
      await script.ended
      expect(script.output).toContain(`http://${own}:6980/`)
      const file = path.join(scratch.path, `undionly-${namespace}`)
      const tftp = networks.start(namespace, 'busybox', ['tftp', '-g', '-l', file, '-r', 'undionly.kpxe', own])
      running.push(tftp)
      expect(await tftp.ended, tftp.output).toBe(0)
      expect(readFileSync(file)).toEqual(readFileSync(path.join(scratch.path, 'boot-files/undionly.kpxe')))
    }
    networks.flush('client')
  })

  test('a client that looks for an IPv6 router learns that there is none', async () => {
    const seeker = networks.start('relay', 'rdisc6', ['-1', '-r', '5', '-w', '1000', 'net2'])
    running.push(seeker)
    expect(await seeker.ended, seeker.output).toBe(0)
    expect(seeker.output).toMatch(/Router lifetime\s*:\s*0 \(0x00000000\) seconds/)
    expect(seeker.output).toMatch(/Stateful address conf\.\s*:\s*No/)
    expect(seeker.output).not.toMatch(/Prefix/)
  })

  test('a killed edge gives each client the same address again, and none of them another client’s', async () => {
    networks.flush('client')
    const first = await networks.udhcpc('client', named('keeper'))
    edge.kill('SIGKILL')
    await edge.ended
    // A kill in mid-write leaves the beginning of a record.
    appendFileSync(leaseFile, Buffer.from([200, 0, 0, 0, 1, 2, 3]))
    await startEdge()
    networks.flush('client')
    const others = new Set<string | undefined>()
    for (const name of ['other-1', 'other-2']) others.add((await networks.udhcpc('client', named(name)))?.ip)
    expect(others.size).toBe(2)
    expect(others).not.toContain(first?.ip)
    networks.flush('client')
    expect((await networks.udhcpc('client', named('keeper')))?.ip).toBe(first?.ip)
    expect(leaseOf(first?.ip)?.state).toBe('bound')
  })
})

/** Asks as a client that has this address; returns the answer's bytes. */
async function inform(ip: string): Promise<Buffer> {
  const packet = Buffer.alloc(300)
  packet.set([1, 1, 6, 0, 0x12, 0x34, 0x56, 0x78])
  packet.set(
    ip.split('.').map((part) => Number(part)),
    12,
  )
  packet.set([0x02, 0xbf, 0, 0, 0x0e, 7], 28)
  packet.set([0x63, 0x82, 0x53, 0x63, 53, 1, 8, 255], 236)
  const program = `
    const socket = require('node:dgram').createSocket('udp4')
    socket.once('message', (message) => { console.log('answer ' + message.toString('hex')); socket.close() })
    socket.bind(68, () => { socket.setBroadcast(true); socket.send(Buffer.from('${packet.toString('hex')}', 'hex'), 67, '10.91.1.255') })`
  const client = networks.start('client', process.execPath, ['-e', program])
  running.push(client)
  const [, hex = ''] = await client.waitFor(/^answer ([0-9a-f]+)$/m)
  return Buffer.from(hex, 'hex')
}

/** Returns the value of an option in the packet's own option area. */
function optionOf(packet: Buffer, code: number): Buffer | undefined {
  for (let at = 240; at < packet.length && packet[at] !== 255; at += 2 + (packet[at + 1] ?? 0)) {
    if (packet[at] === code) return packet.subarray(at + 2, at + 2 + (packet[at + 1] ?? 0))
  }
  return undefined
}
