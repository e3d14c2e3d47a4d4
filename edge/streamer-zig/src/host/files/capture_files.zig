//! The captures of finished boots as files in one directory: BOOT_ID.pcap, each complete or absent.
//! Their number and size are limited: the oldest goes first. One thread writes; another one may
//! read and remove.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const Io = std.Io;
const linux = std.os.linux;

pub const CaptureFiles = @This();

io: Io,
dir: Io.Dir,
limits: Limits,

pub const Limits = struct { count: u32, size: u64 };
/// Limits for captures that wait to be sent.
pub const limits_waiting: Limits = .{ .count = 64, .size = 8 << 20 };
/// Limits for the directory of `--capture`.
pub const limits_kept: Limits = .{ .count = 1000, .size = 128 << 20 };

const suffix = ".pcap";
const temporary = "capture.new";
const name_size = base.Uuid.text_size + suffix.len;

pub const Entry = struct { boot_id: base.Uuid, size: u64, modified_ns: i96 };

pub fn write(
    files: *const CaptureFiles,
    boot_id: base.Uuid,
    store: *const core.boot.CaptureStore,
    slot: *const core.boot.CaptureStore.Slot,
) sys.Error!void {
    files.makeRoom(core.boot.CaptureStore.header_size + slot.size);
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .TRUNC = true, .CLOEXEC = true };
    const fd: i32 =
        @intCast(try sys.check(linux.openat(files.dir.handle, temporary, flags, 0o600)));
    defer sys.close(fd);
    try sys.writeAll(fd, &core.boot.CaptureStore.fileHeader());
    var parts = store.parts(slot);
    while (parts.next()) |part| try sys.writeAll(fd, part);
    const name = nameOf(boot_id);
    _ = try sys.check(linux.renameat(files.dir.handle, temporary, files.dir.handle, &name));
}

/// Returns the oldest capture that `skips` does not name, or null.
pub fn oldest(files: *const CaptureFiles, skips: []const base.Uuid) ?Entry {
    var found: ?Entry = null;
    var iterator = files.dir.iterate();
    while (files.next(&iterator)) |entry| {
        const is_skipped = for (skips) |id| {
            if (id.eql(entry.boot_id)) break true;
        } else false;
        if (is_skipped) continue;
        if (found == null or entry.modified_ns < found.?.modified_ns) found = entry;
    }
    return found;
}

/// Returns null if it no longer exists or does not fit.
pub fn read(files: *const CaptureFiles, boot_id: base.Uuid, buffer: []u8) ?[]u8 {
    const name = nameOf(boot_id);
    const rc = linux.openat(files.dir.handle, &name, .{ .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return null);
    defer sys.close(fd);
    const size = sys.readAt(fd, buffer, 0) catch return null;
    return if (size == buffer.len) null else buffer[0..size];
}

pub fn remove(files: *const CaptureFiles, boot_id: base.Uuid) void {
    const name = nameOf(boot_id);
    _ = linux.unlinkat(files.dir.handle, &name, 0);
}

fn makeRoom(files: *const CaptureFiles, size: u64) void {
    for (0..files.limits.count + 1) |_| {
        var count: u32 = 0;
        var total: u64 = 0;
        var iterator = files.dir.iterate();
        while (files.next(&iterator)) |entry| {
            count += 1;
            total += entry.size;
        }
        if (count < files.limits.count and total + size <= files.limits.size) return;
        const entry = files.oldest(&.{}) orelse return;
        files.remove(entry.boot_id);
    }
}

/// Returns the next capture and skips other files.
fn next(files: *const CaptureFiles, iterator: *Io.Dir.Iterator) ?Entry {
    while (iterator.next(files.io) catch null) |entry| {
        const text = std.mem.cutSuffix(u8, entry.name, suffix) orelse continue;
        const boot_id = base.Uuid.parse(text) catch continue;
        const stat = files.dir.statFile(files.io, entry.name, .{}) catch continue;
        if (stat.kind != .file) continue;
        return .{ .boot_id = boot_id, .size = stat.size, .modified_ns = stat.mtime.nanoseconds };
    }
    return null;
}

fn nameOf(boot_id: base.Uuid) [name_size:0]u8 {
    var name: [name_size:0]u8 = undefined;
    name[0..base.Uuid.text_size].* = boot_id.toText();
    name[base.Uuid.text_size..].* = suffix.*;
    name[name_size] = 0;
    return name;
}

const testing = std.testing;

test "captures are complete files, and the oldest goes when there are too many" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    const files: CaptureFiles =
        .{ .io = testing.io, .dir = tmp.dir, .limits = .{ .count = 2, .size = 1 << 20 } };
    const blocks = try testing.allocator.alloc(core.boot.CaptureStore.Block, 4);
    defer testing.allocator.free(blocks);
    var store: core.boot.CaptureStore = try .init(testing.allocator, blocks, 1);
    defer store.deinit(testing.allocator);
    for (1..4) |number| {
        const id: base.Uuid = .fromRandom(@splat(@intCast(number)));
        const slot = store.slotFor(id).?;
        store.add(slot, .{ .bytes = "a frame", .size = 60, .unix_ns = number });
        try files.write(id, &store, slot);
        store.release(slot);
    }
    var buffer: [256]u8 = undefined;
    try testing.expectEqual(null, files.read(.fromRandom(@splat(1)), &buffer));
    const file = files.read(.fromRandom(@splat(3)), &buffer).?;
    try testing.expectEqual(24 + 16 + 7, file.len);
    try testing.expect(std.mem.endsWith(u8, file, "a frame"));
    const first = files.oldest(&.{}).?;
    try testing.expect(files.oldest(&.{first.boot_id}) != null);
    files.remove(first.boot_id);
    try testing.expectEqual(null, files.read(first.boot_id, &buffer));
}
