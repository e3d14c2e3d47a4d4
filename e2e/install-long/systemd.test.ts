import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureSystemRoot } from '../../scripts/lib/machines/system-root.mjs'
import { relay } from '../../scripts/start/relay.mjs'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { namespacesMissing } from '../lib/lab/segment.ts'
import { hostAddress, SystemdMachine } from '../lib/lab/systemd-machine.ts'

const root = await ensureSystemRoot()
const missing = namespacesMissing(['qemu-system-x86']) ?? ('missing' in root ? root.missing : undefined)
const machineTimeoutMs = 600_000

/** The steps of a person, in order, across a restart of the machine. It waits only for what must happen. */
const steps = (url: string, token: string) => `
say() { echo "STEP $*"; }
pid() { systemctl show -P MainPID bootfarm-edge; }
if [ ! -e /root/restarted ]; then
  { echo token=${token}; curl -fsSL ${url}/install/edge.sh; } | sh -s -- --insecure-uplink
  say INSTALLED $?
  say ACTIVE $(systemctl is-active bootfarm-edge) $(systemctl is-enabled bootfarm-edge)
  grep -E '^(Uid|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/$(pid)/status | tr -s '\\t ' ' ' | tr '\\n' ';' | sed 's/^/STEP STATUS /'
  echo
  say OWNER $(stat -c %U:%a /var/lib/bootfarm-edge)
  say WRITES $(nsenter -t $(pid) -m touch /usr/local/written 2>&1 | grep -c 'Read-only')
  say SECURITY $(systemd-analyze security --no-pager bootfarm-edge | tail -1)
  say VERIFY $(systemd-analyze verify /etc/systemd/system/bootfarm-edge.service 2>&1 | grep -c bootfarm)
  touch /root/restarted
  sync
  systemctl --no-block reboot
  exit
fi
until systemctl -q is-active bootfarm-edge; do sleep 1; done
say AGAIN $(systemctl is-active bootfarm-edge)
before=$(pid)
kill -STOP $before
until [ "$(systemctl show -P NRestarts bootfarm-edge)" -gt 0 ] && systemctl -q is-active bootfarm-edge; do sleep 1; done
say WATCHDOG $(journalctl -u bootfarm-edge -o cat | grep -c 'Watchdog timeout') $([ "$(pid)" != "$before" ] && echo another)
curl -fsSL ${url}/install/edge.sh | sh -s -- --uninstall
say GONE $?
say TRACES $(ls -d /usr/local/bin/bootfarm-edge* /etc/bootfarm-edge* /var/lib/bootfarm-edge* /etc/systemd/system/*bootfarm-edge* /etc/systemd/system/*/*bootfarm-edge* 2>/dev/null | wc -l) $(id bootfarm-edge >/dev/null 2>&1 || echo nobody) $(systemctl list-units --all --no-legend 'bootfarm-edge*' | wc -l)
say DONE
systemctl --no-block poweroff
`

describe.skipIf(missing)(`a server with systemd ${missing ?? ''}`, () => {
  let machine: SystemdMachine
  let tenant: Tenant
  let api: ApiClient
  let door: Awaited<ReturnType<typeof relay>>
  /** The tenant's first edge belongs to no machine. */
  let earlier: string[]
  const edges = async () =>
    (
      await api.query<{ items: { id: string; online: boolean }[] }>('edge.list', {
        siteId: tenant.rows.siteId,
      })
    ).items

  beforeAll(async () => {
    const webUrl = required('BOOTFARM_WEB_URL')
    const port = Number(new URL(required('EDGE_URL')).port)
    door = await relay({ port, host: '127.0.0.1' }, { port: Number(new URL(webUrl).port), host: '127.0.0.1' })
    tenant = await Tenant.create('admin')
    api = await ApiClient.signIn(webUrl, tenant.person.email, tenant.person.password)
    earlier = (await edges()).map(({ id }) => id)
    const { token } = await api.mutate<{ token: string }>('edge.createJoinToken', {
      siteId: tenant.rows.siteId,
    })
    machine = new SystemdMachine(
      'missing' in root ? (undefined as never) : root,
      steps(`http://${hostAddress}:${port}`, token),
    )
  })
  afterAll(async () => {
    await machine?.remove()
    door?.close()
  })
  const step = async (name: string) => (await machine.console.waitFor(new RegExp(`STEP ${name} (.*?)\\r?\\n`)))[1] ?? ''

  test(
    'becomes an edge with one command, sandboxed, and is one again after a restart',
    async () => {
      // 2: the doctor finds that nothing can boot yet.
      expect(await step('INSTALLED'), machine.console.output).toMatch(/^[02]$/)
      expect(await step('ACTIVE')).toBe('active enabled')
      const status = await step('STATUS')
      expect(status).not.toMatch(/Uid: 0/)
      for (const set of ['Eff', 'Bnd', 'Amb']) expect(status).toMatch(new RegExp(`Cap${set}: 0*2400;`))
      expect(status).toMatch(/NoNewPrivs: 1;.*Seccomp: 2;/)
      expect(await step('OWNER')).toBe('bootfarm-edge:700')
      expect(await step('WRITES')).toBe('1')
      expect(await step('VERIFY')).toBe('0')
      const score = Number((await step('SECURITY')).match(/([\d.]+) /)?.[1])
      expect(score).toBeLessThan(2.5)
      expect(await step('AGAIN')).toBe('active')
      const joined = (await edges()).filter(({ id }) => !earlier.includes(id))
      expect(joined).toMatchObject([{ online: true }])
    },
    machineTimeoutMs,
  )

  test(
    'restarts an edge whose main loop hangs, and removes it without a trace',
    async () => {
      expect(await step('WATCHDOG')).toMatch(/^[1-9]\d* another$/)
      expect(await step('GONE')).toBe('0')
      expect(await step('TRACES')).toBe('0 nobody 0')
      await machine.console.ended
    },
    machineTimeoutMs,
  )
})
