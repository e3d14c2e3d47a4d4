#!/bin/sh
# Called by busybox's udhcpc with the answer of the DHCP server: gives the boot NIC its address.
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
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
