#!/bin/sh
# Called by init.sh with the mounted root and the boot NIC before the system's own init starts: what a system that may have been
# installed on a disk of its own has to leave alone on a streamed one. It writes only to /run and to the overlay in RAM, so the
# image stays as it is and goes on starting from a disk of its own. With a third word the root keeps what is written to it:
# files are then laid over its own for this boot.
root=$1
boot_nic=$2
root_keeps=$3

# replace FILE WITH: a file of the root, which is there.
replace() {
  if [ -n "$root_keeps" ]; then mount -o bind "$2" "$1"; else cp "$2" "$1"; fi
}
mac=$(cat "/sys/class/net/$boot_nic/address")

# The system's network manager must not touch the card its disk comes through: it would take the address away, or give the
# card another name. 10-bootfarm comes before what netplan makes, 10-netplan-*.
mkdir -p /run/systemd/network /run/NetworkManager/conf.d
printf '[Match]\nMACAddress=%s\n\n[Link]\nUnmanaged=yes\n' "$mac" >/run/systemd/network/10-bootfarm.network
printf '[Match]\nMACAddress=%s\n\n[Link]\nNamePolicy=\nName=%s\n' "$mac" "$boot_nic" >/run/systemd/network/10-bootfarm.link
printf '[keyfile]\nunmanaged-devices=mac:%s\n' "$mac" >/run/NetworkManager/conf.d/10-bootfarm.conf
# ifupdown: what waits for udev to find cards, what brings them up, and what does when udev sees one.
for unit in ifupdown-pre networking; do
  mkdir -p "/run/systemd/system/$unit.service.d"
  printf '[Service]\nEnvironment=EXCLUDE_INTERFACES=%s\n' "$boot_nic" >"/run/systemd/system/$unit.service.d/10-bootfarm.conf"
done
ln -sf /dev/null "/run/systemd/system/ifup@$boot_nic.service"
# dhcpcd asks for an address on every card that it is not told to leave; it must not drop the one that is there. Before the file's
# first `interface` it is about all of them, beside what the file says itself.
if [ -f "$root/etc/dhcpcd.conf" ]; then
  mkdir -p /run/bootfarm
  { printf 'denyinterfaces %s\n' "$boot_nic" && cat "$root/etc/dhcpcd.conf"; } >/run/bootfarm/dhcpcd.conf &&
    replace "$root/etc/dhcpcd.conf" /run/bootfarm/dhcpcd.conf
fi
# cloud-init renames cards and writes the configuration of the others.
if [ -d "$root/etc/cloud/cloud.cfg.d" ] && [ ! -e "$root/etc/cloud/cloud.cfg.d/99-bootfarm.cfg" ]; then
  printf 'network: {config: disabled}\n' >"$root/etc/cloud/cloud.cfg.d/99-bootfarm.cfg"
fi

# The root is mounted already, and its options are those of its disk; a read-only disk has no swap and nothing to check. Other
# partitions are mounted when something looks into them: they may have stayed in the machine that the image was taken from.
if [ -f "$root/etc/fstab" ]; then
  awk '
    /^[ \t]*(#|$)/ { print; next }
    $2 == "/" || $3 == "swap" { print "# not on a streamed disk: " $0; next }
    $1 ~ /^((PART)?(UUID|LABEL)|ID)=|^\/dev\// {
      print $1, $2, $3, ($4 == "" ? "defaults" : $4) ",nofail,x-systemd.automount,x-systemd.device-timeout=10s", 0, 0
      next
    }
    { print }' "$root/etc/fstab" >/run/bootfarm/fstab &&
    replace "$root/etc/fstab" /run/bootfarm/fstab
fi

# A journal on the root disk would take up to a tenth of the write cache, and is gone at power-off all the same.
mkdir -p /run/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\n' >/run/systemd/journald.conf.d/10-bootfarm.conf

# A machine that sleeps does not answer its edge, whose other machines and people would take it for dead; what it wakes up to
# depends on a network card that was without power. Nothing puts it to sleep, not even a desktop that nobody uses.
for unit in sleep suspend hibernate hybrid-sleep suspend-then-hibernate; do
  ln -sf /dev/null "/run/systemd/system/$unit.target"
done
