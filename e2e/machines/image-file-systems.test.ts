import { copyFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { sparseFile } from '../lib/images/file-system-images.ts'
import { extract, type Files, inspect, kernelBytes, makeExt, preparedFiles } from '../lib/images/image-files.ts'
import { runInStorageGuest, storageGuestMissing } from '../lib/images/storage-guest.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const missing = storageGuestMissing()
const title = missing ? ` (${missing})` : ''

const kernel = Buffer.concat([kernelBytes(150_000), Buffer.alloc(400_000, 'pages of text '), kernelBytes(7001, 2)])
const initrd = Buffer.from('initramfs of the image')
const files: Files = {
  ...preparedFiles,
  'boot/vmlinuz-6.1.0-18-amd64': kernel,
  'boot/initrd.img-6.1.0-18-amd64': initrd,
  'etc/kernel/cmdline': 'root=UUID=1 ro quiet\n',
}

/** A disk with these files, from which the guest copies. */
function source(name: string): string {
  return makeExt(scratch.path, name, files, ['-t', 'ext4'])
}

function expectRead(image: string, subject: object = {}): void {
  expect(inspect(image)).toMatchObject({ boot: { kernelRelease: '6.1.0-18-amd64', commandLine: 'quiet' }, ...subject })
  const found = extract(image, scratch.path)
  expect(found.kernel.equals(kernel)).toBe(true)
  expect(found.initrd.equals(initrd)).toBe(true)
}

describe.skipIf(missing)(`disks that a Linux system wrote${title}`, () => {
  test('Btrfs: each compression, subvolumes, a default one, files that were extended, and a log to replay', () => {
    const names = ['zlib', 'lzo', 'zstd', 'default', 'fedora', 'log', 'two']
    const disks = names.map((name) => sparseFile(scratch.path, `btrfs-${name}`, 256))
    const extra = sparseFile(scratch.path, 'btrfs-other', 256)
    runInStorageGuest(scratch.path, {
      disks: [source('btrfs-source'), ...disks, extra],
      drivers: ['btrfs'],
      programs: ['/usr/bin/btrfs', '/usr/sbin/mkfs.btrfs'],
      commands: `
mount -t ext4 -o ro /dev/vda /from
for disk in vdb:zlib vdc:lzo vdd:zstd; do
  mkfs.btrfs -q /dev/\${disk%:*}
  mount -t btrfs -o compress-force=\${disk#*:} /dev/\${disk%:*} /mnt
  cp -a /from/. /mnt/
  umount /mnt
done
mkfs.btrfs -q /dev/vde
mount -t btrfs /dev/vde /mnt
btrfs subvolume create /mnt/@
btrfs subvolume create /mnt/@/loader
echo 'linux /nowhere' >/mnt/@/loader/entries
cp -a /from/. /mnt/@/
btrfs subvolume snapshot /mnt/@ /mnt/@/first
rm -r /mnt/@/first/boot
btrfs subvolume create /mnt/@/first/boot
cp -a /from/boot/. /mnt/@/first/boot/
btrfs subvolume set-default /mnt/@/first
umount /mnt
mkfs.btrfs -q /dev/vdf
mount -t btrfs /dev/vdf /mnt
btrfs subvolume create /mnt/home
btrfs subvolume create /mnt/root
cp -a /from/. /mnt/root/
umount /mnt
mount -o ro,subvol=root /dev/vdf /mnt
test -d /mnt/etc
umount /mnt
mkfs.btrfs -q /dev/vdg
mount -t btrfs -o commit=300 /dev/vdg /mnt
cp -a /from/. /mnt/
sync
echo more >/mnt/etc/more
sync /mnt/etc/more
dd if=/dev/vdg of=/dev/vdi bs=1M
umount /mnt
mkfs.btrfs -q -f -d single -m single /dev/vdh /dev/vdg
`,
    })
    for (const image of disks.slice(0, 4)) expectRead(image, { partitions: [{ fileSystem: 'Btrfs', role: 'root' }] })
    expectRead(disks[4] ?? '', { partitions: [{ fileSystem: 'Btrfs', role: 'root', subvolume: 'root' }] })
    expect(extract(disks[4] ?? '', scratch.path).said).toContain('bootfarm.subvolume=root')
    expect(inspect(extra)).toMatchObject({ boot: null, partitions: [{ refused: 'not_unmounted' }] })
    expect(inspect(disks[6] ?? '')).toMatchObject({ boot: null, partitions: [{ refused: 'several_devices' }] })
  })

  test('XFS: extents in a tree, directories of each kind, removed names, and a log to replay', () => {
    const disks = ['v5', 'v4', 'log'].map((name) => sparseFile(scratch.path, `xfs-${name}`, 320))
    const copy = sparseFile(scratch.path, 'xfs-copy', 320)
    const kernelName = 'vmlinuz-6.1.0-18-amd64'
    // An extent a block, and names that fill a node directory and leave empty blocks behind.
    const fill = `
cp -a /from/. /mnt/
rm /mnt/boot/${kernelName}
i=0
while [ $i -lt 140 ]; do
  dd if=/from/boot/${kernelName} of=/mnt/boot/other bs=4096 count=1 skip=$i seek=$((i * 2)) conv=notrunc 2>/dev/null
  dd if=/from/boot/${kernelName} of=/mnt/boot/${kernelName} bs=4096 count=1 skip=$i seek=$i conv=notrunc 2>/dev/null
  sync
  i=$((i + 1))
done
i=0
while [ $i -lt 3000 ]; do : >/mnt/usr/bin/a-program-with-a-rather-long-name-$i; i=$((i + 1)); done
rm /mnt/usr/bin/a-program-with-a-rather-long-name-1*
ln -s ../boot/$(printf './%.0s' $(seq 200))initrd.img-6.1.0-18-amd64 /mnt/etc/far
sync
`
    runInStorageGuest(scratch.path, {
      disks: [source('xfs-source'), ...disks, copy],
      drivers: ['xfs'],
      programs: ['/usr/sbin/mkfs.xfs'],
      commands: `
mount -t ext4 -o ro /dev/vda /from
mkfs.xfs -q /dev/vdb
mkfs.xfs -q -m crc=0 /dev/vdc
for disk in vdb vdc; do
  mount -t xfs /dev/$disk /mnt
${fill}
  umount /mnt
done
mkfs.xfs -q /dev/vdd
mount -t xfs /dev/vdd /mnt
cp -a /from/. /mnt/
sync
dd if=/dev/vdd of=/dev/vde bs=1M
mount -o remount,ro /mnt
`,
    })
    const read = { partitions: [{ fileSystem: 'XFS', role: 'root' }] }
    for (const image of disks) expectRead(image, read)
    expect(inspect(copy)).toMatchObject({ boot: null, partitions: [{ refused: 'not_unmounted' }] })
  })

  test('LVM: volumes of one and of several segments; others are named', () => {
    const disk = sparseFile(scratch.path, 'lvm', 128)
    const other = sparseFile(scratch.path, 'lvm-other', 64)
    runInStorageGuest(scratch.path, {
      disks: [source('lvm-source'), disk, other],
      programs: ['/usr/sbin/lvm'],
      drivers: ['dm_mod'],
      commands: `
lvm="/usr/sbin/lvm"
export LVM_SUPPRESS_FD_WARNINGS=1
config='devices { use_devicesfile = 0 } activation { udev_sync = 0 udev_rules = 0 monitoring = 0 }'
lvm_do() { $lvm "$@" --config "$config"; }
lvm_do pvcreate /dev/vdb /dev/vdc
lvm_do vgcreate -s 1M fedora /dev/vdb /dev/vdc
lvm_do lvcreate -y -Wn -Zn -L 6M -n first fedora /dev/vdb
lvm_do lvcreate -y -Wn -Zn -L 4M -n between fedora /dev/vdb
lvm_do lvextend -L 16M fedora/first /dev/vdb
lvm_do lvcreate -y -Wn -Zn -i 2 -L 8M -n stripes fedora
lvm_do lvcreate -y -Wn -Zn -L 8M -n elsewhere fedora /dev/vdc
lvm_do vgchange -ay fedora
lvm_do vgmknodes
dd if=/dev/vda of=/dev/fedora/first bs=1M
sync
lvm_do vgchange -an fedora
`,
    })
    expectRead(disk, {
      partitions: [
        { refused: 'lvm', logicalVolume: null },
        { logicalVolume: 'fedora/first', fileSystem: 'ext4', role: 'root' },
        { logicalVolume: 'fedora/between', refused: 'unknown' },
        { logicalVolume: 'fedora/stripes', refused: 'lvm_striped' },
        { logicalVolume: 'fedora/elsewhere', refused: 'lvm_on_another_disk' },
      ],
    })
    expect(extract(disk, scratch.path).said).toContain('warning: the root file system is in LVM')
    copyFileSync(other, disk)
    expect(inspect(disk)).toMatchObject({ boot: null, partitions: [{ refused: 'lvm' }, {}, {}, {}, {}] })
  })
})
