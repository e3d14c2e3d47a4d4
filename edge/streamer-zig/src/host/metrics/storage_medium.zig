//! On what kind of storage a directory lies, for the heartbeat: by the device of its file system
//! (sysfs(5)), or by the file system where that has none (statfs(2)).

const std = @import("std");
const core = @import("core");
const sys = @import("../sys.zig");
const linux = std.os.linux;
const Medium = core.uplink.message.Medium;

/// Of a file system without a device of its own (include/uapi/linux/magic.h).
const FileSystem = struct { magic: u32, kind: Medium.Kind, name: []const u8 };
const file_systems = [_]FileSystem{
    .{ .magic = 0x6969, .kind = .network, .name = "NFS" },
    .{ .magic = 0xff534d42, .kind = .network, .name = "CIFS" },
    .{ .magic = 0xfe534d42, .kind = .network, .name = "SMB" },
    .{ .magic = 0x00c36400, .kind = .network, .name = "Ceph" },
    .{ .magic = 0x01021997, .kind = .network, .name = "9P" },
    .{ .magic = 0x01021994, .kind = .memory, .name = "tmpfs" },
    .{ .magic = 0x858458f6, .kind = .memory, .name = "ramfs" },
};
/// Of device mapper and RAID: each consists of others.
const layers_max = 4;
const text_size_max = Medium.name_size_max;

/// Returns null if the system does not tell. `name` holds the medium's name.
pub fn read(fd: i32, name: *[text_size_max]u8) ?Medium {
    // `struct statfs` starts with the type.
    var status: [16]i64 = @splat(0);
    const argument: usize = @bitCast(@as(isize, fd));
    _ = sys.check(linux.syscall2(.fstatfs, argument, @intFromPtr(&status))) catch return null;
    const magic: u32 = @truncate(@as(u64, @bitCast(status[0])));
    for (file_systems) |one| if (one.magic == magic)
        return .{ .kind = one.kind, .name = copyName(name, one.name) };
    var found: linux.Statx = undefined;
    _ = sys.check(linux.statx(fd, "", linux.AT.EMPTY_PATH, .{}, &found)) catch return null;
    if (found.dev_major == 0) return null;
    var path: [96]u8 = undefined;
    const link = std.mem.printSentinel(
        &path,
        "/sys/dev/block/{d}:{d}",
        .{ found.dev_major, found.dev_minor },
        0,
    ) catch unreachable; // Two numbers of 32 bits.
    return ofDevice(link, name);
}

fn ofDevice(link: [*:0]const u8, name: *[text_size_max]u8) ?Medium {
    const flags: linux.O = .{ .PATH = true, .DIRECTORY = true, .CLOEXEC = true };
    var dir: i32 = @intCast(sys.check(linux.open(link, flags, 0)) catch return null);
    defer sys.close(dir);
    for (0..layers_max) |_| {
        var below: [64]u8 = undefined;
        const path = firstBelow(dir, &below) orelse break;
        const next = sys.check(linux.openat(dir, path, flags, 0)) catch break;
        sys.close(dir);
        dir = @intCast(next);
    }
    var text: [text_size_max]u8 = undefined;
    // A partition has its disk's queue in the directory above.
    const is_part = readText(dir, "partition", &text) != null;
    const queue_path: [*:0]const u8 =
        if (is_part) "../queue/rotational" else "queue/rotational";
    const rotational = readText(dir, queue_path, &text) orelse return null;
    const spins = std.mem.eql(u8, rotational, "1");
    const kind: Medium.Kind = if (isNvme(dir, is_part)) .nvme else if (spins) .hdd else .ssd;
    const model_path: [*:0]const u8 = if (is_part) "../device/model" else "device/model";
    const model = readText(dir, model_path, &text) orelse "";
    return .{ .kind = kind, .name = copyName(name, model) };
}

/// Of a device that consists of others, the first of them, as a path below its directory.
fn firstBelow(dir: i32, buffer: *[64]u8) ?[*:0]const u8 {
    const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true };
    const rc = linux.openat(dir, "slaves", flags, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return null);
    defer sys.close(fd);
    var entries: [1024]u8 align(8) = undefined;
    const size = sys.check(linux.getdents64(fd, &entries, entries.len)) catch return null;
    var at: usize = 0;
    while (at < size) {
        const entry: *align(1) const linux.dirent64 = @ptrCast(&entries[at]);
        at += entry.reclen;
        const file = std.mem.sliceTo(@as([*:0]const u8, @ptrCast(&entry.name)), 0);
        if (file.len == 0 or file[0] == '.') continue;
        const path = std.mem.printSentinel(buffer, "slaves/{s}", .{file}, 0) catch return null;
        return path.ptr;
    }
    return null;
}

fn isNvme(dir: i32, is_part: bool) bool {
    var target: [64]u8 = undefined;
    const path: [*:0]const u8 = if (is_part) "../device/subsystem" else "device/subsystem";
    const size = sys.check(linux.readlinkat(dir, path, &target, target.len)) catch return false;
    const name = std.fs.path.basename(target[0..size]);
    return std.mem.startsWith(u8, name, "nvme");
}

fn readText(dir: i32, path: [*:0]const u8, buffer: *[text_size_max]u8) ?[]const u8 {
    const rc = linux.openat(dir, path, .{ .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return null);
    defer sys.close(fd);
    const size = sys.check(linux.read(fd, buffer, buffer.len)) catch return null;
    return std.mem.trim(u8, buffer[0..size], " \n\x00");
}

/// Of a disk, a text like those of devices: printable.
fn copyName(buffer: *[text_size_max]u8, text: []const u8) []const u8 {
    const size = @min(text.len, buffer.len);
    for (buffer[0..size], text[0..size]) |*kept, byte|
        kept.* = if (std.ascii.isPrint(byte)) byte else '?';
    return buffer[0..size];
}

const testing = std.testing;

test "a directory lies on some storage, of which the system tells the kind or nothing" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var name: [text_size_max]u8 = undefined;
    if (read(tmp.dir.handle, &name)) |medium| try testing.expect(medium.name.len <= name.len);
    const shm = linux.open("/dev/shm", .{ .DIRECTORY = true, .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(sys.check(shm) catch return error.SkipZigTest);
    defer sys.close(fd);
    const memory = read(fd, &name).?;
    try testing.expectEqual(.memory, memory.kind);
    try testing.expectEqualStrings("tmpfs", memory.name);
    try testing.expectEqual(null, read(-1, &name));
}

test "a model's name is printable" {
    var name: [text_size_max]u8 = undefined;
    try testing.expectEqualStrings("Disk? 9", copyName(&name, "Disk\x07 9"));
    const long: [100]u8 = @splat('x');
    try testing.expectEqual(text_size_max, copyName(&name, &long).len);
}
