import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureSystemRoot } from '../../scripts/lib/machines/system-root.mjs'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { scratchDirectory, targetProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const buildTimeoutMs = 240_000
const found = machinesMissing() ? undefined : await ensureSystemRoot()
const missing = machinesMissing() ?? (found && 'missing' in found ? found.missing : undefined)
const nobody = 65534

describe.skipIf(missing)(`bootfarm-target prepare${missing ? ` (${missing})` : ''}`, () => {
  const scratch = scratchDirectory()
  const root = path.join(scratch.path, 'root')
  let release = ''

  beforeAll(() => {
    if (!found || 'missing' in found) throw new Error('there is no Debian')
    release = found.release
    execFileSync('cp', ['-a', '--reflink=auto', found.tree, root])
  }, buildTimeoutMs)

  afterAll(() => scratch.remove())

  function prepare(...options: string[]) {
    const { status, stdout, stderr } = spawnSync(targetProgram, ['prepare', '--root', root, ...options], {
      encoding: 'utf8',
    })
    return { status, stdout, stderr }
  }

  /** Lists every path of the root with its type, mode, size and modification time. */
  const listing = () =>
    execFileSync('find', ['.', '-not', '-type', 'd', '-printf', '%P %y %m %s %T@ %l\n'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    })
      .split('\n')
      .sort()
      .join('\n')

  test('shows its changes without making them, makes them once, and undoes them', () => {
    const before = listing()
    const dry = prepare('--dry-run')
    expect(dry.status).toBe(0)
    expect(dry.stdout).toContain('would write /usr/lib/bootfarm/bootfarm-target: ')
    expect(dry.stdout).toContain('would write /etc/systemd/system/apt-daily.timer.d/bootfarm.conf: ')
    expect(dry.stdout).toContain(`would run update-initramfs -c -k ${release}: `)
    expect(listing(), 'a dry run changes nothing').toBe(before)

    const first = prepare('--no-initramfs', '--write-cache', 'ram=30%')
    expect(first.stderr).toBe('')
    const planned = (text: string) => [...text.matchAll(/^ {2}(?:would write|writes) (\S+):/gm)].map(([, file]) => file)
    expect(planned(first.stdout), 'it does what it said it would').toEqual(planned(dry.stdout))
    expect(readFileSync(path.join(root, 'etc/bootfarm/write-cache'), 'utf8')).toBe('ram=30%\n')
    expect(prepare('--no-initramfs').stdout).toMatch(/\nnothing to change\n$/)
    expect(readFileSync(path.join(root, 'etc/bootfarm/write-cache'), 'utf8'), 'the choice stays').toBe('ram=30%\n')

    const undone = prepare('--undo', '--no-initramfs')
    expect(undone.stdout).toMatch(/^taken back: /m)
    expect(listing(), 'nothing of it is left').toBe(before)
    expect(prepare('--undo', '--no-initramfs').stdout).toBe('nothing to change\n')
  })

  test("makes the initramfs together with the root's own, and again only when something in it has changed", () => {
    const image = path.join(root, `boot/initrd.img-${release}`)
    const made = prepare()
    expect(made.status, made.stderr).toBe(0)
    expect(made.stdout).toContain(`runs update-initramfs -c -k ${release}: `)
    const content = execFileSync('chroot', [root, 'lsinitramfs', `/boot/initrd.img-${release}`], {
      encoding: 'utf8',
    })
    for (const file of ['init', 'init.system', 'etc/udhcpc.sh', 'etc/adapt-root.sh', 'bootfarm/bin/udhcpc'])
      expect(content).toMatch(new RegExp(`^${file}$`, 'm'))
    expect(content).toMatch(/bin\/bootfarm-target$/m)
    for (const driver of ['nbd', 'overlay', 'virtio_net']) expect(content).toMatch(new RegExp(`/${driver}\\.ko`))
    const again = prepare()
    expect(again.stdout).toMatch(/\nnothing to change\n$/)
    const cacheOnly = prepare('--write-cache', 'ram=1g')
    expect(cacheOnly.stdout).not.toContain('update-initramfs')
    const mark = `bootfarm-initramfs 1\nrelease ${release}\narchitecture x86_64\n`
    expect(readFileSync(image).subarray(0, 512).toString('latin1'), 'it says what it is for').toContain(mark)
    expect(
      execFileSync('findmnt', ['-rn', '-o', 'TARGET'], { encoding: 'utf8' }),
      'nothing stays mounted',
    ).not.toContain(root)
  })

  test('leaves the system able to start from its own disk, with its own init', async () => {
    if (!found || 'missing' in found) throw new Error('there is no Debian')
    const machine = new RunningProcess('qemu-system-x86_64', [
      '-accel',
      'tcg',
      '-cpu',
      'max',
      '-m',
      '512',
      '-nodefaults',
      '-display',
      'none',
      '-no-reboot',
      '-kernel',
      found.vmlinuz,
      '-initrd',
      found.initrd,
      '-append',
      'console=ttyS0 panic=-1 no_timer_check root=/dev/vda',
      '-drive',
      `file=${found.image},format=raw,if=virtio,snapshot=on`,
      '-serial',
      'stdio',
    ])
    try {
      await machine.waitFor(/Begin: Mounting root file system/)
      await machine.waitFor(/Welcome to .*Debian GNU\/Linux/)
      expect(machine.output).not.toMatch(/bootfarm/)
    } finally {
      await machine.stop()
    }
  })

  test.for([
    {
      what: 'another system',
      file: 'etc/os-release',
      change: (file: string) => writeFileSync(file, 'PRETTY_NAME="Fedora Linux 40"\nID=fedora\n'),
      says: /has Fedora Linux 40; prepare supports Debian, Ubuntu/,
    },
    {
      what: "another processor's root",
      file: 'usr/bin/dpkg',
      change: (file: string) => {
        const bytes = readFileSync(`${file}.kept`)
        bytes.writeUInt16LE(183, 18)
        writeFileSync(file, bytes)
      },
      says: /is a root for arm64, this is the bootfarm-target for x86-64/,
    },
    {
      what: 'a root without initramfs-tools',
      file: 'usr/sbin/update-initramfs',
      says: /no initramfs-tools; install/,
    },
    {
      what: 'a root without busybox',
      file: 'usr/bin/busybox',
      says: /no busybox; install the package busybox-static/,
    },
    { what: 'a root without a kernel', file: 'boot', says: /no kernel: no \/boot\/vmlinuz-R/ },
  ])('refuses $what, in one sentence, and changes nothing', ({ file, change, says }) => {
    const place = path.join(root, file)
    renameSync(place, `${place}.kept`)
    change?.(place)
    const before = listing()
    const refused = prepare()
    expect(refused.status).toBe(1)
    expect(refused.stderr).toMatch(says)
    expect(refused.stderr.trim().split('\n')).toHaveLength(1)
    expect(listing()).toBe(before)
    execFileSync('rm', ['-rf', place])
    renameSync(`${place}.kept`, place)
  })

  test('refuses a kernel without the drivers, and names driver and option', () => {
    const list = path.join(root, 'lib/modules', release, 'modules.dep')
    copyFileSync(list, `${list}.kept`)
    const withoutNbd = readFileSync(list, 'utf8').replace(/^.*\/nbd\.ko.*\n/m, '')
    writeFileSync(list, withoutNbd)
    const refused = prepare()
    renameSync(`${list}.kept`, list)
    expect(refused.stderr).toMatch(/has no nbd \(CONFIG_BLK_DEV_NBD\), and the streamed disk is an nbd device/)
    expect(refused.status).toBe(1)
  })

  test('refuses to run without root, on a read-only or missing root, and with unknown options', () => {
    const program = path.join(scratch.path, 'bootfarm-target')
    copyFileSync(targetProgram, program)
    execFileSync('chmod', ['755', scratch.path, program])
    const as = { uid: nobody, gid: nobody, encoding: 'utf8' } as const
    expect(spawnSync(program, ['prepare', '--root', root], as).stderr).toMatch(/only root can prepare a system/)

    const readOnly = path.join(scratch.path, 'read-only')
    mkdirSync(readOnly)
    const script = 'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2" && exec "$3" prepare --root "$2"'
    const inNamespace = ['-m', 'sh', '-c', script, 'sh', root, readOnly, targetProgram]
    expect(spawnSync('unshare', inNamespace, { encoding: 'utf8' }).stderr).toMatch(/is read-only; mount it/)

    const run = (...words: string[]) => spawnSync(targetProgram, ['prepare', ...words], { encoding: 'utf8' })
    expect(run('--root', '/nowhere').stderr).toMatch(/\/nowhere is not a directory/)
    expect(run('--force')).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/--force: .*no such option/),
    })
    expect(run('--write-cache', 'disk=2g').stderr).toMatch(/disk=2g: --write-cache is ram=SIZE/)
  })
})
