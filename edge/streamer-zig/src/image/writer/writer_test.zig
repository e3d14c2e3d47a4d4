//! Tests of the writers: what they write is read back as the same disk. Other programs read their
//! files in e2e/sockets/image-export.test.ts.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const container = @import("../container/container.zig");
const writer_module = @import("writer.zig");
const Chain = container.Chain;
const FdSource = store.image_source.FdSource;
const Format = writer_module.Format;
const Writer = writer_module.Writer;
const testing = std.testing;
const io = testing.io;

const part_size = 4096;
const id: base.Uuid = .fromRandom(@splat(9));
const not_canceled: std.atomic.Value(bool) = .init(false);

fn byteAt(offset: u64) u8 {
    return @as(u8, @truncate(offset / 512 *% 7)) | 1;
}

fn create(tmp: *testing.TmpDir) !std.Io.File {
    return tmp.dir.createFile(io, "out", .{ .read = true });
}

fn noParent(
    _: *anyopaque,
    _: []const u8,
) error{ ParentMissing, ParentUnreadable }!store.image_source.ImageSource {
    return error.ParentMissing;
}

/// Writes a disk that has data at some places, and reads it back.
fn expectDisk(format: Format, disk_size: u64, places: []const u64) !void {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const file = try create(&tmp);
    var source: FdSource = blk: {
        errdefer file.close(io);
        try write(format, file.handle, disk_size, places);
        break :blk try .fromFd(file.handle, &not_canceled);
    };
    defer source.close();
    const chain = try testing.allocator.create(Chain);
    defer testing.allocator.destroy(chain);
    var nothing: u8 = 0;
    try chain.open(testing.allocator, source.source(), &.{
        .format = if (format == .qcow2) .qcow2 else .vhdx,
        .directory = .{ .context = &nothing, .open = noParent },
    });
    defer chain.close();
    try testing.expectEqual(disk_size, chain.size());
    var found = chain.nextData(0);
    for (places) |place| {
        // Blocks of the format are larger: their zeros count as data.
        try testing.expect(found.? <= place);
        var buffer: [3 * part_size]u8 = undefined;
        const from = place -| part_size;
        const wanted: usize = @intCast(@min(buffer.len, disk_size - from));
        try chain.read(buffer[0..wanted], from);
        for (buffer[0..wanted], from..) |byte, offset| {
            const is_data = isIn(places, offset);
            try testing.expectEqual(if (is_data) byteAt(offset) else 0, byte);
        }
        found = chain.nextData(place);
    }
}

fn isIn(places: []const u64, offset: u64) bool {
    for (places) |place| if (offset >= place and offset - place < part_size) return true;
    return false;
}

fn write(format: Format, fd: i32, disk_size: u64, places: []const u64) !void {
    var writer = (try Writer.init(testing.allocator, format, fd, disk_size, id)).?;
    defer writer.deinit(testing.allocator);
    const layout = writer.layout();
    for (places) |place| {
        var bytes: [part_size]u8 = undefined;
        for (&bytes, place..) |*byte, offset| byte.* = byteAt(offset);
        const left: usize = @intCast(@min(part_size, disk_size - place));
        var done: usize = 0;
        while (done < left) {
            const at = try layout.placeOf(place + done);
            const count: usize = @intCast(@min(at.size, left - done));
            try store.@"export".writeAt(fd, bytes[done..][0..count], at.at);
            done += count;
        }
    }
    try layout.finish();
}

test "a disk is read back from each format, whatever its size and wherever it has data" {
    const mib = 1 << 20;
    const gib = 1 << 30;
    for ([_]Format{ .qcow2, .vhdx }) |format| {
        try expectDisk(format, 512, &.{0});
        try expectDisk(format, 512, &.{});
        try expectDisk(format, 64 << 10, &.{ 0, 60 << 10 });
        // Neighbors, both sides of the borders of clusters, blocks and tables, and the last sector.
        try expectDisk(format, 40 * mib + 512, &.{
            4096,              8192,     60 << 10, 64 << 10, 2 * mib - 4096, 2 * mib,
            39 * mib + 12_288, 40 * mib,
        });
        // Several L2 tables of qcow2; several chunks of VHDX, each with the entry of a bitmap.
        try expectDisk(format, 13 * gib, &.{
            0,               512 * mib - 4096, 512 * mib, 4 * gib - 4096, 4 * gib, 8 * gib,
            12 * gib + 4096, 13 * gib - 4096,
        });
    }
    // Large blocks of VHDX.
    try expectDisk(.vhdx, 5 << 40, &.{ 0, 32 * mib, (5 << 40) - 4096 });
    try expectDisk(.qcow2, 1 << 50, &.{ 0, (1 << 50) - 4096 });
}

test "reference counts fill several blocks" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const file = try create(&tmp);
    defer file.close(io);
    const clusters = 70_000;
    var writer = (try Writer.init(testing.allocator, .qcow2, file.handle, clusters << 16, id)).?;
    defer writer.deinit(testing.allocator);
    const layout = writer.layout();
    for (0..clusters) |cluster| _ = try layout.placeOf(cluster << 16);
    try layout.finish();
    var header: [64]u8 = undefined;
    _ = try file.readPositionalAll(io, &header, 0);
    const table_at = std.mem.readInt(u64, header[48..56], .big);
    try testing.expectEqual(1, std.mem.readInt(u32, header[56..60], .big));
    const size = (try file.stat(io)).size;
    try testing.expectEqual(0, size % (64 << 10));
    var counted: u64 = 0;
    for (0..3) |index| {
        var entry: [8]u8 = undefined;
        _ = try file.readPositionalAll(io, &entry, table_at + index * 8);
        const counts = try testing.allocator.alloc(u8, 64 << 10);
        defer testing.allocator.free(counts);
        const at = std.mem.readInt(u64, &entry, .big);
        try testing.expectEqual(counts.len, try file.readPositionalAll(io, counts, at));
        for (0..counts.len / 2) |cluster|
            counted += std.mem.readInt(u16, counts[cluster * 2 ..][0..2], .big);
    }
    try testing.expectEqual(size >> 16, counted);
}

test "a disk that a format cannot hold is refused before anything is written" {
    const qcow2_max = (32 << 20) / 8 * (512 << 20);
    for ([_]struct { Format, u64 }{
        .{ .qcow2, qcow2_max + 512 },
        .{ .vhdx, (64 << 40) + 512 },
    }) |case| try testing.expectError(
        error.TooLarge,
        Writer.init(testing.allocator, case[0], -1, case[1], id),
    );
    try testing.expectEqual(null, try Writer.init(testing.allocator, .raw, -1, 512, id));
}

test "a file that cannot be written is reported, and never has a header" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    (try create(&tmp)).close(io);
    const file = try tmp.dir.openFile(io, "out", .{});
    defer file.close(io);
    for ([_]Format{ .qcow2, .vhdx }) |format|
        try testing.expectError(error.WriteFailed, write(format, file.handle, 512, &.{}));
    try testing.expectEqual(0, (try file.stat(io)).size);
}
