//! Which numbers of block devices are the streamed disk and its partitions.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;

pub const StreamedDisks = @This();

/// /sys/dev/block, wherever the system has moved it.
folder_fd: i32,
known: [known_max]Known = undefined,
count: u8 = 0,

/// A machine with more disks and partitions asks again for some.
const known_max = 32;
const Known = struct { major: u32, minor: u32, is_streamed: bool };

pub fn open() StreamedDisks {
    const flags: linux.O = .{ .PATH = true, .DIRECTORY = true, .CLOEXEC = true };
    const rc = linux.open("/sys/dev/block", flags, 0);
    return .{ .folder_fd = if (sys.check(rc)) |fd| @intCast(fd) else |_| -1 };
}

pub fn has(disks: *StreamedDisks, major: u32, minor: u32) bool {
    for (disks.known[0..disks.count]) |*known|
        if (known.major == major and known.minor == minor) return known.is_streamed;
    const is_streamed = disks.ask(major, minor) orelse return false;
    if (disks.count < known_max) {
        disks.known[disks.count] = .{ .major = major, .minor = minor, .is_streamed = is_streamed };
        disks.count += 1;
    }
    return is_streamed;
}

/// Null: there is no such device now.
fn ask(disks: *const StreamedDisks, major: u32, minor: u32) ?bool {
    var name: [32]u8 = undefined;
    const link = std.mem.printSentinel(&name, "{d}:{d}", .{ major, minor }, 0) catch unreachable;
    var target: [256]u8 = undefined;
    const rc = linux.readlinkat(disks.folder_fd, link, &target, target.len);
    return isStreamed(target[0 .. sys.check(rc) catch return null]);
}

/// `../../devices/virtual/block/nbd0/nbd0p1`
fn isStreamed(target: []const u8) bool {
    return std.mem.find(u8, target, "/block/nbd") != null;
}

test "a disk of the nbd driver and its partitions are streamed, others are not" {
    const testing = std.testing;
    try testing.expect(isStreamed("../../devices/virtual/block/nbd0/nbd0p1"));
    try testing.expect(!isStreamed("../../devices/pci0000:00/nvme/nvme0/nvme0n1"));
}
