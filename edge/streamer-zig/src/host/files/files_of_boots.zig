//! Files about finished boots in one directory, such as BOOT_ID.pcap, each complete or absent.
//! Their number and size are limited: the oldest goes first. One thread writes; another one may
//! read and remove.

const std = @import("std");
const base = @import("base");
const sys = @import("../sys.zig");
const Io = std.Io;
const linux = std.os.linux;

pub const FilesOfBoots = @This();

io: Io,
dir: Io.Dir,
kind: Kind,
limits: Limits,

pub const Limits = struct { count: u32, size: u64 };

pub const Kind = enum {
    /// The packets of a boot.
    pcap,
    /// Everything that it read, as a list.
    reads,
    /// The summary of that, by file.
    json,

    pub fn suffix(kind: Kind) []const u8 {
        return switch (kind) {
            .pcap => ".pcap",
            .reads => ".reads",
            .json => ".json",
        };
    }
};

const temporary = "file.new";
/// With the zero at its end.
pub const Name = [base.Uuid.text_size + ".reads".len + 1]u8;

pub const Entry = struct { boot_id: base.Uuid, size: u64, modified_ns: i96 };

/// Writes a head and then what `parts` iterates over; `size` is that of both.
pub fn write(
    files: *const FilesOfBoots,
    boot_id: base.Uuid,
    size: u64,
    head: []const u8,
    parts: anytype,
) sys.Error!void {
    files.makeRoom(size);
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .TRUNC = true, .CLOEXEC = true };
    const fd: i32 =
        @intCast(try sys.check(linux.openat(files.dir.handle, temporary, flags, 0o600)));
    defer sys.close(fd);
    try sys.writeAll(fd, head);
    var iterator = parts;
    while (iterator.next()) |part| try sys.writeAll(fd, part);
    var buffer: Name = undefined;
    const name = files.nameOf(boot_id, &buffer);
    _ = try sys.check(linux.renameat(files.dir.handle, temporary, files.dir.handle, name));
}

/// Returns the oldest file that `skips` does not name, or null.
pub fn oldest(files: *const FilesOfBoots, skips: []const base.Uuid) ?Entry {
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
pub fn read(files: *const FilesOfBoots, boot_id: base.Uuid, buffer: []u8) ?[]u8 {
    var name: Name = undefined;
    const rc =
        linux.openat(files.dir.handle, files.nameOf(boot_id, &name), .{ .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return null);
    defer sys.close(fd);
    const size = sys.readAt(fd, buffer, 0) catch return null;
    return if (size == buffer.len) null else buffer[0..size];
}

pub fn remove(files: *const FilesOfBoots, boot_id: base.Uuid) void {
    var name: Name = undefined;
    _ = linux.unlinkat(files.dir.handle, files.nameOf(boot_id, &name), 0);
}

/// Removes the oldest files until one of `size` bytes more is within the limits.
pub fn makeRoom(files: *const FilesOfBoots, size: u64) void {
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

/// Returns the next file and skips those of another kind.
fn next(files: *const FilesOfBoots, iterator: *Io.Dir.Iterator) ?Entry {
    while (iterator.next(files.io) catch null) |entry| {
        const text = std.mem.cutSuffix(u8, entry.name, files.kind.suffix()) orelse continue;
        const boot_id = base.Uuid.parse(text) catch continue;
        const stat = files.dir.statFile(files.io, entry.name, .{}) catch continue;
        if (stat.kind != .file) continue;
        return .{ .boot_id = boot_id, .size = stat.size, .modified_ns = stat.mtime.nanoseconds };
    }
    return null;
}

pub fn nameOf(files: *const FilesOfBoots, boot_id: base.Uuid, into: *Name) [:0]const u8 {
    const text = boot_id.toText();
    return std.mem.printSentinel(into, "{s}{s}", .{ &text, files.kind.suffix() }, 0) catch
        unreachable;
}

const testing = std.testing;

const TestParts = struct {
    left: u8,

    fn next(parts: *TestParts) ?[]const u8 {
        if (parts.left == 0) return null;
        parts.left -= 1;
        return "part";
    }
};

test "files are complete, and the oldest of a kind goes when there are too many" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    const files: FilesOfBoots = .{
        .io = testing.io,
        .dir = tmp.dir,
        .kind = .pcap,
        .limits = .{ .count = 2, .size = 1 << 20 },
    };
    var others = files;
    others.kind = .reads;
    const parts: TestParts = .{ .left = 2 };
    try others.write(.fromRandom(@splat(9)), 12, "head", parts);
    for (1..4) |number| {
        const id: base.Uuid = .fromRandom(@splat(@intCast(number)));
        try files.write(id, 12, "head", parts);
    }
    var buffer: [256]u8 = undefined;
    try testing.expectEqual(null, files.read(.fromRandom(@splat(1)), &buffer));
    const file = files.read(.fromRandom(@splat(3)), &buffer).?;
    try testing.expectEqualStrings("headpartpart", file);
    const first = files.oldest(&.{}).?;
    try testing.expect(files.oldest(&.{first.boot_id}) != null);
    files.remove(first.boot_id);
    try testing.expectEqual(null, files.read(first.boot_id, &buffer));
    try testing.expect(others.oldest(&.{}).?.boot_id.eql(.fromRandom(@splat(9))));
    others.makeRoom(1 << 20);
    try testing.expectEqual(null, others.oldest(&.{}));
}
