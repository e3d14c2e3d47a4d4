import { copyFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureSystemTree } from '../../scripts/lib/machines/system-root.mjs'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { makeExt } from '../lib/images/image-files.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import { namespacesMissing } from '../lib/lab/segment.ts'
import { ServerRoot, type Tamper } from '../lib/lab/server-root.ts'

interface Edge {
  id: string
  online: boolean
  name: string
  revision: number
}

interface Job {
  state: string
  untrusted: { message: string | null }
}

const release = '6.1.0-1-plain'
/** The smallest system that an initramfs can be made for: its kernel has all drivers built in. */
const plainFiles = {
  [`boot/vmlinuz-${release}`]: x86Kernel(release, Buffer.alloc(30_001, 'kernel')),
  [`lib/modules/${release}/modules.dep`]: '',
  [`lib/modules/${release}/modules.builtin`]:
    'kernel/drivers/block/nbd.ko\nkernel/fs/overlayfs/overlay.ko\nkernel/net/packet/af_packet.ko\n',
  'etc/os-release': 'ID=plain\n',
  'usr/bin/true': '',
}

/** Leaves out what the self-check needs to look for DHCP servers, since it would wait for their answers. */
const hearingNothing = ['setpriv', '--bounding-set', '-net_raw']
const tree = await ensureSystemTree()
const missing = namespacesMissing() ?? ('missing' in tree ? tree.missing : undefined)

describe.skipIf(missing)(`a server becomes an edge with one command ${missing ?? ''}`, () => {
  let server: ServerRoot
  let tenant: Tenant
  let api: ApiClient

  beforeAll(async () => {
    const webUrl = required('BOOTFARM_WEB_URL')
    server = await ServerRoot.create('tree' in tree ? tree.tree : '', webUrl)
    tenant = await Tenant.create('admin')
    api = await ApiClient.signIn(webUrl, tenant.person.email, tenant.person.password)
  })
  afterAll(() => server?.remove())

  const newToken = async () =>
    (await api.mutate<{ token: string }>('edge.createJoinToken', { siteId: tenant.rows.siteId })).token
  const edges = async () => (await api.query<{ items: Edge[] }>('edge.list', { siteId: tenant.rows.siteId })).items
  /** The line that the dashboard shows; the machine has neither sudo nor systemd. */
  const line = (token: string | null, options = '--no-systemd') =>
    `{ ${token ? `echo token=${token}; ` : ''}curl -fsSL ${required('BOOTFARM_WEB_URL')}/install/edge.sh; } | sh -s -- ${options}`
  /** Starts what was installed, waits until the dashboard shows it, and ends it. */
  const seenOnline = async (edgeId: string) => {
    const edge = server.start('/etc/bootfarm-edge/run', [])
    while (!(await edges()).some(({ id, online }) => id === edgeId && online)) {
      if (!edge.isRunning) throw new Error(edge.output)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return edge
  }
  /** Imports an image of a system that nobody has prepared for an edge, with nothing else done on the server. */
  const takesAnImage = async (more: Record<string, Buffer> = {}) => {
    const folder = scratchDirectory()
    const image = makeExt(folder.path, 'plain', { ...plainFiles, ...more }, ['-t', 'ext4'])
    copyFileSync(image, server.pathOf('/var/lib/bootfarm-edge/store/plain.raw'))
    folder.remove()
    const { jobIds } = await api.mutate<{ jobIds: string[] }>('version.import', {
      vdiskId: tenant.rows.vdiskId,
      edgeId: ownEdgeId(),
      sourcePath: 'plain.raw',
    })
    let job: Job
    do {
      await new Promise((resolve) => setTimeout(resolve, 200))
      job = await api.query<Job>('storeJob.get', { jobId: jobIds[0] })
    } while (job.state === 'queued' || job.state === 'running')
    expect(job).toMatchObject({ state: 'done', untrusted: { message: expect.stringMatching(/^wrote .*iB; 0 B were/) } })
  }
  const ownEdgeId = () => (JSON.parse(server.read('/var/lib/bootfarm-edge/identity.json')) as { edgeId: string }).edgeId

  test('it enrols, runs as its own user with two capabilities, is left alone by a second run, and is removed without a trace', async () => {
    const token = await newToken()
    const watch = watchCommandLines(token)
    const installed = await server.type(line(token))
    expect(watch.stop()).toEqual([])
    expect(installed.output).toMatch(/Its signature is right: bootfarm-edge \d/)
    expect(installed.output).toMatch(/enrolled as edge .* of site Site of/)
    expect(installed.output).toMatch(/answers and knows this edge/)
    expect(installed.output).toMatch(/no boot programs yet/)
    expect(server.filesWith(token)).toEqual([])
    expect(server.read('/etc/bootfarm-edge/options')).toContain(`"--listen ${server.address}"`)

    const edge = await seenOnline(ownEdgeId())
    await takesAnImage()
    const status = readFileSync(`/proc/${edge.pid}/status`, 'utf8')
    expect(status).not.toMatch(/^Uid:\s+0/m)
    // CAP_NET_BIND_SERVICE is bit 10, CAP_NET_RAW bit 13.
    for (const set of ['Eff', 'Prm', 'Bnd', 'Amb']) expect(status).toMatch(new RegExp(`^Cap${set}:\\s+0*2400$`, 'm'))
    const again = await server.type(line(null))
    expect(again).toMatchObject({ code: 0, output: expect.stringContaining('already installed') })
    expect(await server.type(line(null, '--uninstall'))).toMatchObject({
      code: 1,
      output: expect.stringContaining(`still runs as process ${edge.pid}`),
    })
    expect(await edge.stop()).toBe(0)
    expect(await server.type(line(null, '--uninstall'))).toMatchObject({ code: 0 })
    expect(traces(server)).toEqual([])
  })

  test('its kept data make it the same edge again without a token; once revoked, it enrols as a new one', async () => {
    await server.type(line(await newToken()), hearingNothing)
    const first = ownEdgeId()
    expect(await server.type(line(null, '--uninstall --keep-data'))).toMatchObject({ code: 0 })
    const kept = await server.type(line(null), hearingNothing)
    expect(kept.output).toMatch(`is already edge ${first}`)
    expect(ownEdgeId()).toBe(first)
    const { name, revision } = await api.query<Edge>('edge.get', { edgeId: first })
    await api.mutate('edge.revoke', { edgeId: first, revision, name })
    const refused = await server.type(line(null, '--no-systemd --listen 10.79.0.1'))
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('no longer accepts edge') })
    const joined = await server.type(line(await newToken()), hearingNothing)
    expect(joined.output).toMatch(/enrolled as edge/)
    expect(ownEdgeId()).not.toBe(first)
    await (await seenOnline(ownEdgeId())).stop()
    await server.type(line(null, '--uninstall'))
  })

  test('a server without busybox gets its package, and takes an image that has one without it', async () => {
    const busybox = readFileSync(server.pathOf('/usr/bin/busybox'))
    renameSync(server.pathOf('/usr/bin/busybox'), server.pathOf('/var/tmp/busybox'))
    // Stands for the packages of a distribution, which cannot be reached from here.
    const manager = '#!/bin/sh\ncase "$*" in *" install busybox-static") mv /var/tmp/busybox /usr/bin/busybox ;; esac\n'
    writeFileSync(server.pathOf('/usr/local/bin/apt-get'), manager, { mode: 0o755 })
    const without = await server.type(line(await newToken(), '--no-systemd --no-packages'), hearingNothing)
    expect(without.output).toContain('Install the package busybox-static.')
    const edge = await seenOnline(ownEdgeId())
    await takesAnImage({ 'usr/bin/busybox': busybox })
    expect(await edge.stop()).toBe(0)
    await server.type(line(null, '--uninstall'))
    const brought = await server.type(line(await newToken()), hearingNothing)
    expect(brought.output).toContain('Installing what imports of images need: apt-get')
    expect(brought.output).not.toContain('Install the package busybox-static.')
    expect(readFileSync(server.pathOf('/usr/bin/busybox')).equals(busybox)).toBe(true)
    await server.type(line(null, '--uninstall'))
  })

  const changed =
    (end: string, change: Tamper): Tamper =>
    (url, body) =>
      url.endsWith(end) ? change(url, body) : body
  const flip: Tamper = (_url, body) => {
    const changedBody = Buffer.from(body)
    changedBody[1000] = (changedBody[1000] ?? 0) ^ 1
    return changedBody
  }

  test.each<[string, RegExp, { tamper?: Tamper; around?: string[]; token?: () => Promise<string> | string }]>([
    ['the program is changed in transit', /not the one that was signed/, { tamper: changed('/x86_64', flip) }],
    [
      'the program is cut off',
      /not the one that was signed/,
      { tamper: changed('/x86_64', (_url, body) => body.subarray(0, 4096)) },
    ],
    [
      'the release is changed on the way',
      /signature of the release is wrong/,
      {
        tamper: changed('/release', (_url, body) => Buffer.from(body.toString().replace('0.1.0', '9.9.9'))),
      },
    ],
    [
      'the signature is of another key',
      /signature of the release is wrong/,
      { tamper: changed('/release.sig', () => Buffer.from(`${Buffer.alloc(64, 3).toString('base64')}\n`)) },
    ],
    [
      'the script is cut off',
      /^$/,
      { tamper: changed('/edge.sh', (_url, body) => body.subarray(0, body.length - 30)) },
    ],
    ['the token is unknown', /join token is wrong/, { token: () => 'bfj_unknown' }],
    ['the token was used', /already used by another edge/, { token: () => tenant.usedToken() }],
    ['the token has expired', /has expired/, { token: () => tenant.expiredToken() }],
    ['the user is not root', /Run this as root/, { around: ['setpriv', '--reuid', '65534', '--clear-groups'] }],
    ['the processor is a different one', /this machine is i686/, { around: ['setarch', 'i686'] }],
  ])('where %s, it is refused and leaves nothing', async (_why, sentence, { tamper, around, token }) => {
    server.renew()
    server.tamper = tamper
    const { code, output } = await server.type(line(token ? await token() : await newToken()), around)
    server.tamper = undefined
    expect(output).toMatch(sentence)
    expect(sentence.source === '^$' ? 1 : code).toBe(1)
    expect(traces(server)).toEqual([])
  })
})

/**
 * Returns files of an edge, or that mention it; those with a dash are copies that the user database makes before each
 * change.
 */
function traces(server: ServerRoot): string[] {
  const own = server.changedFiles().filter((file) => file.includes('bootfarm'))
  return [...own, ...server.filesWith('bootfarm').filter((file) => !file.endsWith('-'))]
}

/** Watches all command lines of this machine, over and over. */
function watchCommandLines(secret: string): { stop(): string[] } {
  const seen = new Set<string>()
  const look = () => {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        if (text.includes(secret)) seen.add(text.replaceAll('\0', ' '))
      } catch {
        // It has ended.
      }
    }
  }
  // A look at many processes takes longer than its interval on a busy machine, and this process also relays what the
  // server and the control plane send each other: it rests longer than it looks.
  let timer: NodeJS.Timeout
  const repeat = () => {
    const begin = performance.now()
    look()
    timer = setTimeout(repeat, Math.max(5, 2 * (performance.now() - begin)))
  }
  repeat()
  return {
    stop() {
      clearTimeout(timer)
      return [...seen]
    },
  }
}
