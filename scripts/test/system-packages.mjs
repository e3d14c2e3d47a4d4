import { existsSync, readFileSync } from 'node:fs'
import { UserError } from '../lib/fail.mjs'
import { say } from '../lib/progress.mjs'
import { capture } from '../lib/run.mjs'

/** For virtual machines that boot over the network. */
const machinePackages = [
  { paths: ['/usr/bin/qemu-system-x86_64'], debian: 'qemu-system-x86' },
  { paths: ['/usr/share/OVMF/OVMF_CODE_4M.fd'], debian: 'ovmf' },
  { paths: ['/usr/lib/ipxe/undionly.kpxe'], debian: 'ipxe' },
  { paths: ['/usr/lib/ipxe/qemu/pxe-virtio.rom'], debian: 'ipxe-qemu' },
  { paths: ['/usr/sbin/dnsmasq'], debian: 'dnsmasq-base' },
  { paths: ['/bin/busybox', '/usr/bin/busybox'], debian: 'busybox-static' },
  { paths: ['/sbin/mke2fs', '/usr/sbin/mke2fs'], debian: 'e2fsprogs' },
  { paths: ['/sbin/depmod', '/usr/sbin/depmod'], debian: 'kmod' },
  { paths: ['/usr/bin/tcpdump', '/usr/sbin/tcpdump'], debian: 'tcpdump' },
]

/** What the tests use of the system: a program or file, and the Debian package that has it. */
const needed = [
  { paths: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'], debian: 'iproute2' },
  { paths: ['/usr/sbin/nft', '/sbin/nft'], debian: 'nftables' },
  {
    paths: ['/usr/lib/x86_64-linux-gnu/libnss3.so', '/usr/lib/aarch64-linux-gnu/libnss3.so'],
    debian: 'libnss3',
  },
  ...(process.arch === 'x64' ? machinePackages : []),
]

/** Installs what is missing where that is ours to do (root on Debian), says so before; names it elsewhere. */
export async function ensureSystemPackages() {
  const missing = missingPackages()
  if (missing.length === 0) return { missing }
  const isDebian =
    existsSync('/etc/os-release') && /^ID(_LIKE)?=.*debian/m.test(readFileSync('/etc/os-release', 'utf8'))
  if (process.getuid() !== 0 || !isDebian) {
    say(`Not installed here, and so some tests are skipped: ${missing.join(', ')}`)
    return { missing }
  }
  say(`Installing with apt: ${missing.join(', ')}`)
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  await capture('apt-get', ['update', '-q'], { env })
  const { code, output } = await capture(
    'apt-get',
    ['install', '-yq', '--no-install-recommends', ...missing],
    { env },
  )
  if (code !== 0)
    throw new UserError(`installing ${missing.join(', ')} with apt failed:\n${output.slice(-2000)}`)
  return { missing: missingPackages() }
}

function missingPackages() {
  return needed.filter(({ paths }) => !paths.some((file) => existsSync(file))).map(({ debian }) => debian)
}
