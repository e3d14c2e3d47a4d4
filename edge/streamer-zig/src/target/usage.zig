//! The texts of `bootfarm-target --help` and of each command's own `--help`.

const std = @import("std");
const linux = std.os.linux;

pub const Command = enum {
    attach,
    ready,
    failed,
    timings,
    cache,
    trace,
    @"hand-over",
    status,
    identity,
    prepare,
    capture,
    version,

    pub fn fromName(name: []const u8) ?Command {
        return std.meta.stringToEnum(Command, name);
    }

    fn text(command: Command) []const u8 {
        return switch (command) {
            .attach => attach,
            .ready => ready,
            .failed => failed,
            .timings => timings,
            .cache => cache,
            .trace => trace,
            .@"hand-over" => hand_over,
            .status => status,
            .identity => identity,
            .prepare => prepare,
            .capture => capture,
            .version => version,
        };
    }
};

const overview =
    \\Usage: bootfarm-target COMMAND [ARGUMENTS]
    \\
    \\Runs on a device that boots from a Bootfarm edge.
    \\
    \\  attach     make /dev/nbd0 from an edge's stream, and serve it in the background
    \\  ready      report to the edge that this machine is up
    \\  failed     report to the edge that the boot failed, and why
    \\  timings    report how long systemd took to start
    \\  cache      monitor a file system as this machine's write cache
    \\  trace      record which programs read the disk, until the machine is ready
    \\  hand-over  report that the initramfs is done
    \\  status     print the state of the running target as JSON
    \\  identity   print the fingerprint of this machine's key in its TPM
    \\  prepare    prepare a Debian or Ubuntu system to boot from an edge
    \\  capture    send a disk of this machine to the version that its boot writes
    \\  version    print the version
    \\
    \\`bootfarm-target COMMAND --help` explains a command and gives an example.
    \\
;

const attach =
    \\Usage: bootfarm-target attach [WORD...]
    \\
    \\Opens the edge's stream, makes /dev/nbd0 and serves it in the background. Returns when the
    \\disk is there. Words come from the kernel's command line; arguments take precedence.
    \\
    \\  bootfarm.edge=IP:PORT     address of the edge's stream
    \\  bootfarm.boot=UUID        boot that the edge has started for this device
    \\  bootfarm.token=HEX        the boot's token, 32 hexadecimal digits, valid for one session
    \\  bootfarm.stream=clear     the stream is not encrypted; set by an edge with --clear
    \\  bootfarm.read-ahead=SIZE  memory for read-ahead: 1m to 256m, off, or auto (default: a
    \\                            sixteenth of the free memory, at most 64m)
    \\  bootfarm.lost=ACTION      when the disk is lost for good: restart (default: after 60 s),
    \\                            restart,SECONDS, or wait for somebody to restart the machine
    \\  bootfarm.report=URL       where ready and failed report if no stream is attached
    \\
    \\Example:
    \\  bootfarm-target attach bootfarm.read-ahead=32m
    \\
;

const ready =
    \\Usage: bootfarm-target ready [CODE [SENTENCE]]
    \\
    \\Reports to the edge that this machine is up, with the steps of its boot. Waits up to 30 s for
    \\the edge's acknowledgement; the report is sent again after that.
    \\
    \\Example:
    \\  bootfarm-target ready
    \\
;

const failed =
    \\Usage: bootfarm-target failed CODE [SENTENCE]
    \\
    \\Reports to the edge that the boot failed, and why. CODE has at most 12 characters, SENTENCE at
    \\most 64. Waits up to 10 s for the edge's acknowledgement.
    \\
    \\Example:
    \\  bootfarm-target failed no_root "the root file system could not be mounted"
    \\
;

const timings =
    \\Usage: bootfarm-target timings
    \\
    \\Waits until systemd has finished the boot, and reports its steps and slowest units to the edge.
    \\
    \\Example:
    \\  bootfarm-target timings
    \\
;

const cache =
    \\Usage: bootfarm-target cache FOLDER
    \\
    \\Monitors the file system of FOLDER as this machine's write cache: the edge is told how full it
    \\is.
    \\
    \\Example:
    \\  bootfarm-target cache /overlay
    \\
;

const trace =
    \\Usage: bootfarm-target trace
    \\
    \\Records in the background which programs and units read the streamed disk, and reports it to
    \\the edge once the machine is ready, after 5 minutes at the latest. The initramfs starts it
    \\before `attach`. Uses an own instance of the kernel's tracefs; without tracefs it reports so.
    \\
    \\Example:
    \\  bootfarm-target trace
    \\
;

const hand_over =
    \\Usage: bootfarm-target hand-over
    \\
    \\Reports that the initramfs is done: reads are the system's from now on.
    \\
    \\Example:
    \\  bootfarm-target hand-over
    \\
;

const status =
    \\Usage: bootfarm-target status
    \\
    \\Prints the state of the running target as JSON. Needs root.
    \\
    \\Example:
    \\  bootfarm-target status
    \\
;

const identity =
    \\Usage: bootfarm-target identity
    \\
    \\Makes this machine's key in its TPM 2.0, as each boot does, and prints its fingerprint:
    \\SHA-256 in hexadecimal digits. Compare it with the dashboard's before you approve the key.
    \\
    \\Example:
    \\  bootfarm-target identity
    \\
;

const prepare =
    \\Usage: bootfarm-target prepare [OPTIONS]
    \\
    \\Prepares a Debian or Ubuntu system to boot from an edge: adds files to its root and runs its
    \\update-initramfs. Prints each change, and can be run again. Needs root.
    \\
    \\  --root DIR               root file system to prepare (default: the running system)
    \\  --write-cache ram=SIZE   memory for writes: ram=2g, or ram=50% (the default)
    \\  --no-initramfs           do not run update-initramfs
    \\  --dry-run                print the changes without making them
    \\  --undo                   remove all changes
    \\
    \\Example:
    \\  bootfarm-target prepare --root /mnt/image --write-cache ram=2g
    \\
;

const capture =
    \\Usage: bootfarm-target capture auto|DISK DEVICE
    \\
    \\Copies a disk of this machine onto DEVICE, which has the same size: the disk that the edge
    \\serves. `auto` is the only disk of the machine. The disk is only read. Zeros are not sent.
    \\The first MiB comes last, so that an interrupted copy has no partition table. The initramfs
    \\runs this for bootfarm.capture=DISK on the kernel's command line. If it fails, the reason is
    \\on standard output, and the disks of the machine are on standard error.
    \\
    \\Example:
    \\  bootfarm-target capture nvme0n1 /dev/nbd0
    \\
;

const version =
    \\Usage: bootfarm-target version
    \\
    \\Prints the version of this program.
    \\
    \\Example:
    \\  bootfarm-target version
    \\
;

/// Null prints the overview.
pub fn print(fd: i32, command: ?Command) void {
    const text = if (command) |known| known.text() else overview;
    var written: usize = 0;
    while (written < text.len) {
        const rc = linux.write(fd, text[written..].ptr, text.len - written);
        if (linux.errno(rc) != .SUCCESS) return;
        written += rc;
    }
}

/// Returns whether the arguments of a command ask for its help.
pub fn isAsked(arguments: []const [*:0]const u8) bool {
    return arguments.len == 1 and std.mem.eql(u8, std.mem.span(arguments[0]), "--help");
}

const testing = std.testing;

test "every command has a help with an example, and fits one screen of 80 by 24 in the overview" {
    for (std.enums.values(Command)) |command| {
        const text = command.text();
        try testing.expectStringStartsWith(text, "Usage: bootfarm-target ");
        try testing.expect(std.mem.find(u8, text, "\nExample:\n  bootfarm-target ") != null);
        try testing.expect(std.mem.find(u8, overview, @tagName(command)) != null);
        try testing.expectEqual(command, Command.fromName(@tagName(command)).?);
    }
    try testing.expect(std.mem.count(u8, overview, "\n") <= 24);
    try testing.expectEqual(null, Command.fromName("--root"));
}

test "only --help alone asks for a command's help" {
    try testing.expect(isAsked(&.{"--help"}));
    try testing.expect(!isAsked(&.{}));
    try testing.expect(!isAsked(&.{ "no_root", "--help" }));
}
