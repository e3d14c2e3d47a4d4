//! The help of `bootfarm-edge serve`, which has the most options.

pub const text =
    \\Run the edge. With --vdisk it works without a control plane and every device
    \\boots one disk; with --data it serves what the control plane decides.
    \\
    \\Usage: bootfarm-edge serve --vdisk FILE --listen IP [OPTIONS]
    \\       bootfarm-edge serve --data DIR --listen IP [OPTIONS]
    \\
    \\Example:
    \\  bootfarm-edge serve --vdisk disk.raw --listen 10.0.0.5
    \\
    \\Disk (without a control plane):
    \\  --vdisk FILE     raw disk image or block device; it is never written
    \\  --version ID     with --store, instead of --vdisk: a version of the store,
    \\                   with its own kernel
    \\  --kernel FILE    kernel to load; without it, iPXE boots the disk (sanboot)
    \\  --initrd FILE    initramfs for that kernel
    \\  --cmdline TEXT   command line for that kernel; the edge adds its address and
    \\                   the boot token
    \\
    \\Network:
    \\  --listen IP      address of this machine that devices reach; repeat it for
    \\                   each network that the machine is in
    \\  --dhcp MODE      proxy (default): answer beside the network's DHCP server
    \\                   server: lease addresses, from --dhcp-pool or from --subnet
    \\                   off: the network's server names next-server and boot file, or
    \\                   the URL http://IP:PORT/boot.ipxe
    \\  --dhcp-pool A-B  first and last address to lease, at most 16384 addresses
    \\  --subnet NET[,KEY=VALUE]...
    \\                   settings of one network; may be repeated, for example
    \\                   10.1.0.0/16,dhcp=server,pool=10.1.2.10-10.1.2.250
    \\                   A network without an address of --listen is behind relay
    \\                   agents. Keys: dhcp, pool, router, dns, ntp, domain, mtu,
    \\                   lease, lease-min, lease-max, renew, rebind, relay, server,
    \\                   authoritative, identify, reserve. See
    \\                   docs/guides/firmware-and-dhcp.md
    \\  --dhcp-config FILE       the same as JSON, with named reservations
    \\  --trust-mac-from NET[,NET]...
    \\                   networks behind routers, such as 10.9.0.0/16, whose machines
    \\                   get the boot script of any MAC address that they name. Else
    \\                   only a machine that a lease of this edge or the neighbour
    \\                   table shows to be that device gets it. Attached networks
    \\                   are refused here; 127.0.0.0/8 is for simulated devices
    \\  --router-advertisement   answer IPv6 router solicitations with "no router",
    \\                           where no router was heard. Default: only those of
    \\                           devices in their loader, which wait for it
    \\  --no-router-advertisement   answer none
    \\  --dhcp-port N    default 67      --pxe-port N     default 4011
    \\  --tftp-port N    default 69      --http-port N    default 6980
    \\  --stream-port N  default 6910    --peer-port N    default 6911 (other edges)
    \\                   Ports below 1024 need root or CAP_NET_BIND_SERVICE
    \\  --stream-shards N        threads that serve the stream, 1 to 16; default: one
    \\                           fewer than the processor has cores
    \\  --packed-memory SIZE     memory for answer pieces packed for devices, such as
    \\                           512M; 0: nothing is packed. Default: a sixteenth of
    \\                           the machine's memory, at most 256M
    \\  --devices-max N          devices that the tables have slots for, 64 to 16384;
    \\                           default: as many as fit into an eighth of the memory
    \\  --wol-target IP:PORT     where wake-on-LAN packets go; 255.255.255.255:9
    \\  --metrics [IP:]PORT      serve Prometheus metrics at /metrics; a port alone
    \\                           listens on the loopback address
    \\
    \\Control plane (with --data):
    \\  --insecure-uplink        accept an http:// URL to another machine: anybody on
    \\                           the path reads and changes what is exchanged
    \\  --ca-file FILE           certificates of the authorities to trust, in PEM,
    \\                           instead of the system's
    \\  --proxy URL              http://[USER:PASSWORD@]HOST:PORT; default:
    \\                           HTTPS_PROXY and NO_PROXY of the environment
    \\  --import-from LIST       from where imports fetch images by URL: public (the
    \\                           default), none, networks, addresses, and names, with
    \\                           a leading dot all below; separated by commas
    \\
    \\Boots:
    \\  --boot-files DIR         boot programs: the sets of boot-files import, chosen
    \\                           per device, collection or site. Files directly in
    \\                           DIR are the set `default`: undionly.kpxe for BIOS,
    \\                           snponly.efi or ipxe.efi for 64-bit UEFI,
    \\                           ipxe-arm64.efi for ARM
    \\  --boot-profile on|off    learn what boots read, hand it to devices and read
    \\                           it ahead (default on)
    \\  --clear                  stream disks without encryption: anyone on the
    \\                           network can read them. Boot reports say so
    \\  --silence-limit S        end a boot after S seconds of silence, if that is
    \\                           less than the limit of its phase (60 to 300 s)
    \\  --probation S            with --data: a new program has taken over once
    \\                           it has served for S seconds (default 10); it is left
    \\                           for the former one if it does not reach the control
    \\                           plane within six times that
    \\  --power-hook PATH        with --data: the program that schedules call to
    \\                           switch devices on, beside wake-on-LAN, as PATH
    \\                           power_on MAC DEVICE_ID NAME; no shell, four at a
    \\                           time, 30 s at most; exit code 0 means that the
    \\                           device is on
    \\  --capture DIR            with --vdisk: write the packets of each boot before
    \\                           its stream to DIR/BOOT_ID.pcap. At most 1000 files
    \\                           are kept. Needs CAP_NET_RAW
    \\
    \\Write cache (with --vdisk):
    \\  --write-cache CLASS      where writes go: device_ram (default),
    \\                           device_ram_overflow, device_ram_local_disk, edge,
    \\                           edge_persistent or private
    \\  --write-cache-size SIZE  what one device may write at the edge or on its local
    \\                           disk, such as 8G; default: the size of its disk
    \\  --write-cache-full stop|read_only
    \\                           when it is full: suspend the device's disk (default),
    \\                           or refuse its writes
    \\  --write-cache-of-another-version refuse|discard
    \\                           when a device boots another disk than the one that
    \\                           its persistent write cache belongs to; default refuse
    \\
    \\Files:
    \\  --data DIR         identity, desired state, reports and boots in progress; one
    \\                     edge at a time. Without it, nothing survives a restart
    \\  --store DIR        versions of vDisks; default: DIR/store of --data
    \\  --reserve SIZE     what write caches leave free on the file system of the
    \\                     store; default: 2G or 5 % of it, whichever is more, and a
    \\                     quarter of a small one
    \\  --report-log SIZE  space for reports while the control plane is unreachable;
    \\                     default 512M. A full log loses reports and counts them
    \\
    \\Output:
    \\  --json             print each finished boot as one line of JSON with the
    \\                     fields of its report (packages/proto/UPLINK.md); default:
    \\                     a table
    \\
;
