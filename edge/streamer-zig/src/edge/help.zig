//! The help texts: `bootfarm-edge --help` lists the commands on one screen, and
//! `bootfarm-edge COMMAND --help` explains one of them. `main.zig` prints them. Each text stays
//! within 80 columns and has a usage line; each command's has an example.

const std = @import("std");
const serve = @import("help/serve_help.zig").text;

/// What a terminal of the usual size shows at once.
const screen_lines_max = 24;
const screen_columns_max = 80;

pub const Help = struct {
    /// The words of the command line that the text belongs to, such as `vdisk import`.
    command: []const u8,
    text: []const u8,
};

/// Returns the help that a command line asks for, or null if it does not ask. `arguments` are
/// without the program's name. The text is that of the longest command that they begin with.
pub fn find(arguments: []const [:0]const u8) ?[]const u8 {
    for (arguments) |argument| {
        if (isHelp(argument)) break;
    } else return null;
    var found: []const u8 = top;
    var found_words: usize = 0;
    for (&texts) |*help| {
        const words = wordsMatched(help.command, arguments);
        if (words <= found_words) continue;
        found = help.text;
        found_words = words;
    }
    return found;
}

fn isHelp(argument: []const u8) bool {
    return std.mem.eql(u8, argument, "--help") or std.mem.eql(u8, argument, "-h");
}

/// Returns the number of words of `command` if `arguments` begin with all of them, otherwise 0.
pub fn wordsMatched(command: []const u8, arguments: []const [:0]const u8) usize {
    var words = std.mem.splitScalar(u8, command, ' ');
    var count: usize = 0;
    while (words.next()) |word| : (count += 1) {
        if (count == arguments.len or !std.mem.eql(u8, word, arguments[count])) return 0;
    }
    return count;
}

pub const top =
    \\bootfarm-edge boots the machines of one site over the network.
    \\
    \\Usage: bootfarm-edge COMMAND [OPTIONS]
    \\       bootfarm-edge COMMAND --help
    \\
    \\Commands:
    \\  serve           Run the edge: DHCP, TFTP, HTTP boot and the disk stream
    \\  enrol           Join this machine to a control plane
    \\  doctor          Find what would keep machines from booting
    \\  leases          List the addresses that the DHCP server has leased
    \\  vdisk           Manage the versions of vDisks in a store
    \\  image           Inspect a disk image, or extract its kernel
    \\  initramfs       Build an initramfs that streams a root disk
    \\  boot-files      Import, list and remove sets of boot programs
    \\  boot-media      Build a CD or USB image for sites whose DHCP is fixed
    \\  listen-address  Print the address that --listen should have here
    \\  rotate-key      Give the edge a new identity key
    \\  trust-key       Trust the signing key of a restored control plane
    \\  verify-release  Check that a program is a release signed by a key
    \\  version         Print the version
    \\
;

pub const texts = [_]Help{
    .{ .command = "serve", .text = serve },
    .{ .command = "enrol", .text =
    \\Join this machine to a control plane. Run it once.
    \\
    \\Usage: bootfarm-edge enrol --url URL --token-file FILE --data DIR [OPTIONS]
    \\
    \\Example:
    \\  bootfarm-edge enrol --url https://bootfarm.example.org \
    \\      --token-file join.token --data /var/lib/bootfarm-edge
    \\
    \\Options:
    \\  --url URL          address of the control plane, the same as its dashboard
    \\  --token-file FILE  file with the join token that the dashboard created
    \\  --token TOKEN      the token itself; every user of this machine can see it
    \\  --data DIR         where the edge keeps its identity and state
    \\  --rejoin           enrol again if the control plane has revoked the identity
    \\                     in DIR; an identity that is still valid is kept
    \\  --insecure-uplink  accept an http:// URL to another machine: anybody on the
    \\                     path reads the join token and what is exchanged
    \\  --ca-file FILE     certificates of the authorities to trust, in PEM, instead
    \\                     of the system's
    \\  --proxy URL        http://[USER:PASSWORD@]HOST:PORT; default: HTTPS_PROXY and
    \\                     NO_PROXY of the environment
    \\
    \\serve needs --insecure-uplink, --ca-file and --proxy as well.
    \\
    },
    .{ .command = "doctor", .text =
    \\Find what would keep machines from booting, and say what to do about it:
    \\ports, rights, firewall, other DHCP servers, MTU, files, clock and uplink.
    \\The exit code is 1 if there is a problem.
    \\
    \\Usage: bootfarm-edge doctor --listen IP [OPTIONS OF serve] [--only PART]
    \\
    \\Example:
    \\  bootfarm-edge doctor --data /var/lib/bootfarm-edge --listen 10.0.0.5
    \\
    \\Options:
    \\  --only ports    check only whether the edge could start; must come last
    \\  --only restart  name only the devices whose writes end with the edge's
    \\                  process, and fail if there are any; must come last
    \\  --only imports  check only whether the edge can take an image; must come
    \\                  last
    \\  The other options are those of serve; give the ones that the edge runs with.
    \\
    },
    .{ .command = "leases", .text =
    \\List the addresses that the DHCP server has leased, and to which devices.
    \\
    \\Usage: bootfarm-edge leases --data DIR [--json]
    \\
    \\Example:
    \\  bootfarm-edge leases --data /var/lib/bootfarm-edge
    \\
    \\Options:
    \\  --data DIR  where the edge keeps its state
    \\  --json      print JSON
    \\
    },
    .{ .command = "image", .text =
    \\Look at a disk image without mounting it: raw, VHD, VHDX, qcow2 or VMDK.
    \\
    \\Usage: bootfarm-edge image COMMAND FILE [OPTIONS]
    \\
    \\Commands:
    \\  inspect  Show what the image would boot, or why it would not
    \\  extract  Write its kernel, and an initramfs that streams its root
    \\
    \\Example:
    \\  bootfarm-edge image inspect disk.raw
    \\
    },
    .{ .command = "image inspect", .text =
    \\Show what a disk image would boot: kernel, initramfs, command line and
    \\root file system. If it would not boot, say why.
    \\
    \\Usage: bootfarm-edge image inspect FILE [OPTIONS]
    \\
    \\Example:
    \\  bootfarm-edge image inspect disk.raw
    \\
    \\Options:
    \\  --json         print JSON
    \\  --format NAME  raw, vhd, vhdx, qcow2 or vmdk; default: as the file's content
    \\                 says. Only raw overrules the content
    \\  --parents DIR  where the parents of a difference are; default: beside it
    \\
    },
    .{ .command = "image extract", .text =
    \\Write the kernel of a disk image, and an initramfs that streams its root
    \\disk and keeps writes in the device's RAM.
    \\
    \\Usage: bootfarm-edge image extract FILE [--kernel-to FILE] [--initrd-to FILE]
    \\
    \\Example:
    \\  bootfarm-edge image extract disk.raw --kernel-to vmlinuz --initrd-to initrd
    \\
    \\Options:
    \\  --kernel-to FILE   where to write the kernel
    \\  --initrd-to FILE   where to write the initramfs
    \\  --add-module NAME  add a driver and what it depends on; may be repeated
    \\  --busybox FILE     a statically linked busybox; default: this machine's, or
    \\                     the one in the image
    \\  --target FILE      bootfarm-target for the device's processor; default: the
    \\                     one that this program contains
    \\  --format NAME      raw, vhd, vhdx, qcow2 or vmdk; default: as the file's
    \\                     content says. Only raw overrules the content
    \\  --parents DIR      where the parents of a difference are; default: beside it
    \\
    },
    .{ .command = "initramfs", .text = initramfs_build },
    .{ .command = "initramfs build", .text = initramfs_build },
    .{ .command = "boot-files", .text =
    \\Manage sets of boot programs: iPXE, shim and GRUB, PXELINUX. An edge reads
    \\them when it starts. See docs/guides/boot-programs.md.
    \\
    \\Usage: bootfarm-edge boot-files COMMAND --boot-files DIR [OPTIONS]
    \\
    \\Commands:
    \\  import  Import sets from the system's packages or from a folder
    \\  list    List the sets and their programs
    \\  remove  Remove a set
    \\
    \\Example:
    \\  bootfarm-edge boot-files import --boot-files /srv/boot-files
    \\
    },
    .{ .command = "boot-files import", .text =
    \\Import sets of boot programs from the system's packages or from a folder.
    \\
    \\Usage: bootfarm-edge boot-files import --boot-files DIR [OPTIONS]
    \\
    \\Example:
    \\  bootfarm-edge boot-files import --boot-files /srv/boot-files --set shim-grub
    \\
    \\Options:
    \\  --boot-files DIR   the directory given to serve as --boot-files
    \\  --from system      the system's packages (default): the sets ipxe, snponly,
    \\                     shim-grub and pxelinux
    \\  --from FOLDER      files of a folder, or packages unpacked there (dpkg-deb -x)
    \\  --set NAME         import this set alone; names the set of a folder's files
    \\  --force-arch ARCH  bios, x64_uefi, arm64_uefi or any: accept programs that
    \\                     are not recognized, for this architecture
    \\
    },
    .{ .command = "boot-files list", .text =
    \\List the sets of boot programs and their files.
    \\
    \\Usage: bootfarm-edge boot-files list --boot-files DIR [--json]
    \\
    \\Example:
    \\  bootfarm-edge boot-files list --boot-files /srv/boot-files
    \\
    \\Options:
    \\  --boot-files DIR  the directory given to serve as --boot-files
    \\  --json            print JSON
    \\
    },
    .{ .command = "boot-files remove", .text =
    \\Remove a set of boot programs.
    \\
    \\Usage: bootfarm-edge boot-files remove --boot-files DIR --set NAME
    \\
    \\Example:
    \\  bootfarm-edge boot-files remove --boot-files /srv/boot-files --set pxelinux
    \\
    \\Options:
    \\  --boot-files DIR  the directory given to serve as --boot-files
    \\  --set NAME        the set to remove
    \\
    },
    .{ .command = "boot-media", .text = boot_media_build },
    .{ .command = "boot-media build", .text = boot_media_build },
    .{ .command = "listen-address", .text =
    \\Print the address of this machine that --listen should have: its only address,
    \\or that of the interface with the default route.
    \\
    \\Usage: bootfarm-edge listen-address
    \\
    \\Example:
    \\  bootfarm-edge serve --listen $(bootfarm-edge listen-address) --vdisk disk.raw
    \\
    },
    .{ .command = "rotate-key", .text =
    \\Ask the running edge to create a new identity key and to register it with the
    \\control plane.
    \\
    \\Usage: bootfarm-edge rotate-key --data DIR
    \\
    \\Example:
    \\  bootfarm-edge rotate-key --data /var/lib/bootfarm-edge
    \\
    \\Options:
    \\  --data DIR  where the edge keeps its identity and state
    \\
    },
    .{ .command = "trust-key", .text =
    \\Trust a signing key of the control plane. It is needed once after the control
    \\plane was restored from a backup that is older than a change of its key.
    \\
    \\Usage: bootfarm-edge trust-key --data DIR --key KEY
    \\
    \\Example:
    \\  bootfarm-edge trust-key --data /var/lib/bootfarm-edge --key KEY
    \\
    \\Options:
    \\  --data DIR  where the edge keeps its identity and state
    \\  --key KEY   the key that the dashboard shows for the organization
    \\
    },
    .{ .command = "verify-release", .text =
    \\Check that a program is a release that a key has signed.
    \\
    \\Usage: bootfarm-edge verify-release --key KEY --release FILE
    \\           --signature FILE --program FILE [--allow-older]
    \\
    \\Example:
    \\  bootfarm-edge verify-release --key KEY --release release.json \
    \\      --signature release.sig --program bootfarm-edge.new
    \\
    \\Options:
    \\  --key KEY         the public key that signs releases
    \\  --release FILE    the description of the release
    \\  --signature FILE  the signature of the description
    \\  --program FILE    the program to check
    \\  --allow-older     accept a release that is older than this program
    \\
    },
    .{ .command = "version", .text =
    \\Print the version of this program.
    \\
    \\Usage: bootfarm-edge version
    \\
    \\Example:
    \\  bootfarm-edge version
    \\
    },
    .{ .command = "vdisk", .text =
    \\Manage the versions of vDisks in a store. See docs/reference/vdisk-store.md.
    \\
    \\Usage: bootfarm-edge vdisk COMMAND --store DIR [OPTIONS] [--json]
    \\
    \\Commands:
    \\  init         Create a store
    \\  import       Make a version of a disk image
    \\  import-pvs   Make versions of a vDisk in a store of Citrix Provisioning
    \\  export       Write a version to a file or a block device
    \\  pack         Write a version, or what it changes, for another store
    \\  list, show   Show what is in the store; show one version
    \\  files        Show which file holds which bytes, and what a boot read
    \\  diff         Count the bytes in which two versions differ
    \\  seal         Make a version of what its device has written
    \\  merge        Make a base or an update from a version, without copying data
    \\  verify       Read versions and name what is damaged
    \\  compress     Pack the versions again, so that they take less space
    \\  gc           Free the space that no version needs
    \\  delete       Delete a version
    \\  profile      Show or clear the boot profile of a version
    \\  caches       List, export and import the write caches in the store
    \\  drop-cache   Drop a persistent write cache
    \\
    \\Example:
    \\  bootfarm-edge vdisk list --store /srv/store
    \\Exit codes: 0 done; 1 failed; 3 interrupted, run it again; 4 busy, try later
    \\
    },
    .{ .command = "vdisk init", .text = ofVdisk(
        "Create a store in a directory.",
        "[--organization ID] [--beside-files]",
        "init --store /srv/store",
        \\  --organization ID  the organization that owns the store
        \\  --beside-files     use a directory that already has other files
        \\
        ,
    ) },
    .{ .command = "vdisk import", .text = ofVdisk(
        \\Make a version of an image (raw, VHD, VHDX, qcow2, VMDK), of a block device,
        \\of standard input (-), which is raw, or of a container image: an archive of
        \\docker save or podman save, or an OCI layout, with an init and a kernel in it.
        \\Or take a version of another store from the file that vdisk pack has written.
    ,
        "FILE [OPTIONS]",
        "import disk.raw --store /srv/store --name Workstation",
        \\  --name NAME           name of the new vDisk
        \\  --note TEXT           a line about the version, for people
        \\  --parent ID           make an update of this version
        \\  --format NAME         raw, vhd, vhdx, qcow2 or vmdk; default: as the file's
        \\                        content says. Only raw overrules the content
        \\  --parents DIR         where the parents of a difference are; default: beside
        \\                        the image
        \\  --pad                 fill a size that is no multiple of the block size
        \\  --size SIZE           size of the disk that is made of a container image, such
        \\                        as 16G; default: by its contents, at least 8G
        \\  --platform OS/ARCH    which image of a container image for several
        \\  --vdisk ID, --version ID, --number N
        \\                        use these where the control plane has assigned them
        \\  --kernel FILE, --initrd FILE, --cmdline TEXT
        \\                        boot these instead of those found on the disk
        \\  --add-modules A,B     add these drivers to the initramfs that is made
        \\  --parent-boot-files   boot what the parent boots
        \\  --boot-files-of ID    boot with the kernel and initramfs of this version
        \\  --no-boot-files       boot the disk itself, or not at all
        \\  --empty SIZE          in place of FILE: a disk of zeros, such as 64G, into
        \\                        which the disk of a machine can be captured
        \\  --root HEX            refuse a packed version with another root
        \\  --resume ID           continue the interrupted import of version ID
        \\  --abandon ID          drop the interrupted import of version ID
        \\  --again               succeed if this version is already imported, and
        \\                        continue it if it is interrupted; needs --version
        \\
        ,
    ) },
    .{ .command = "vdisk import-pvs", .text = ofVdisk(
        \\Make a vDisk of one in a store of Citrix Provisioning, with all its versions:
        \\.vhd or .vhdx, .avhd or .avhdx, and the exported manifest (.xml) if present.
    ,
        "DIRECTORY|MANIFEST [OPTIONS]",
        "import-pvs /srv/pvs --store /srv/store --no-boot-files",
        \\  --disk NAME      the vDisk, where the directory has several
        \\  --name NAME      name of the new vDisk; default: as in PVS
        \\  --list           show what would be imported, and import nothing
        \\  --no-boot-files  boot the disk itself, or not at all
        \\
        ,
    ) },
    .{ .command = "vdisk export", .text = ofVdisk(
        \\Write a version to a file, a block device, or standard output (-).
    ,
        "FILE|--in-store --version ID",
        "export disk.raw --store /srv/store --version ID",
        \\  --version ID     the version to write
        \\  --format FORMAT  raw (the default), qcow2 or vhdx
        \\  --force          overwrite what FILE contains
        \\  --resume         continue an interrupted export to FILE of a raw image
        \\  --in-store       in place of FILE: write to exports/ in the store, with a
        \\                   name of the version
        \\  --again          with --in-store: succeed if it is already exported
        \\
        ,
    ) },
    .{ .command = "vdisk pack", .text = ofVdisk(
        \\Write a version, or its difference to another one, to a file that vdisk import
        \\takes into another store. FILE.pieces lists the SHA-256 of its pieces.
    ,
        "FILE --version ID [OPTIONS]",
        "pack v7.diff --store /srv/store --version ID --base ID",
        \\  --version ID  the version to pack
        \\  --base ID     leave out what this version has: it must be in the other store
        \\  --force       overwrite FILE
        \\  --again       succeed if FILE is already this difference
        \\
        ,
    ) },
    .{ .command = "vdisk list", .text = ofVdisk(
        "List the vDisks of a store and their versions.",
        "[OPTIONS]",
        "list --store /srv/store --sizes",
        \\  --vdisk ID  list this vDisk alone
        \\  --sizes     show the space that each version takes, alone and shared
        \\
        ,
    ) },
    .{ .command = "vdisk show", .text = ofVdisk(
        "Show one version.",
        "--version ID",
        "show --store /srv/store --version ID",
        \\  --version ID  the version to show
        \\
        ,
    ) },
    .{ .command = "vdisk files", .text = ofVdisk(
        \\Show which file of a version holds which bytes, or what a boot read of it.
    ,
        "--version ID [--reads FILE]",
        "files --store /srv/store --version ID",
        \\  --version ID   the version
        \\  --reads FILE   what a boot read: BOOT.reads of the edge's data directory
        \\  --report FILE  write the summary of --reads as JSON to this file
        \\
        ,
    ) },
    .{ .command = "vdisk diff", .text = ofVdisk(
        "Count the bytes in which two versions differ.",
        "--version ID --from ID",
        "diff --store /srv/store --version NEW --from OLD",
        \\  --version ID  one version
        \\  --from ID     the version to compare it with
        \\
        ,
    ) },
    .{ .command = "vdisk seal", .text = ofVdisk(
        \\Make a version of what its device has written above the parent version.
    ,
        "--version ID --parent ID [OPTIONS]",
        "seal --store /srv/store --version ID --parent ID",
        \\  --version ID         the version to make
        \\  --parent ID          the version that the device booted
        \\  --number N           number of the new version
        \\  --kernel FILE, --initrd FILE, --cmdline TEXT
        \\                       boot these instead of those found on the disk
        \\  --parent-boot-files  boot what the parent boots
        \\  --no-boot-files      boot the disk itself, or not at all
        \\  --again              succeed if the version is already sealed
        \\
        ,
    ) },
    .{ .command = "vdisk merge", .text = ofVdisk(
        \\Make a new base with the bytes of a version, or with --onto an update of
        \\another one. Copies no data.
    ,
        "--version ID [OPTIONS]",
        "merge --store /srv/store --version ID",
        \\  --version ID  the version whose bytes the new one has
        \\  --onto ID     make an update of this version instead of a base
        \\  --into ID     the id of the new version
        \\  --number N    the number of the new version
        \\  --again       succeed if --into is already merged
        \\
        ,
    ) },
    .{ .command = "vdisk verify", .text = ofVdisk(
        "Read all data and name what is damaged.",
        "[OPTIONS]",
        "verify --store /srv/store --idle",
        \\  --version ID    verify this version alone
        \\  --rate-mib N    read at most N MiB per second
        \\  --idle          use at most half of the disk's time
        \\
        ,
    ) },
    .{ .command = "vdisk compress", .text = ofVdisk(
        \\Pack the versions of a store again, so that they take less space: what was
        \\sealed or stored by an earlier release, and what an import has packed
        \\quickly. Devices go on reading; what they have open is freed by a later
        \\compress or gc.
    ,
        "[OPTIONS]",
        "compress --store /srv/store --idle",
        \\  --rate-mib N  read at most N MiB per second
        \\  --idle        use at most half of the time of disk and processor
        \\
        ,
    ) },
    .{ .command = "vdisk gc", .text = ofVdisk(
        "Free the space that no version needs.",
        "[OPTIONS]",
        "gc --store /srv/store --idle",
        \\  --rate-mib N  read at most N MiB per second
        \\  --idle        use at most half of the disk's time
        \\
        ,
    ) },
    .{ .command = "vdisk backup", .text = ofVdisk(
        \\Copy the store, and what devices have written to it, to a directory, while the
        \\edge serves. Another backup to the same directory copies what is new. What was
        \\written is read back and compared.
    ,
        "[OPTIONS] DIRECTORY",
        "backup --store /srv/store /mnt/backup/store",
        \\  --check         read all of the backup, and replace what is damaged in it
        \\  --keep-deleted  keep versions that the store no longer has
        \\  --rate-mib N    copy at most N MiB per second
        \\  --idle          use at most half of the disk's time
        \\
        ,
    ) },
    .{ .command = "vdisk restore", .text = ofVdisk(
        \\Make a store of a backup, in an empty directory. What was written is read back
        \\and compared. The directory is a store when the command has ended.
    ,
        "[OPTIONS] BACKUP",
        "restore --store /srv/store /mnt/backup/store",
        \\  --incomplete  take the whole versions of a backup that was never completed
        \\  --rate-mib N  copy at most N MiB per second
        \\  --idle        use at most half of the disk's time
        \\
        ,
    ) },
    .{ .command = "vdisk move", .text = ofVdisk(
        \\Copy the store to another directory while the edge serves, then what is new and
        \\what devices have written. The path of the store, if it is a symbolic link, then
        \\points to the new directory: reload the edge, and its devices continue there.
    ,
        "[OPTIONS] DIRECTORY",
        "move --store /srv/store /mnt/new/store",
        \\  --rate-mib N  copy at most N MiB per second while the edge serves
        \\  --idle        use at most half of the disk's time
        \\
        ,
    ) },
    .{ .command = "vdisk delete", .text = ofVdisk(
        \\Delete a version, or an interrupted import of it. Run gc to free its space. A
        \\version that the control plane offers to devices is deleted with --force alone.
    ,
        "--version ID [OPTIONS]",
        "delete --store /srv/store --version ID",
        \\  --version ID  the version to delete
        \\  --force       delete it also if devices boot it: their boots then fail
        \\  --data DIR    the data directory of the store's edge; default: the directory
        \\                that contains the store, and /var/lib/bootfarm-edge
        \\  --again       for jobs of the control plane: no question about devices, and
        \\                succeed if the version is already deleted
        \\
        ,
    ) },
    .{ .command = "vdisk profile", .text = ofVdisk(
        \\Show or clear the boot profile: the part of a version that boots read.
    ,
        "show|clear [--version ID | --all]",
        "profile show --store /srv/store",
        \\  --version ID  the version; show takes all of them without it
        \\  --all         clear the profiles of all versions
        \\
        ,
    ) },
    .{ .command = "vdisk caches", .text = ofVdisk(
        \\List what devices have written and the store keeps. See also caches export,
        \\snapshot, import, copy, copies and restore-copy.
    , "", "caches --store /srv/store", "") },
    .{ .command = "vdisk caches export", .text = ofVdisk(
        \\Write what one device has written to a file, with checksums. The device must not
        \\run. The file gets its name when it is complete.
    ,
        "--device ID [OPTIONS] FILE",
        "caches export --store /srv/store --device ID desk-7.cache",
        \\  --device ID  the device
        \\  --private    export its private image instead of its persistent write cache
        \\  --vdisk ID   with --private: the image of this vDisk
        \\  --force      overwrite the file if it exists
        \\
        ,
    ) },
    .{ .command = "vdisk caches snapshot", .text = ofVdisk(
        \\Write what one device has written to a file, as of this moment, while the
        \\device runs. Like caches export otherwise; the disk in the file is what a power
        \\failure of the device would leave.
    ,
        "--device ID FILE",
        "caches snapshot --store /srv/store --device ID desk.cache",
        \\  --device ID  the device
        \\  --private    take its private image instead of its persistent write cache
        \\  --vdisk ID   with --private: the image of this vDisk
        \\  --force      overwrite the file if it exists
        \\
        ,
    ) },
    .{ .command = "vdisk caches import", .text = ofVdisk(
        \\Bring back what caches export or caches snapshot wrote. The device must not
        \\run, and the version below must be in the store. Nothing changes unless all of
        \\the file is right.
    ,
        "[OPTIONS] FILE",
        "caches import --store /srv/store desk-7.cache",
        \\  --force     replace the writes that the device has here
        \\  --vdisk ID  the vDisk of a private image above a plain file
        \\
        ,
    ) },
    .{ .command = "vdisk caches copy", .text = ofVdisk(
        \\Copy devices' writes for a second edge of the site, also while they run.
    ,
        "[OPTIONS]",
        "caches copy --store /srv/store",
        \\  --data DIR      the edge's data directory
        \\  --reserve SIZE  what copies leave free; default: as serve --reserve
        \\
        ,
    ) },
    .{ .command = "vdisk caches copies", .text = ofVdisk(
        \\List the copies of other edges' write caches at this edge, and their age.
    , "", "caches copies --store /srv/store", "") },
    .{ .command = "vdisk caches restore-copy", .text = ofVdisk(
        \\Make the copy of a device's writes its write cache here. This edge must be the
        \\device's write owner by now. What the device has written since the copy is lost.
    ,
        "OPTIONS",
        "caches restore-copy --store /srv --device ID --from EDGE",
        \\  --device ID  the device; must be given
        \\  --from EDGE  must be given: the edge that has kept the writes until now
        \\  --copy ID    one of several copies of them
        \\  --private    restore its private image instead of its persistent write cache
        \\  --vdisk ID   the vDisk of a private image above a plain file
        \\  --force      replace the writes that the device has here
        \\  --data DIR   the edge's data directory
        \\
        ,
    ) },
    .{ .command = "vdisk drop-cache", .text = ofVdisk(
        \\Drop the persistent write cache of a device. What it has written is lost.
    ,
        "--device ID [OPTIONS]",
        "drop-cache --store /srv/store --device ID",
        \\  --device ID  the device
        \\  --private    drop its private images instead of its persistent write cache
        \\  --vdisk ID   with --private: drop the image of this vDisk alone, even if its
        \\               header is damaged
        \\  --again      succeed if there is no such cache
        \\
        ,
    ) },
};

fn ofVdisk(
    comptime purpose: []const u8,
    comptime usage: []const u8,
    comptime example: []const u8,
    comptime own: []const u8,
) []const u8 {
    const is_long = comptime std.mem.startsWith(u8, example, "caches ") and example[7] != '-';
    const start = if (is_long) "caches ".len else 0;
    const name = comptime example[0..std.mem.findScalarPos(u8, example, start, ' ').?];
    const options = if (own.len == 0) "" else "\n\nOptions:\n" ++ own;
    return purpose ++ "\n\nUsage: bootfarm-edge vdisk " ++ name ++ " --store DIR " ++ usage ++
        "\n\nExample:\n  bootfarm-edge vdisk " ++ example ++ options ++
        "\n\nEvery vdisk command:\n  --store DIR  the directory of the store\n" ++
        "  --json       print the result and the progress as lines of JSON\n";
}

const initramfs_build =
    \\Build an initramfs for a kernel: it finds the network card, streams the root
    \\disk and keeps writes in RAM. The same input gives the same bytes.
    \\
    \\Usage: bootfarm-edge initramfs build --kernel-release R --out FILE [OPTIONS]
    \\
    \\Example:
    \\  bootfarm-edge initramfs build --kernel-release "$(uname -r)" --out initrd
    \\
    \\Options:
    \\  --kernel-release R  the release as `uname -r` prints it
    \\  --out FILE          where to write the initramfs
    \\  --modules DIR       a root with lib/modules/R, or that folder; default /
    \\  --add-module NAME   add a driver and what it depends on; may be repeated
    \\  --busybox FILE      a statically linked busybox; default: this machine's, or
    \\                      that of the root with the modules
    \\  --target FILE       bootfarm-target for the device's processor; default: the
    \\                      one that this program contains
    \\
;

const boot_media_build =
    \\Build one image for CDs and USB sticks that boots BIOS and 64-bit UEFI machines
    \\(Secure Boot off), for sites whose DHCP server cannot be changed.
    \\
    \\Usage: bootfarm-edge boot-media build --edge IP[:PORT] --out FILE [OPTIONS]
    \\
    \\Example:
    \\  bootfarm-edge boot-media build --edge 10.0.0.5 --out boot.iso
    \\
    \\Options:
    \\  --edge IP[:PORT]  an edge and its HTTP port, default 6980; repeat it to name
    \\                    several edges, which are tried in this order
    \\  --out FILE        where to write the image; copy it to a whole stick with dd
    \\  --address A       dhcp (default), or IP/PREFIX,GATEWAY for a medium of one
    \\                    device without DHCP
    \\  --ipxe DIR        has ipxe.lkrn and ipxe.efi; default: Debian's package ipxe
    \\  --syslinux DIR    has isolinux.bin, isohdpfx.bin and ldlinux.c32; default:
    \\                    Debian's packages isolinux and syslinux-common
    \\
;

const testing = std.testing;

test "the top help fits one screen and lists each command in one line" {
    try expectFits(top);
    try testing.expect(std.mem.countScalar(u8, top, '\n') <= screen_lines_max);
    for (texts) |help| {
        if (std.mem.findScalar(u8, help.command, ' ') != null) continue;
        var lines = std.mem.splitScalar(u8, top, '\n');
        while (lines.next()) |line| {
            if (!std.mem.startsWith(u8, line, "  ")) continue;
            if (std.mem.eql(u8, std.mem.sliceTo(line[2..], ' '), help.command)) break;
        } else return error.CommandNotListed;
    }
}

test "the help of each command has a usage line and an example, and fits 80 columns" {
    for (texts) |help| {
        try expectFits(help.text);
        const usage = std.mem.find(u8, help.text, "\nUsage: bootfarm-edge ").?;
        try testing.expect(std.mem.find(u8, help.text, "\nExample:\n  bootfarm-edge ") != null);
        const rest = help.text[usage + "\nUsage: bootfarm-edge ".len ..];
        try testing.expect(std.mem.startsWith(u8, rest, help.command));
    }
}

fn expectFits(text: []const u8) !void {
    var lines = std.mem.splitScalar(u8, text, '\n');
    while (lines.next()) |line| {
        if (line.len <= screen_columns_max) continue;
        std.debug.print("{d} columns: {s}\n", .{ line.len, line });
        return error.LineTooLong;
    }
    try testing.expect(std.mem.endsWith(u8, text, "\n"));
}

test "a command line that asks for help gets that of its longest known command" {
    try testing.expectEqual(null, find(&.{ "serve", "--json" }));
    try testing.expectEqual(null, find(&.{}));
    try testing.expectEqualStrings(top, find(&.{"--help"}).?);
    try testing.expectEqualStrings(top, find(&.{ "unknown", "-h" }).?);
    try testing.expectEqualStrings(serve, find(&.{ "serve", "--listen", "10.0.0.5", "--help" }).?);
    const vdisk = find(&.{ "vdisk", "--help" }).?;
    const import = find(&.{ "vdisk", "import", "disk", "--help" }).?;
    try testing.expect(std.mem.startsWith(u8, vdisk, "Manage the versions"));
    try testing.expect(std.mem.startsWith(u8, import, "Make a version of an image"));
    try testing.expectEqualStrings(vdisk, find(&.{ "vdisk", "unknown", "--help" }).?);
}
