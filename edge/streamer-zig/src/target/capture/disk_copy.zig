//! Copies a disk onto another one of the same size, for `capture`. Invariants: what is zero on the
//! first reads as zeros on the second, without being sent; until the copy is whole and synced, the
//! second has no partition table and no file system, because its first MiB comes last.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const assert = std.debug.assert;

pub const DiskCopy = @This();

from_fd: i32,
to_fd: i32,
/// Of both, in bytes.
size: u64,
/// A disk discards, a file punches a hole.
is_device: bool,
/// Of `chunk_size` bytes.
buffer: []u8,
/// Bytes that were sent.
written: u64 = 0,
/// Bytes that were read.
done: u64 = 0,

pub const chunk_size = 1 << 20;
/// What a disk begins with: its partition table, or the head of its file system.
const head_size = chunk_size;
/// Synced at once: bounds what waits in memory, and tells how far the copy is.
const piece_size = 64 << 20;
/// Runs of zeros this long are not sent.
const unit_size = 64 << 10;

pub const Problem = union(enum) {
    /// Where the disk cannot be read.
    unreadable: u64,
    /// Where the edge did not take what was written.
    not_written: u64,

    /// At most 64 characters, the limit of a boot's text.
    pub fn format(problem: Problem, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        switch (problem) {
            .unreadable => |at| try writer.print("the disk cannot be read at byte {d}", .{at}),
            .not_written => |at| try writer.print("the edge did not keep byte {d}", .{at}),
        }
    }
};

pub const Progress = struct {
    context: *anyopaque,
    note: *const fn (context: *anyopaque, copy: *const DiskCopy) void,
};

/// Returns what went wrong; null: the copy is whole, and kept. It may be run again after any end.
pub fn run(copy: *DiskCopy, progress: ?Progress) ?Problem {
    assert(copy.buffer.len == chunk_size);
    const head = @min(copy.size, head_size);
    // An earlier copy is none from here on.
    if (copy.clear(0, head)) |problem| return problem;
    if (copy.sync(0)) |problem| return problem;
    var at: u64 = head;
    while (at < copy.size) {
        const length = @min(copy.size - at, piece_size);
        if (copy.copyPiece(at, length)) |problem| return problem;
        at += length;
        if (progress) |told| told.note(told.context, copy);
    }
    if (copy.copyPiece(0, head)) |problem| return problem;
    if (progress) |told| told.note(told.context, copy);
    assert(copy.done == copy.size);
    return null;
}

fn copyPiece(copy: *DiskCopy, at: u64, length: u64) ?Problem {
    if (copy.clear(at, length)) |problem| return problem;
    var offset = at;
    while (offset < at + length) {
        const bytes = copy.buffer[0..@intCast(@min(at + length - offset, chunk_size))];
        const filled = sys.readAt(copy.from_fd, bytes, offset) catch
            return .{ .unreadable = offset };
        if (filled < bytes.len) return .{ .unreadable = offset + filled };
        if (copy.writeUnits(bytes, offset)) |problem| return problem;
        offset += bytes.len;
        copy.done += bytes.len;
    }
    return copy.sync(at);
}

/// Writes what is not zero, neighbours at once.
fn writeUnits(copy: *DiskCopy, bytes: []const u8, offset: u64) ?Problem {
    var at: usize = 0;
    while (at < bytes.len) {
        var end = at;
        while (end < bytes.len) {
            const unit = bytes[end..@min(bytes.len, end + unit_size)];
            if (std.mem.allEqual(u8, unit, 0)) break;
            end += unit.len;
        }
        if (end > at) {
            sys.writeAllAt(copy.to_fd, bytes[at..end], offset + at) catch
                return .{ .not_written = offset + at };
            copy.written += end - at;
        }
        at = @min(bytes.len, end + unit_size);
    }
    return null;
}

/// Makes a range of the second disk read as zeros.
fn clear(copy: *const DiskCopy, at: u64, length: u64) ?Problem {
    const BLKDISCARD = linux.IOCTL.IO(0x12, 119);
    const punch_hole_keep_size = 2 | 1;
    const range = [2]u64{ at, length };
    const rc = if (copy.is_device)
        linux.ioctl(copy.to_fd, BLKDISCARD, @intFromPtr(&range))
    else
        linux.fallocate(copy.to_fd, punch_hole_keep_size, @intCast(at), @intCast(length));
    return if (linux.errno(rc) == .SUCCESS) null else .{ .not_written = at };
}

fn sync(copy: *const DiskCopy, at: u64) ?Problem {
    return if (linux.errno(linux.fdatasync(copy.to_fd)) == .SUCCESS) null else .{
        .not_written = at,
    };
}

const testing = std.testing;

const Disks = struct {
    tmp: testing.TmpDir,
    from: std.Io.File,
    to: std.Io.File,
    content: []u8,
    buffer: []u8,

    /// `size` bytes with data here and there, and a second disk full of other bytes.
    fn init(size: usize) !Disks {
        var tmp = testing.tmpDir(.{});
        errdefer tmp.cleanup();
        const content = try testing.allocator.alloc(u8, size);
        errdefer testing.allocator.free(content);
        @memset(content, 0xee);

        const from = try tmp.dir.createFile(testing.io, "from", .{ .read = true });
        const to = try tmp.dir.createFile(testing.io, "to", .{ .read = true });
        try sys.writeAllAt(to.handle, content, 0);
        @memset(content, 0);
        content[0] = 1;
        // One byte at the end of a unit, a run over the end of a chunk, and the last byte.
        if (size > 3 << 20) {
            content[(1 << 20) + unit_size - 1] = 2;
            @memset(content[(2 << 20) - 100 ..][0..200], 3);
        }
        content[size - 1] = 4;
        try sys.writeAllAt(from.handle, content, 0);
        return .{
            .tmp = tmp,
            .from = from,
            .to = to,
            .content = content,
            .buffer = try testing.allocator.alloc(u8, chunk_size),
        };
    }

    fn deinit(disks: *Disks) void {
        disks.from.close(testing.io);
        disks.to.close(testing.io);
        testing.allocator.free(disks.content);
        testing.allocator.free(disks.buffer);
        disks.tmp.cleanup();
    }

    fn copyOf(disks: *const Disks) DiskCopy {
        return .{
            .from_fd = disks.from.handle,
            .to_fd = disks.to.handle,
            .size = disks.content.len,
            .is_device = false,
            .buffer = disks.buffer,
        };
    }

    fn expectEqual(disks: *const Disks) !void {
        const copied = try testing.allocator.alloc(u8, disks.content.len);
        defer testing.allocator.free(copied);
        try testing.expectEqual(copied.len, try sys.readAt(disks.to.handle, copied, 0));
        try testing.expect(std.mem.eql(u8, disks.content, copied));
    }
};

test "a copy has the same bytes, and only units with data are sent" {
    for ([_]usize{ 512, chunk_size - 512, chunk_size, (5 << 20) + 512, (66 << 20) + 4096 }) |size| {
        var disks: Disks = try .init(size);
        defer disks.deinit();
        var copy = disks.copyOf();
        try testing.expectEqual(null, copy.run(null));
        try disks.expectEqual();
        try testing.expectEqual(size, copy.done);
        // Those around the bytes that are set.
        try testing.expect(copy.written <= 6 * unit_size);
        // What has changed since is copied again, also what is zero now.
        @memset(disks.content[0 .. size / 2], 0);
        disks.content[size / 4] = 9;
        try sys.writeAllAt(disks.from.handle, disks.content, 0);
        var again = disks.copyOf();
        try testing.expectEqual(null, again.run(null));
        try disks.expectEqual();
    }
}

test "a copy that ends early has no head" {
    var disks: Disks = try .init(5 << 20);
    defer disks.deinit();
    // The disk is cut off under the copy.
    var copy = disks.copyOf();
    try disks.from.setLength(testing.io, (3 << 20) + 700);
    try testing.expectEqual((3 << 20) + 700, copy.run(null).?.unreadable);
    var head: [head_size]u8 = undefined;
    _ = try sys.readAt(disks.to.handle, &head, 0);
    try testing.expect(std.mem.allEqual(u8, &head, 0));
}

test "bytes that cannot be written are named" {
    var disks: Disks = try .init(5 << 20);
    defer disks.deinit();
    var copy = disks.copyOf();
    copy.to_fd = -1;
    try testing.expectEqual(0, copy.run(null).?.not_written);
}

test "progress is told piece by piece" {
    const Teller = struct {
        told: u32 = 0,
        fn note(context: *anyopaque, copy: *const DiskCopy) void {
            const teller: *@This() = @ptrCast(@alignCast(context));
            teller.told += 1;
            assert(copy.done <= copy.size);
        }
    };
    var disks: Disks = try .init((65 << 20) + 4096);
    defer disks.deinit();
    var copy = disks.copyOf();
    var teller: Teller = .{};
    try testing.expectEqual(null, copy.run(.{ .context = &teller, .note = Teller.note }));
    try testing.expectEqual(3, teller.told);
}

test "a problem fits a boot's text" {
    for ([_]Problem{
        .{ .unreadable = std.math.maxInt(u64) },
        .{ .not_written = std.math.maxInt(u64) },
    }) |problem| {
        var buffer: [64]u8 = undefined;
        _ = try std.mem.print(&buffer, "{f}", .{problem});
    }
}
