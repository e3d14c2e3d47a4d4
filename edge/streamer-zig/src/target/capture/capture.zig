//! `bootfarm-target capture`: sends a disk of this machine to the version that its boot writes
//! (docs/guides/capture.md). The initramfs runs it in place of the machine's system. Invariants:
//! the machine's disk is opened for reading alone, and exclusively; of several disks none is chosen
//! that was not named.

const std = @import("std");
const linux = std.os.linux;
const base = @import("base");
const sys = @import("host").sys;
const console = @import("../console.zig");
const marked_disk = @import("../local_disk/marked_disk.zig");
const sys_time = @import("../sys_time.zig");
const DiskCopy = @import("disk_copy.zig");
const assert = std.debug.assert;

const Folders = marked_disk.Folders;
const Name = marked_disk.Name;

/// More than a machine has that one captures; the rest is not looked at.
const disks_max = 32;
/// Controllers find their disks a while after their drivers are loaded; the last look counts.
const wait_us = 10 * std.time.us_per_s;
const look_interval_us = 200 * std.time.us_per_ms;
/// Any disk, if it is the only one.
const any = "auto";
/// Of a boot's text.
const text_size_max = 64;

pub const Disk = struct {
    name: Name,
    size: u64,

    /// Prints what a person knows a disk by.
    fn print(disk: *const Disk, folders: Folders) void {
        var model: [64]u8 = undefined;
        var serial: [64]u8 = undefined;
        console.say("disk {s}: {d} bytes, model {s}, serial {s}", .{
            disk.name.slice(),
            disk.size,
            firstOf(folders, disk, &.{"device/model"}, &model),
            firstOf(folders, disk, &.{ "serial", "device/serial", "device/vpd_pg80" }, &serial),
        });
    }
};

/// Returns the first of these files of a disk that has text.
fn firstOf(
    folders: Folders,
    disk: *const Disk,
    files: []const []const u8,
    buffer: *[64]u8,
) []const u8 {
    for (files) |file| {
        var path: marked_disk.Path = .{};
        const name = path.join(&.{ disk.name.slice(), file });
        const found = sys.readFileIn(folders.sys_block, name, buffer) catch continue;
        for (found) |*byte| if (!std.ascii.isPrint(byte.*)) {
            byte.* = ' ';
        };
        const text = std.mem.trim(u8, found, " ");
        if (text.len > 0) return text;
    }
    return "unknown";
}

pub const Choice = union(enum) {
    disk: Disk,
    none,
    several: []const Disk,
    absent: []const u8,

    /// At most `text_size_max` characters; what does not fit is on the console.
    pub fn write(choice: *const Choice, buffer: *[text_size_max]u8) []const u8 {
        var writer: std.Io.Writer = .fixed(buffer);
        switch (choice.*) {
            .disk => unreachable,
            .none => writer.writeAll("no local disk was found, or no driver for it") catch
                unreachable,
            .absent => |name| writer.print("there is no disk {s}", .{
                name[0..@min(name.len, 32)],
            }) catch unreachable,
            .several => |disks| {
                writer.print("name one of {d} disks:", .{disks.len}) catch unreachable;
                for (disks) |*disk| {
                    const before = writer.end;
                    writer.print(" {s}", .{disk.name.slice()}) catch {
                        writer.end = before;
                        break;
                    };
                }
            },
        }
        return writer.buffered();
    }
};

/// Chooses the disk to capture: the one with this name, or the only one.
pub fn choose(disks: []const Disk, wanted: []const u8) Choice {
    if (std.mem.eql(u8, wanted, any)) return switch (disks.len) {
        0 => .none,
        1 => .{ .disk = disks[0] },
        else => .{ .several = disks },
    };
    const name = std.mem.cutPrefix(u8, wanted, "/dev/") orelse wanted;
    for (disks) |disk| if (std.mem.eql(u8, disk.name.slice(), name)) return .{ .disk = disk };
    return .{ .absent = name };
}

const DiskList = struct {
    disks: [disks_max]Disk = undefined,
    count: usize = 0,

    fn of(folders: Folders) DiskList {
        var list: DiskList = .{};
        var names: marked_disk.Names = .init(folders.sys_block);
        for (names.all()) |*name| {
            if (list.count == disks_max or !marked_disk.isLocalDisk(folders, name)) continue;
            const sectors = marked_disk.numberIn(folders, &.{ name.slice(), "size" }) orelse 0;
            // A card reader without a card.
            if (sectors == 0) continue;
            list.disks[list.count] = .{ .name = name.*, .size = sectors *| 512 };
            list.count += 1;
        }
        base.sort(Disk, list.disks[0..list.count], {}, isBefore);
        return list;
    }

    fn isBefore(_: void, a: Disk, b: Disk) bool {
        return std.mem.lessThan(u8, a.name.slice(), b.name.slice());
    }

    fn slice(list: *const DiskList) []const Disk {
        return list.disks[0..list.count];
    }
};

/// Runs the command; what is wrong goes to standard output, for the boot's report.
pub fn run(wanted: []const u8, to: [*:0]const u8) u8 {
    const folders = Folders.open() catch return fail("/sys or /dev is not there", .{});
    defer folders.close();
    const list = waitForDisks(folders, wanted);
    for (list.slice()) |*disk| disk.print(folders);
    const choice = choose(list.slice(), wanted);
    if (choice != .disk) {
        var buffer: [text_size_max]u8 = undefined;
        return fail("{s}", .{choice.write(&buffer)});
    }
    return capture(folders, &choice.disk, to);
}

/// Looks until there is what is wanted. The only disk may not stay the only one: for that the whole
/// time is waited.
fn waitForDisks(folders: Folders, wanted: []const u8) DiskList {
    const until_us = sys.monotonicUs() + wait_us;
    const is_any = std.mem.eql(u8, wanted, any);
    while (true) {
        const list: DiskList = .of(folders);
        const is_found = !is_any and choose(list.slice(), wanted) == .disk;
        if (is_found or sys.monotonicUs() >= until_us) return list;
        const pause = sys_time.timespecOf(look_interval_us);
        _ = linux.nanosleep(&pause, null);
    }
}

fn capture(folders: Folders, disk: *const Disk, to: [*:0]const u8) u8 {
    const name = disk.name.slice();
    // With O_EXCL the open fails while something is mounted from it, and nothing mounts it later.
    const read: linux.O = .{ .EXCL = true, .CLOEXEC = true };
    const from_rc = linux.openat(folders.dev, &disk.name.buffer, read, 0);
    const from_fd: i32 = switch (linux.errno(from_rc)) {
        .SUCCESS => @intCast(from_rc),
        .BUSY => return fail("{s} is in use by this machine", .{name}),
        else => |errno| return fail("{s} cannot be read (error {d})", .{
            name, @backingInt(errno),
        }),
    };
    defer sys.close(from_fd);
    const write: linux.O = .{ .ACCMODE = .RDWR, .CLOEXEC = true };
    const to_fd: i32 = @intCast(sys.check(linux.open(to, write, 0)) catch
        return fail("{s} takes no writes: it is no version in maintenance", .{to}));
    defer sys.close(to_fd);
    const size = marked_disk.sizeOfDevice(from_fd) orelse return fail("{s} has no size", .{name});
    const size_there = marked_disk.sizeOfDevice(to_fd) orelse return fail("{s} has no size", .{to});
    if (size != size_there)
        return fail("{s} has {d} bytes, the version {d}", .{ name, size, size_there });
    return copyDisk(name, .{
        .from_fd = from_fd,
        .to_fd = to_fd,
        .size = size,
        .is_device = true,
        .buffer = &copy_buffer,
    });
}

var copy_buffer: [DiskCopy.chunk_size]u8 align(4096) = undefined;

const Teller = struct {
    name: []const u8,
    percent: u64 = 0,

    /// Every twentieth part.
    fn note(context: *anyopaque, copy: *const DiskCopy) void {
        const teller: *Teller = @ptrCast(@alignCast(context));
        const percent = copy.done * 100 / copy.size / 5 * 5;
        if (percent == teller.percent) return;
        teller.percent = percent;
        console.say("capture of {s}: {d} %, {d} MiB sent", .{
            teller.name, percent, copy.written >> 20,
        });
    }
};

fn copyDisk(name: []const u8, of: DiskCopy) u8 {
    var copy = of;
    console.say("capture of {s} begins: {d} bytes; the machine's disk is only read", .{
        name, copy.size,
    });
    var teller: Teller = .{ .name = name };
    const problem = copy.run(.{ .context = &teller, .note = Teller.note });
    if (problem) |known| return fail("{f}", .{known});
    assert(copy.done == copy.size);
    console.say("capture of {s} is whole: {d} bytes, of which {d} were sent", .{
        name, copy.done, copy.written,
    });
    return 0;
}

fn fail(comptime format: []const u8, arguments: anytype) u8 {
    console.print(format, arguments);
    return 1;
}

const testing = std.testing;

fn testDisk(name: []const u8, size: u64) Disk {
    return .{ .name = Name.of(name).?, .size = size };
}

test "the only disk is captured, and of several the one that is named" {
    const one = [_]Disk{testDisk("sda", 512)};
    const two = [_]Disk{ testDisk("sda", 512), testDisk("nvme0n1", 1024) };
    try testing.expectEqualStrings("sda", choose(&one, "auto").disk.name.slice());
    try testing.expectEqualStrings("nvme0n1", choose(&two, "nvme0n1").disk.name.slice());
    try testing.expectEqualStrings("sda", choose(&two, "/dev/sda").disk.name.slice());
    try testing.expectEqual(.none, choose(&.{}, "auto"));
    // A partition is no disk.
    try testing.expectEqualStrings("sda1", choose(&two, "sda1").absent);
}

test "a choice that cannot be made says why, in a boot's text" {
    var buffer: [text_size_max]u8 = undefined;
    const two = [_]Disk{ testDisk("sda", 512), testDisk("nvme0n1", 1024) };
    const several: Choice = .{ .several = &two };
    try testing.expectEqualStrings("name one of 2 disks: sda nvme0n1", several.write(&buffer));
    const many: [disks_max]Disk = @splat(testDisk("nvme10n1", 512));
    const cut: Choice = .{ .several = &many };
    try testing.expectEqualStrings(
        "name one of 32 disks: nvme10n1 nvme10n1 nvme10n1 nvme10n1",
        cut.write(&buffer),
    );
    const absent: Choice = .{ .absent = "sdz" };
    try testing.expectEqualStrings("there is no disk sdz", absent.write(&buffer));
    const none: Choice = .none;
    try testing.expect(none.write(&buffer).len > 0);
}
