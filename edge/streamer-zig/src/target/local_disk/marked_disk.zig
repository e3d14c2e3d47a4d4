//! Finds the partition that is marked for this machine's writes (docs/guides/write-caches.md), and
//! opens it exclusively. Nothing is ever written elsewhere: the kernel's description of the
//! partition (sysfs) must match the table on the disk.

const std = @import("std");
const linux = std.os.linux;
const marked_partition = @import("wire").marked_partition;
const sys = @import("host").sys;
const sys_time = @import("../sys_time.zig");
const block_size = @import("block_map.zig").block_size;

/// Bytes; a smaller partition is too small to use.
pub const size_min = 64 << 20;
/// Controllers find their disks a while after their drivers are loaded.
const wait_us_max = 10 * std.time.us_per_s;
const look_interval_us = 100 * std.time.us_per_ms;
const name_size_max = 32;
/// Limit of a folder of sysfs; the rest is ignored.
const names_max = 512;

/// Folders of the kernel.
pub const Folders = struct {
    /// /sys/block
    sys_block: i32,
    /// /dev
    dev: i32,

    pub fn open() sys.Error!Folders {
        const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true };
        const sys_block: i32 = @intCast(try sys.check(linux.open("/sys/block", flags, 0)));
        errdefer sys.close(sys_block);
        return .{
            .sys_block = sys_block,
            .dev = @intCast(try sys.check(linux.open("/dev", flags, 0))),
        };
    }

    pub fn close(places: Folders) void {
        sys.close(places.sys_block);
        sys.close(places.dev);
    }
};

pub const Name = struct {
    buffer: [name_size_max:0]u8 = @splat(0),

    pub fn of(text: []const u8) ?Name {
        if (text.len == 0 or text.len > name_size_max or
            std.mem.findScalar(u8, text, '/') != null) return null;
        var name: Name = .{};
        @memcpy(name.buffer[0..text.len], text);
        return name;
    }

    pub fn slice(name: *const Name) []const u8 {
        return std.mem.sliceTo(&name.buffer, 0);
    }
};

/// A partition with the name, whose size matches in the table and the kernel.
pub const Candidate = struct { name: Name, size: u64 };

pub const Search = struct {
    found: ?Candidate = null,
    /// Number of disks found.
    disks: u32 = 0,
};

pub const OpenPartition = struct {
    fd: i32,
    /// Bytes.
    size: u64,
    name: Name,
};

pub const OpenFailure = union(enum) {
    /// Number of disks without such a partition.
    none_of: u32,
    too_small: Name,
    in_use: Name,
    /// The kernel's error number.
    unusable: struct { name: Name, errno: u16 },

    /// At most 64 characters, the limit of a boot's text.
    pub fn format(failure: *const OpenFailure, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        const wanted = marked_partition.name;
        switch (failure.*) {
            .none_of => |disks| if (disks == 0)
                try writer.writeAll("no local disk was found, or no driver for it")
            else
                try writer.print("no partition of {d} local disks is named {s}", .{
                    disks, wanted,
                }),
            .too_small => |*name| try writer.print("{s} has less than {d} MiB", .{
                name.slice(), size_min >> 20,
            }),
            .in_use => |*name| try writer.print("{s} is in use by something else", .{name.slice()}),
            .unusable => |*known| try writer.print("{s} cannot be written (error {d})", .{
                known.name.slice(), known.errno,
            }),
        }
    }
};

pub const Result = union(enum) { opened: OpenPartition, failure: OpenFailure };

/// Waits a while for the disks to appear.
pub fn open() Result {
    const places = Folders.open() catch return .{ .failure = .{ .none_of = 0 } };
    defer places.close();
    const until_us = sys.monotonicUs() + wait_us_max;
    while (true) {
        const seen = search(places);
        if (seen.found) |candidate| return openCandidate(places, &candidate);
        if (sys.monotonicUs() >= until_us) return .{ .failure = .{ .none_of = seen.disks } };
        const pause = sys_time.timespecOf(look_interval_us);
        _ = linux.nanosleep(&pause, null);
    }
}

/// Returns the largest partition of all disks.
pub fn search(places: Folders) Search {
    var result: Search = .{};
    var disks: Names = .init(places.sys_block);
    for (disks.all()) |*disk| {
        if (!isLocalDisk(places, disk)) continue;
        result.disks += 1;
        const candidate = candidateOf(places, disk) orelse continue;
        if (result.found == null or candidate.size > result.found.?.size) result.found = candidate;
    }
    return result;
}

fn openCandidate(places: Folders, candidate: *const Candidate) Result {
    const name = candidate.name;
    if (candidate.size < size_min) return .{ .failure = .{ .too_small = name } };
    // With O_EXCL nothing mounts it or swaps to it while it is open, and the open fails while
    // something does.
    const flags: linux.O = .{ .ACCMODE = .RDWR, .EXCL = true, .DIRECT = true, .CLOEXEC = true };
    const rc = linux.openat(places.dev, &name.buffer, flags, 0);
    switch (linux.errno(rc)) {
        .SUCCESS => {},
        .BUSY => return .{ .failure = .{ .in_use = name } },
        else => |errno| return .{
            .failure = .{ .unusable = .{ .name = name, .errno = @backingInt(errno) } },
        },
    }
    const fd: i32 = @intCast(rc);
    if (sizeOfDevice(fd) == candidate.size)
        return .{ .opened = .{ .fd = fd, .size = candidate.size, .name = name } };
    sys.close(fd);
    return .{ .failure = .{ .unusable = .{ .name = name, .errno = @backingInt(linux.E.NXIO) } } };
}

/// For a block device; null for anything else.
pub fn sizeOfDevice(fd: i32) ?u64 {
    const BLKGETSIZE64 = linux.IOCTL.IOR(0x12, 114, usize);
    var size: u64 = 0;
    return if (linux.errno(
        linux.ioctl(fd, BLKGETSIZE64, @intFromPtr(&size)),
    ) == .SUCCESS) size else null;
}

/// Hardware, as opposed to devices that the kernel makes of files, memory or the network.
pub fn isLocalDisk(places: Folders, disk: *const Name) bool {
    for ([_][]const u8{
        "nbd",
        "loop",
        "ram",
        "zram",
        "dm-",
        "md",
        "sr",
        "fd",
        "rbd",
        "drbd",
    }) |other|
        if (std.mem.startsWith(u8, disk.slice(), other)) return false;
    var path: Path = .{};
    return linux.errno(
        linux.faccessat(places.sys_block, path.join(&.{ disk.slice(), "device" }), linux.F_OK, 0),
    ) == .SUCCESS;
}

fn candidateOf(places: Folders, disk: *const Name) ?Candidate {
    const geometry: marked_partition.Geometry = .{
        .sector_size = std.math.cast(
            u32,
            numberIn(places, &.{ disk.slice(), "queue/logical_block_size" }) orelse return null,
        ) orelse return null,
        .disk_size = (numberIn(places, &.{ disk.slice(), "size" }) orelse return null) *| 512,
    };
    // A block of ours must be whole sectors of the disk.
    if (geometry.sector_size < 512 or geometry.sector_size > block_size or
        block_size % geometry.sector_size != 0) return null;
    const found = readTable(places, disk, geometry) orelse return null;
    const name = partitionName(disk, found.number) orelse return null;
    const parts = [_][]const u8{ disk.slice(), name.slice() };
    if (numberIn(places, &.{ parts[0], parts[1], "partition" }) != found.number) return null;
    if (numberIn(places, &.{ parts[0], parts[1], "start" }) != found.first / 512) return null;
    if (numberIn(places, &.{ parts[0], parts[1], "size" }) != found.size / 512) return null;
    return .{ .name = name, .size = found.size };
}

fn readTable(
    places: Folders,
    disk: *const Name,
    geometry: marked_partition.Geometry,
) ?marked_partition.MarkedPartition {
    const flags: linux.O = .{ .NONBLOCK = true, .CLOEXEC = true };
    const fd: i32 =
        @intCast(sys.check(linux.openat(places.dev, &disk.buffer, flags, 0)) catch return null);
    defer sys.close(fd);
    var buffer: [marked_partition.header_size_max]u8 = undefined;
    const sector = buffer[0..geometry.sector_size];
    if ((sys.readAt(fd, sector, geometry.sector_size) catch return null) < sector.len) return null;
    const header = marked_partition.parseHeader(sector, geometry) orelse return null;
    var entries_buffer: [marked_partition.entries_size_max]u8 = undefined;
    const entries = entries_buffer[0..header.entriesSize()];
    if ((sys.readAt(fd, entries, header.entries_at) catch return null) < entries.len) return null;
    return marked_partition.find(&header, entries, geometry);
}

/// As the kernel names partitions: a `p` goes between two numbers.
fn partitionName(disk: *const Name, number: u16) ?Name {
    var buffer: [name_size_max + 8]u8 = undefined;
    const text = disk.slice();
    const between = if (std.ascii.isDigit(text[text.len - 1])) "p" else "";
    // It has room for the longest.
    return .of(std.mem.print(&buffer, "{s}{s}{d}", .{ text, between, number }) catch unreachable);
}

pub fn numberIn(places: Folders, parts: []const []const u8) ?u64 {
    var path: Path = .{};
    var buffer: [32]u8 = undefined;
    const text = sys.readFileIn(places.sys_block, path.join(parts), &buffer) catch "";
    return std.fmt.parseInt(u64, std.mem.trim(u8, text, " \n"), 10) catch null;
}

pub const Path = struct {
    buffer: [3 * (name_size_max + 1):0]u8 = undefined,

    pub fn join(path: *Path, parts: []const []const u8) [*:0]const u8 {
        var writer: std.Io.Writer = .fixed(&path.buffer);
        for (parts, 0..) |part, index| writer.print(
            "{s}{s}",
            .{ if (index > 0) "/" else "", part },
        ) catch unreachable;
        path.buffer[writer.end] = 0;
        return &path.buffer;
    }
};

/// The content of a folder.
pub const Names = struct {
    names: [names_max]Name = undefined,
    count: usize = 0,

    pub fn init(folder_fd: i32) Names {
        var names: Names = .{};
        _ = linux.lseek(folder_fd, 0, linux.SEEK.SET);
        var buffer: [4096]u8 align(8) = undefined;
        while (true) {
            const filled = sys.check(linux.getdents64(folder_fd, &buffer, buffer.len)) catch
                return names;
            if (filled == 0) return names;
            var at: usize = 0;
            while (at < filled) {
                const entry: *align(1) linux.dirent64 = @ptrCast(&buffer[at]);
                at += entry.reclen;
                const text = std.mem.sliceTo(@as([*:0]const u8, @ptrCast(&entry.name)), 0);
                if (text[0] == '.' or names.count == names_max) continue;
                names.names[names.count] = Name.of(text) orelse continue;
                names.count += 1;
            }
        }
    }

    pub fn all(names: *const Names) []const Name {
        return names.names[0..names.count];
    }
};

const testing = std.testing;
const TestTable = marked_partition.TestTable;

/// Folders like the kernel's, with files in place of disks.
const Machine = struct {
    tmp: testing.TmpDir,

    fn init() !Machine {
        const machine: Machine = .{ .tmp = testing.tmpDir(.{}) };
        try machine.tmp.dir.createDirPath(testing.io, "block");
        try machine.tmp.dir.createDirPath(testing.io, "dev");
        return machine;
    }

    fn write(
        machine: *const Machine,
        comptime path: []const u8,
        arguments: anytype,
        bytes: []const u8,
    ) !void {
        var buffer: [128]u8 = undefined;
        const name = try std.mem.print(&buffer, path, arguments);
        try machine.tmp.dir.createDirPath(testing.io, std.fs.path.dirname(name).?);
        try machine.tmp.dir.writeFile(testing.io, .{ .sub_path = name, .data = bytes });
    }

    const Partition = struct { number: u16, first: u64, last: u64 };

    fn add(
        machine: *const Machine,
        disk: []const u8,
        table: ?*const TestTable,
        kernel: []const Partition,
    ) !void {
        var bytes: [34 * 512]u8 = @splat(0);
        if (table) |known| {
            @memcpy(bytes[512..1024], &known.header);
            @memcpy(bytes[1024..], &known.entries);
        }
        try machine.write("dev/{s}", .{disk}, &bytes);
        try machine.write("block/{s}/size", .{disk}, "204800\n");
        try machine.write("block/{s}/queue/logical_block_size", .{disk}, "512\n");
        try machine.write("block/{s}/device/x", .{disk}, "");
        for (kernel) |partition| {
            var buffer: [64]u8 = undefined;
            const name = partitionName(&Name.of(disk).?, partition.number).?;
            const values = [_]struct { []const u8, u64 }{
                .{ "partition", partition.number },
                .{ "start", partition.first },
                .{ "size", partition.last - partition.first + 1 },
            };
            for (values) |value| try machine.write(
                "block/{s}/{s}/{s}",
                .{ disk, name.slice(), value[0] },
                try std.mem.print(&buffer, "{d}\n", .{value[1]}),
            );
        }
    }

    fn look(machine: *const Machine) !Search {
        const fd = machine.tmp.dir.handle;
        const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true };
        const places: Folders = .{
            .sys_block = @intCast(try sys.check(linux.openat(fd, "block", flags, 0))),
            .dev = @intCast(try sys.check(linux.openat(fd, "dev", flags, 0))),
        };
        defer places.close();
        return search(places);
    }
};

fn marked(first: u64, last: u64) TestTable {
    return .init(
        &.{
            .{ .name = "system", .first = 40, .last = 1000 },
            .{ .name = marked_partition.name, .first = first, .last = last },
        },
    );
}

test "the largest marked partition of all disks is found, however the kernel names it" {
    var machine: Machine = try .init();
    defer machine.tmp.cleanup();
    try testing.expectEqual(Search{}, try machine.look());
    try machine.add("sda", null, &.{});
    try machine.add("vda", &marked(2048, 9999), &.{.{ .number = 2, .first = 2048, .last = 9999 }});
    try machine.add(
        "nvme0n1",
        &marked(2048, 99_999),
        &.{.{ .number = 2, .first = 2048, .last = 99_999 }},
    );
    const seen = try machine.look();
    try testing.expectEqual(3, seen.disks);
    try testing.expectEqualStrings("nvme0n1p2", seen.found.?.name.slice());
    try testing.expectEqual((100_000 - 2048) * 512, seen.found.?.size);
}

test "a partition that the kernel reports elsewhere or not at all is left alone, and so are disks that are not hardware" {
    var machine: Machine = try .init();
    defer machine.tmp.cleanup();
    try machine.add("vda", &marked(2048, 9999), &.{});
    try machine.add(
        "vdb",
        &marked(2048, 9999),
        &.{.{ .number = 2, .first = 2049, .last = 10_000 }},
    );
    try machine.add("vdc", &marked(2048, 9999), &.{.{ .number = 2, .first = 2048, .last = 9998 }});
    try machine.add("vdd", &marked(2048, 9999), &.{.{ .number = 1, .first = 2048, .last = 9999 }});
    try machine.add("nbd0", &marked(2048, 9999), &.{.{ .number = 2, .first = 2048, .last = 9999 }});
    const seen = try machine.look();
    try testing.expectEqual(4, seen.disks);
    try testing.expectEqual(null, seen.found);
}

test "each reason fits the length of a boot's text" {
    const name = Name.of(&@as([20]u8, @splat('n'))).?;
    for ([_]OpenFailure{
        .{ .none_of = 0 },
        .{ .none_of = names_max },
        .{ .too_small = name },
        .{ .in_use = name },
        .{ .unusable = .{ .name = name, .errno = 13 } },
    }) |failure| {
        var buffer: [64]u8 = undefined;
        _ = try std.mem.print(&buffer, "{f}", .{&failure});
    }
}
