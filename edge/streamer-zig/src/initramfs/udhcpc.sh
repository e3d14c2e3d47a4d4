#!/bin/sh
# Called by busybox's udhcpc with the answer of the DHCP server: gives the boot NIC its address.
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
# Option 26 (RFC 2132, 5.1). Every IPv4 host takes 576 bytes; a card that cannot take the size keeps its own.
case $mtu in
  '' | *[!0-9]*) ;;
  *)
    if [ "$mtu" -ge 576 ] && [ "$mtu" != "$(cat "/sys/class/net/$interface/mtu")" ]; then
      ip link set dev "$interface" mtu "$mtu" 2>/dev/null ||
        echo "bootfarm: $interface cannot take packets of $mtu bytes, which the DHCP server says" >/dev/console
    fi
    ;;
esac
ip addr replace "$ip/${mask:-24}" dev "$interface"
for gateway in $router; do
  ip route replace default via "$gateway" dev "$interface"
  break
done
mkdir -p /run/bootfarm
{
  echo "interface=$interface"
  echo "address=$ip/${mask:-24}"
  echo "router=${router%% *}"
  echo "domain=$domain"
  echo "hostname=$hostname"
} >/run/bootfarm/network
for server in $dns; do echo "nameserver $server"; done >/run/bootfarm/resolv.conf
