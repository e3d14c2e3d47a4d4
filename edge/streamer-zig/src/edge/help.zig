//! The text of `bootfarm-edge --help`.

pub const text =
    \\bootfarm-edge boots machines over the network: DHCP, TFTP, HTTP boot and the disk stream of one site.
    \\
    \\  bootfarm-edge serve --vdisk FILE --listen IP [options]   works alone: everything that boots gets FILE
    \\  bootfarm-edge enrol --url URL --token-file F --data DIR  joins this machine to a control plane, once
    \\  bootfarm-edge serve --data DIR --listen IP [options]     serves what the control plane says
    \\  bootfarm-edge doctor --listen IP [options of serve]      looks for what would keep machines from booting: ports,
    \\                                                           rights, other DHCP servers, MTU, files, clock, uplink;
    \\                                                           says what to do; exit code 1 where there is a problem;
    \\                                                           `--only ports` at the end: only whether it could start
    \\  bootfarm-edge initramfs build --kernel-release R --out FILE [options]
    \\                                                           makes what a kernel needs to stream its root disk
    \\  bootfarm-edge image inspect FILE [--json]                says what a raw disk image would boot, or why nothing
    \\  bootfarm-edge image extract FILE --kernel-to F --initrd-to F [options]
    \\                                                           writes its kernel, and an initramfs that streams its root
    \\  bootfarm-edge boot-media build --edge IP --out FILE [options]
    \\                                                           makes a CD or USB stick for a site whose DHCP cannot
    \\                                                           be touched
    \\  bootfarm-edge boot-files import|list|remove --boot-files DIR [options]
    \\                                                           fetches sets of boot programs from packages or a folder
    \\  bootfarm-edge vdisk init|import|export|list|show|diff|seal|merge|verify|gc|profile|delete|caches|drop-cache
    \\      --store DIR [options]
    \\                                                           versions of vDisks in a store of this edge
    \\  bootfarm-edge leases --data DIR [--json]                 prints which addresses the DHCP server gave to whom
    \\  bootfarm-edge rotate-key --data DIR                      asks the edge to make itself a new key
    \\  bootfarm-edge trust-key --data DIR --key KEY             names the signing key of a control plane that was restored
    \\                                                           to before a change of it
    \\  bootfarm-edge verify-release --key K --release F --signature F --program F [--allow-older]
    \\                                                           says whether a program is a release by this key
    \\  bootfarm-edge listen-address                             prints which address --listen should have here
    \\  bootfarm-edge version                                    prints the version
    \\
    \\What boots (without a control plane)
    \\  --vdisk FILE          raw disk image or block device that devices read; it is never written
    \\  --version ID          with --store: a version of the store, with the kernel it was imported with, in place of --vdisk
    \\  --kernel FILE         kernel that the boot loader loads; without it, iPXE boots the disk itself (sanboot)
    \\  --initrd FILE         initramfs for that kernel
    \\  --cmdline TEXT        command line for that kernel; where the edge is and the boot's token are added
    \\
    \\Where
    \\  --listen IP           address of this machine that devices reach; repeated for each network that it is in
    \\  --dhcp MODE           proxy: beside the network's DHCP server, which gives the addresses (default)
    \\                        server: this edge gives the addresses, from --dhcp-pool or the pools of --subnet
    \\                        off: the network's server names next-server IP and a boot file, or the URL
    \\                        http://IP:PORT/boot.ipxe
    \\  --dhcp-pool A-B       first and last address to give, at most 4096
    \\  --subnet NET[,KEY=VALUE]...
    \\                        what holds in one network, such as 10.1.0.0/16,dhcp=server,pool=10.1.2.10-10.1.2.250,
    \\                        router=10.1.0.1; repeated. Without an address of --listen it is behind relay agents. Keys:
    \\                        dhcp, pool, router, dns, ntp, domain, mtu, lease, lease-min, lease-max, renew, rebind,
    \\                        relay, server, authoritative, identify, reserve; docs/firmware-and-dhcp.md tells each
    \\  --dhcp-config FILE    the same as JSON, with reservations that have names
    \\  --router-advertisement
    \\                        answers IPv6 router solicitations with "no router here", for which old iPXE waits
    \\  --dhcp-port N         67      --pxe-port N      4011    --tftp-port N     69
    \\  --http-port N         6980    --stream-port N   6910    --peer-port N     6911 (other edges of the site)
    \\                        ports below 1024 need root or the capability CAP_NET_BIND_SERVICE
    \\  --stream-shards N     threads that serve the stream, each with a socket of its own, 1 to 16; default one less than
    \\                        the processor's cores
    \\  --metrics [IP:]PORT   numbers for Prometheus at /metrics; a PORT alone is of this machine only
    \\  --boot-profile on|off learn what boots read, hand it to devices and read it ahead (default on)
    \\  --clear               disks go to devices in clear text; whoever listens on the network reads them. Boots' reports say so
    \\  --write-cache CLASS   where devices' writes are kept, with --vdisk: device_ram (default), device_ram_overflow,
    \\                        device_ram_local_disk, edge, edge_persistent, private
    \\  --write-cache-size SIZE  bytes that one device may write at the edge or to its own disk, such as 8G; default: as many as its disk has
    \\  --write-cache-full stop|read_only  what becomes of a device whose write cache is full: its disk stands still (default), or takes no more writes
    \\  --write-cache-of-another-version refuse|discard
    \\                        what becomes of a persistent write cache when its device boots another disk (refuse)
    \\  --boot-files DIR      boot programs: sets made by boot-files import, chosen per device, collection or site;
    \\                        files directly in DIR are the set `default`: BIOS devices get undionly.kpxe, 64-bit
    \\                        UEFI ones snponly.efi or ipxe.efi, ARM ones ipxe-arm64.efi, else what is known there
    \\  --wol-target IP:PORT  where wake-on-LAN packets go; 255.255.255.255:9
    \\
    \\What is kept
    \\  --data DIR            identity, desired state, reports and boots in progress; one edge at a time. Without it,
    \\                        nothing is kept
    \\  --store DIR           where vDisk versions of the control plane are; DIR/store of --data
    \\  --report-log SIZE     what reports may take on the disk while the control plane is away, such as 512M (default);
    \\                        a full log loses reports, counts them and boots on
    \\
    \\Joining a control plane
    \\  --url URL             where the control plane is; as for its dashboard
    \\  --token-file FILE     has the join token that the dashboard made; --token T shows it to everybody on the machine
    \\  --rejoin              an identity that is there stays unless the control plane has revoked it
    \\
    \\How long
    \\  --silence-limit S     ends a boot of which nothing was heard for S seconds, where its phase's own limit
    \\                        (60 to 300 s) is longer; for trying things out
    \\
    \\  --power-hook PATH     with --data: the program that schedules switch devices on with, beside wake-on-LAN; run without a
    \\                        shell as PATH power_on MAC DEVICE_ID NAME, four at a time, 30 s at most; exit code 0: it is on
    \\  --capture DIR         with --vdisk: the packets of every boot before its stream, as DIR/BOOT_ID.pcap; at most
    \\                        1000 files, the oldest goes first. Needs CAP_NET_RAW
    \\
    \\What is printed
    \\  --json                each boot that is over as one line of JSON, with the fields of the report
    \\                        (packages/proto/UPLINK.md); otherwise as a table of its phases
    \\
    \\Versions of vDisks (docs/vdisk-store.md); exit code 0: done, 1: not, 3: ended by INT or TERM and can go on, 4: another
    \\process has what it needs
    \\  init                  makes a store: --organization ID whose it is, --beside-files in a directory with other files
    \\  import FILE           makes a version of a raw image, a block device, or standard input (-): --name NAME, --parent ID
    \\                        of an update, --pad for odd sizes; --vdisk ID, --version ID and --number N where the control
    \\                        plane has chosen them
    \\  import --resume ID    goes on with an import that was interrupted; --abandon ID gives it up
    \\  seal                  makes the version --version ID, above --parent ID, of what its device has written
    \\  --kernel, --initrd, --cmdline  of import and seal, in place of what is found on the disk; --parent-boot-files: as the
    \\                        version below; --no-boot-files: it boots by itself, or not at all
    \\  export FILE           writes --version ID to a file, a block device, or standard output (-); --force writes over what
    \\                        is there, --resume goes on with a file
    \\  list, show            what is in the store, --sizes with what each takes; what --version ID is
    \\  diff                  how many bytes differ between --version ID and --from ID
    \\  merge                 makes a new base with the bytes of --version ID, or with --onto ID an update of that one; copies
    \\                        no data
    \\  verify                reads all data, or that of --version ID, and names what is damaged; --rate-mib N a second, --idle
    \\                        at half of the disk's time at most
    \\  gc                    frees what no version needs; --rate-mib N a second, --idle
    \\  caches                what devices have written and the store keeps
    \\  drop-cache            drops the persistent write cache of --device ID, or with --private the images of its own
    \\  profile show|clear    what boots were learned to read, of --version ID or all; clear needs --version ID, or --all
    \\  delete                takes --version ID out, or what was begun of it; gc frees its room
    \\  --again               of import, seal, merge, delete: what was done or begun before counts (--version, --into)
    \\  --json                prints JSON, and progress as lines of JSON
    \\
    \\Making an initramfs, also image extract: kernel R finds its network card, streams its root disk, keeps what it writes in RAM
    \\  --kernel-release R    the release as `uname -r` prints it
    \\  --out FILE            where to write it; for --initrd
    \\  --modules DIR         a root with lib/modules/R in it, or that folder itself; default /
    \\  --add-module NAME     one more driver, with all it needs; may be repeated
    \\  --busybox FILE        a statically linked busybox; default /bin/busybox
    \\  --target FILE         bootfarm-target for the device's processor; default the one beside this program
    \\
    \\Boot programs: iPXE, shim and GRUB, PXELINUX (docs/boot-programs.md); an edge takes them when it starts
    \\  --boot-files DIR      the directory that serve is given by the same option
    \\  --from system         the system's packages (default): sets ipxe, snponly, shim-grub and pxelinux
    \\  --from FOLDER         files of a folder, or packages unpacked there (dpkg-deb -x)
    \\  --set NAME            which set; for files of a folder its name
    \\  --force-arch ARCH     bios, x64_uefi, arm64_uefi or any: takes programs that are not known
    \\  --json                list as JSON
    \\
    \\Making a boot medium: one image for discs and USB sticks, BIOS and 64-bit UEFI (Secure Boot off)
    \\  --edge IP[:PORT]      an edge and its HTTP port, 6980 by default; repeated, edges are asked in this order
    \\  --out FILE            where to write the image; for a stick, copy it to the whole device (dd)
    \\  --address A           dhcp (default), or IP/PREFIX,GATEWAY for a medium of one device without DHCP
    \\  --ipxe DIR            has ipxe.lkrn and ipxe.efi; default where Debian's package ipxe has them
    \\  --syslinux DIR        has isolinux.bin, isohdpfx.bin and ldlinux.c32; default where Debian's packages
    \\                        isolinux and syslinux-common have them
    \\
    \\  --help                this text
    \\
;
