#!/bin/sh
# First process of a device that boots from a Bootfarm edge: drivers, network, the streamed disk, an overlay in RAM or the
# disk itself where the edge or a disk of the device keeps what is written, and on to the system's own init. Whatever stops it ends in one line
# that says so.
#
# Read from the kernel's command line: bootfarm.edge, bootfarm.boot, bootfarm.token, bootfarm.overflow, bootfarm.link (by the edge's boot script),
# bootfarm.capture=DISK, bootfarm.lost=ACTION, bootfarm.disk=nbdN, bootfarm.root=DEVICE, bootfarm.subvolume=NAME, bootfarm.overlay=SIZE,
# bootfarm.address=IP/PREFIX,GATEWAY, bootfarm.trace=no, BOOTIF=01-MAC, init=PATH,
# panic=SECONDS.
export PATH=/bootfarm/bin:/bin:/sbin
mkdir -p /proc /sys /dev /run /lower /overlay /newroot
mount -t proc proc /proc
# The initramfs that a prepared system makes of itself also starts it from a disk of its own, as before.
if [ -x /init.system ] && ! grep -q bootfarm.edge= /proc/cmdline; then
  umount /proc
  exec /init.system "$@"
fi
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs -o mode=0755,size=20% tmpfs /run
mkdir -p /run/bootfarm

after_failure=30
for word in $(cat /proc/cmdline); do
  case $word in
    bootfarm.root=*) root=${word#*=} ;;
    bootfarm.subvolume=*) subvolume=,subvol=${word#*=} ;;
    bootfarm.overlay=*) overlay_size=${word#*=} ;;
    bootfarm.overflow=*) overflow=${word#*=} ;;
    bootfarm.capture=*) capture=${word#*=} ;;
    bootfarm.trace=no) is_traced=no ;;
    bootfarm.address=*) fixed_address=${word#*=} ;;
    bootfarm.link=*) link=${word#*=} ;;
    BOOTIF=*) boot_mac=$(echo "${word#BOOTIF=??-}" | tr 'A-F-' 'a-f:') ;;
    init=*) system_init=${word#*=} ;;
    panic=-*) after_failure=1 ;;
    panic=*) after_failure=${word#*=} ;;
  esac
done

say() { echo "bootfarm: $*" >/dev/console; }

# The page of this boot, where people look for what stopped it. Anything but a plain address is not shown.
case $link in
  *[!A-Za-z0-9.:/_~-]*) link= ;;
  http://?* | https://?*) [ ${#link} -le 160 ] || link= ;;
  *) link= ;;
esac
say_link() { [ -z "$link" ] || say "this boot: $link"; }
say_link

# Ends a stage of this start: seconds since the kernel's, kept for the report of this boot.
step() {
  read -r uptime rest </proc/uptime
  echo "$1 $uptime" >>/run/bootfarm/steps
}

step kernel

start_again() {
  say_link
  say "starting again in $after_failure s"
  sleep "$after_failure"
  reboot -f
}

# tell_edge CODE SENTENCE: by the stream or by HTTP, for which the network is brought up if it is not and can be.
tell_edge() {
  if [ -z "$is_attached$boot_nic" ]; then
    # Not a second time.
    [ -z "$network_deadline" ] || return
    [ -n "$nics" ] || nics=$(ethernet_nics)
    [ -n "$nics" ] || return
    cards_up
    network_up 20 || return
  fi
  bootfarm-target failed "$1" "$2"
}

# fail CODE SENTENCE: the code, at most 12 characters, and the first 64 of the sentence go to the edge if it can be reached.
fail() {
  say "$2"
  tell_edge "$1" "$2"
  start_again
}

load_drivers() {
  # shellcheck disable=SC2046 # each line is one word
  modprobe -a $(find /sys/devices -name modalias -exec cat {} + 2>/dev/null | sort -u) 2>/dev/null
}

ethernet_nics() {
  for nic in /sys/class/net/*; do
    [ -e "$nic/device" ] && [ "$(cat "$nic/type")" = 1 ] || continue
    [ -z "$boot_mac" ] || [ "$(cat "$nic/address")" = "$boot_mac" ] || continue
    echo "${nic##*/}"
  done
}

cards_up() {
  ip link set lo up
  for nic in $nics; do ip link set "$nic" up; done
}

# An address that a boot medium says, or the DHCP server's.
take_address() {
  if [ -n "$fixed_address" ]; then
    own_network=${fixed_address%,*}
    interface=$1 ip=${own_network%/*} mask=${own_network#*/} router=${fixed_address#*,} /etc/udhcpc.sh bound
  else
    # It asks for the MTU in addition to what it asks for by itself.
    udhcpc -i "$1" -O mtu -n -t 5 -T 1 -s /etc/udhcpc.sh >/dev/null 2>&1
  fi
}

# A switch port may take half a minute until it forwards anything (spanning tree).
network_limit=90
# network_up SECONDS: gives up then.
network_up() {
  network_deadline=$(($(cut -d. -f1 /proc/uptime) + $1))
  until [ "$(cut -d. -f1 /proc/uptime)" -ge "$network_deadline" ]; do
    for nic in $nics; do
      [ "$(cat "/sys/class/net/$nic/carrier" 2>/dev/null)" = 1 ] || continue
      take_address "$nic" && boot_nic=$nic && return 0
    done
    sleep 0.2
  done
  return 1
}

release=$(uname -r)
if [ ! -d "/lib/modules/$release" ]; then
  fail wrong_kernel "this initramfs was made for kernel $(ls /lib/modules), but $release runs; build one with --kernel-release $release"
fi

# Buses bring new devices, so the drivers are asked for again until there is a card.
drivers_limit=10
for attempt in $(seq "$drivers_limit"); do
  load_drivers
  nics=$(ethernet_nics)
  [ -n "$nics" ] && break
  [ "$attempt" -gt 2 ] && sleep 0.5
done
modprobe -a nbd overlay af_packet 2>/dev/null
[ -b /dev/nbd0 ] || fail no_nbd "this kernel has no nbd driver (CONFIG_BLK_DEV_NBD), so no disk can be streamed"
[ -n "$nics" ] || fail no_nic "no network card was found${boot_mac:+ with address $boot_mac}; its driver is not in this initramfs"
step drivers

cards_up

network_up "$network_limit" || fail no_address "no DHCP server gave $(echo $nics) an address within $network_limit s"
step network

# Controllers were found with the network's cards; their disks come when they have answered, for which the target waits.
[ -z "$overflow$capture" ] || modprobe -a virtio_blk nvme sd_mod 2>/dev/null

mkdir -p /run/bootfarm && cp /bin/bootfarm-target /run/bootfarm/bootfarm-target
# Which programs read the disk, until this machine is ready; where the kernel tells nothing, the boot goes on all the same.
[ "$is_traced" = no ] || /run/bootfarm/bootfarm-target trace
# It says itself why it failed, here and to the edge.
/run/bootfarm/bootfarm-target attach || start_again
is_attached=yes
# The driver's first device, unless it was taken or the command line names another.
read -r disk </run/bootfarm/disk
step disk

# A machine whose disk is captured starts no system: bootfarm.capture=auto, or =NAME of one of several disks.
if [ -n "$capture" ]; then
  [ "$(cat "/sys/class/block/$disk/ro")" = 0 ] || fail no_capture "this machine does not write a version in maintenance"
  problem=$(bootfarm-target capture "$capture" "/dev/$disk") || fail no_capture "$problem"
  step capture
  bootfarm-target ready capture
  say "the disk is captured: the machine switches itself off, and the version can be sealed"
  poweroff -f
fi

is_root() {
  for program in "$system_init" /sbin/init /lib/systemd/systemd /usr/lib/systemd/systemd /bin/init; do
    [ -n "$program" ] || continue
    if [ -x "/lower$program" ] || [ -L "/lower$program" ]; then
      found_init=$program
      return 0
    fi
  done
  return 1
}

mount_root() {
  # A disk that was not unmounted has a journal to replay, which a read-only disk cannot.
  mount -o "ro$subvolume" "$1" /lower 2>/dev/null || mount -o "ro,noload$subvolume" "$1" /lower 2>/dev/null ||
    mount -o "ro,norecovery$subvolume" "$1" /lower 2>/dev/null || return 1
  is_root && return 0
  seen_without_init="$seen_without_init $1"
  umount /lower
  return 1
}

if [ -n "$root" ]; then
  root=${root#/dev/}
  case $root in nbd0 | nbd0p*) root=$disk${root#nbd0} ;; esac
  candidates=/dev/$root
else
  candidates="/dev/$disk $(ls -d "/dev/$disk"p* 2>/dev/null)"
fi
# First with what the kernel has built in: some file systems take a second to load.
for file_system in none ext4 squashfs erofs xfs f2fs btrfs; do
  if [ "$file_system" != none ]; then modprobe -q "$file_system" 2>/dev/null || continue; fi
  seen_without_init=
  for candidate in $candidates; do
    mount_root "$candidate" && mounted=$candidate && break 2
  done
done

# The kernel says it in its log when it is asked to mount a file system that is larger than its disk: ext4 in blocks of both, Btrfs
# in bytes of both, XFS that the last sector is not there.
fail_if_cut() {
  said=$(dmesg | grep -E 'EXT4-fs .*bad geometry: block count|BTRFS .*total_bytes should be at most|XFS .*last sector read failed' | tail -n 1)
  [ -n "$said" ] || return
  device=$disk${said##*"$disk"}
  device=${device%%[):]*}
  size=$(($(cat "/sys/class/block/$device/size") * 512))
  needs='more bytes'
  case $said in
    *'bad geometry'*)
      file_system=ext4
      blocks=${said##*block count }
      blocks_there=${said##*size of device (}
      # Blocks are multiples of 1 KiB; the last one may be a part of one.
      needs="$((size / ${blocks_there%% *} / 1024 * 1024 * ${blocks%% *})) bytes"
      ;;
    *BTRFS*) file_system=btrfs needs="${said##*but found } bytes" ;;
    *) file_system=xfs ;;
  esac
  fail disk_short "$file_system on $device needs $needs, $size are there"
}

if [ -z "$mounted" ]; then
  fail_if_cut
  dmesg | grep -E 'nbd[0-9]|EXT4-fs|XFS|BTRFS|SQUASHFS' | tail -n 3 >/dev/console
  [ -n "$seen_without_init" ] && fail no_init "a file system was mounted from$seen_without_init, but it has no /sbin/init"
  fail no_root "no file system on $(echo $candidates) could be mounted"
fi
step root

# What is read and written comes and goes by the network, which needs memory for packets when there is little.
read -r word memory_kib rest </proc/meminfo
read -r free_kib </proc/sys/vm/min_free_kbytes
wanted_kib=$((memory_kib / 64))
[ "$wanted_kib" -le 65536 ] || wanted_kib=65536
[ "$free_kib" -ge "$wanted_kib" ] || echo "$wanted_kib" >/proc/sys/vm/min_free_kbytes

# A disk that takes writes keeps them at the edge, or beside this machine's memory on a disk of its own.
if [ "$(cat "/sys/class/block/$disk/ro")" = 0 ]; then
  mount -o remount,rw /lower || fail no_overlay "$mounted takes writes, but its file system cannot be mounted for them"
  mount --move /lower /newroot
  mkdir -p /newroot/proc /newroot/sys /newroot/dev /newroot/run
  kept_where='writes kept at the edge'
  [ -z "$overflow" ] || kept_where='writes kept in memory and on a local disk'
  /etc/adapt-root.sh /newroot "$boot_nic" kept
else
  # The choice of a prepared system, as `ram=SIZE`; the kernel's command line counts more.
  if [ -z "$overlay_size" ] && read -r choice 2>/dev/null </lower/etc/bootfarm/write-cache; then overlay_size=${choice#ram=}; fi
  overlay_size=${overlay_size:-50%}
  mount -t tmpfs -o "mode=0755,size=$overlay_size" tmpfs /overlay || fail no_overlay "no RAM for the overlay of $overlay_size"
  mkdir /overlay/upper /overlay/work
  mount -t overlay -o lowerdir=/lower,upperdir=/overlay/upper,workdir=/overlay/work overlay /newroot ||
    fail no_overlay "the overlay in RAM could not be mounted"
  mkdir -p /newroot/proc /newroot/sys /newroot/dev /newroot/run
  /etc/adapt-root.sh /newroot "$boot_nic"
  bootfarm-target cache /overlay
  kept_where="overlay in RAM of $overlay_size"
fi
step overlay
say "root disk $mounted, $kept_where, $(cut -d' ' -f1 /proc/uptime) s after the kernel's start"

# A system with systemd reports by itself that it is up, without anything in its image; another one runs the same command.
units=/run/systemd/system
mkdir -p $units/multi-user.target.wants
cat >$units/bootfarm-ready.service <<'UNIT'
[Unit]
Description=Report to the Bootfarm edge that this machine is up
After=multi-user.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/run/bootfarm/bootfarm-target ready systemd
UNIT
# What its units took is known when all of them have started; the unit above is one of them.
cat >$units/bootfarm-timings.service <<'UNIT'
[Unit]
Description=Report to the Bootfarm edge what the start of this machine took
After=multi-user.target bootfarm-ready.service

[Service]
Type=simple
ExecStart=/run/bootfarm/bootfarm-target timings
UNIT
for unit in ready timings; do
  ln -s "../bootfarm-$unit.service" "$units/multi-user.target.wants/bootfarm-$unit.service"
done

# How its reads go from here on is told apart.
bootfarm-target hand-over
step hand-over

for tree in proc sys dev run; do mount --move "/$tree" "/newroot/$tree"; done
exec switch_root /newroot "$found_init"
