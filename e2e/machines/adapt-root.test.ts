import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { scratchDirectory } from '../lib/lab/programs.ts'

const script = path.resolve(import.meta.dirname, '../../edge/streamer-zig/src/initramfs/adapt-root.sh')
const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const root = path.join(scratch.path, 'root')
const kept = path.join(scratch.path, 'kept')

function write(file: string, content: string) {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
  writeFileSync(path.join(root, file), content)
}

/** Returns what the start of a system on `lo` has written, in a namespace with its own /run. */
function adapt(word: string, shown: string) {
  const steps = [
    'mount -t tmpfs none /run',
    `sh ${script} ${root} lo ${word}`,
    `cat ${shown}`,
    `cp -r /run ${kept}${word}`,
  ]
  return execFileSync('unshare', ['-m', '--map-root-user', '--user', 'sh', '-ec', steps.join('\n')], {
    encoding: 'utf8',
  })
}

test('every network manager that a root may contain leaves the boot network card alone', () => {
  const own = 'hostname\ninterface eth1\n  static ip_address=10.0.0.2/24\n'
  write('etc/dhcpcd.conf', own)
  mkdirSync(path.join(root, 'etc/cloud/cloud.cfg.d'), { recursive: true })
  const dhcpcd = path.join(root, 'etc/dhcpcd.conf')

  expect(adapt('keeps', dhcpcd), 'a root that keeps what is written has it laid over').toBe(`denyinterfaces lo\n${own}`)
  expect(readFileSync(dhcpcd, 'utf8'), 'its own file stays as it is').toBe(own)
  expect(adapt('', dhcpcd)).toBe(`denyinterfaces lo\n${own}`)

  const file = (name: string) => readFileSync(path.join(kept, name), 'utf8')
  const mac = '00:00:00:00:00:00'
  expect(file('systemd/network/10-bootfarm.network')).toContain(`MACAddress=${mac}\n\n[Link]\nUnmanaged=yes`)
  expect(file('NetworkManager/conf.d/10-bootfarm.conf')).toContain(`unmanaged-devices=mac:${mac}`)
  for (const unit of ['ifupdown-pre', 'networking'])
    expect(file(`systemd/system/${unit}.service.d/10-bootfarm.conf`)).toContain('EXCLUDE_INTERFACES=lo')
  expect(readFileSync(path.join(root, 'etc/cloud/cloud.cfg.d/99-bootfarm.cfg'), 'utf8')).toContain('config: disabled')
})

test('no target that puts a machine to sleep can be started', () => {
  adapt('sleepless', '/dev/null')
  for (const name of ['sleep', 'suspend', 'hibernate', 'hybrid-sleep', 'suspend-then-hibernate'])
    expect(readlinkSync(path.join(`${kept}sleepless`, `systemd/system/${name}.target`))).toBe('/dev/null')
})
