//! Tests of snapshot.zig: what is read is what was there at the moment, and nothing that a snapshot
//! meets harms the layer.

const std = @import("std");
const base = @import("base");
const BlockSource = @import("../block_source.zig");
const LayerSnapshot = @import("snapshot.zig");
const LinuxFiles = @import("../files/linux_files.zig");
const WriteLayer = @import("write_layer.zig");
const testing = std.testing;
const gpa = testing.allocator;
const block_size = WriteLayer.block_size;

const block_count = 700;
/// Ends within a block.
const disk_size = (block_count - 1) * block_size + 1536;

/// A layer and what it holds. Must not move.
const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    batch: *WriteLayer.Batch,
    layer: WriteLayer,
    prng: base.Prng,
    /// The byte that fills a block; null: the layer does not own it.
    content: [block_count]?u8 = @splat(null),
    snapshot: LayerSnapshot = undefined,

    fn init(fixture: *Fixture, limit_bytes: u64) !void {
        fixture.* = .{
            .tmp = testing.tmpDir(.{}),
            .on = undefined,
            .batch = try gpa.create(WriteLayer.Batch),
            .layer = undefined,
            .prng = .init(1),
        };
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        fixture.layer = try .create(gpa, fixture.on.files(), "one", .{
            .layer_id = .fromBytes(@splat(1)),
            .binding = .{
                .class = .edge_persistent,
                .device_id = .fromBytes(@splat(2)),
                .version_id = .fromBytes(@splat(3)),
                .disk_size = disk_size,
            },
            .limit_bytes = limit_bytes,
            .sequence = 0,
        }, .{
            .context = @constCast("b"),
            .vtable = &.{ .read = readBelow },
            .size = disk_size,
        });
    }

    fn readBelow(_: *anyopaque, buffer: []u8, _: u64) BlockSource.ReadError!void {
        @memset(buffer, 'b');
    }

    fn deinit(fixture: *Fixture) void {
        fixture.layer.close(gpa);
        gpa.destroy(fixture.batch);
        fixture.tmp.cleanup();
    }

    fn fill(fixture: *Fixture, block: usize, count: usize, byte: u8) !void {
        var bytes: [64 * block_size]u8 = undefined;
        @memset(&bytes, byte);
        const size = @min(count * block_size, disk_size - block * block_size);
        fixture.layer.write(bytes[0..size], block * block_size) catch |err| {
            if (err != error.Busy) return err;
            try fixture.layer.flush(fixture.batch);
            try fixture.layer.write(bytes[0..size], block * block_size);
        };
        @memset(fixture.content[block..][0..count], byte);
    }

    fn discard(fixture: *Fixture, block: usize, count: usize) !void {
        const size = @min(count * block_size, disk_size - block * block_size);
        try fixture.layer.discard(block * block_size, size);
        @memset(fixture.content[block..][0..count], 0);
    }

    fn changeAny(fixture: *Fixture) !void {
        const block: usize = @intCast(fixture.prng.below(block_count));
        const most = @min(block_count - block, fixture.prng.pick(usize, &.{ 1, 5, 20, 64 }));
        const count: usize = @intCast(fixture.prng.between(1, most));
        if (fixture.prng.chance(1, 4)) return fixture.discard(block, count);
        try fixture.fill(block, count, @truncate(fixture.prng.nextU64()));
    }

    fn open(fixture: *Fixture, free_bytes_min: u64) !void {
        const files = fixture.on.files();
        fixture.snapshot = try .openWritten(gpa, testing.io, files, "one", free_bytes_min);
    }

    fn begin(fixture: *Fixture) !void {
        try fixture.open(0);
        try fixture.snapshot.begin(&fixture.layer);
    }

    fn end(fixture: *Fixture) void {
        if (fixture.layer.keeper != null) fixture.snapshot.end(&fixture.layer);
        fixture.snapshot.close();
    }

    fn next(fixture: *Fixture) !?LayerSnapshot.Piece {
        while (try fixture.snapshot.read()) if (try fixture.snapshot.take()) |piece| return piece;
        return null;
    }

    fn expectLayer(fixture: *Fixture) !void {
        const bytes = try gpa.alloc(u8, disk_size);
        defer gpa.free(bytes);
        try fixture.layer.read(bytes, 0);
        for (fixture.content, 0..) |content, block| {
            const part = bytes[block * block_size ..];
            const size = @min(block_size, part.len);
            try testing.expect(std.mem.allEqual(u8, part[0..size], content orelse 'b'));
        }
    }
};

fn expectPiece(piece: *const LayerSnapshot.Piece, content: []?u8) !void {
    const count = @divExact(piece.bytes.len, block_size);
    for (content[@intCast(piece.block)..][0..count], 0..) |*held, index| {
        const bytes = piece.bytes[index * block_size ..][0..block_size];
        // The padding of the last block stays zeros.
        const is_last = piece.block + index == block_count - 1;
        const size: usize = if (is_last) 1536 else block_size;
        try testing.expect(std.mem.allEqual(u8, bytes[0..size], held.*.?));
        try testing.expect(std.mem.allEqual(u8, bytes[size..], 0));
        held.* = null;
    }
}

test "a snapshot has each block of its moment once, whatever is written and discarded meanwhile" {
    for (0..20) |seed| {
        var fixture: Fixture = undefined;
        try fixture.init(1 << 30);
        defer fixture.deinit();
        fixture.prng = .init(seed);
        for (0..40) |_| try fixture.changeAny();
        var content = fixture.content;
        try fixture.begin();
        defer fixture.end();
        for (0..fixture.prng.below(60)) |_| try fixture.changeAny();
        while (try fixture.snapshot.read()) {
            for (0..fixture.prng.below(30)) |_| try fixture.changeAny();
            const piece = try fixture.snapshot.take() orelse continue;
            try expectPiece(&piece, &content);
            for (0..fixture.prng.below(30)) |_| try fixture.changeAny();
        }
        for (content) |left| try testing.expectEqual(null, left);
        try fixture.expectLayer();
    }
}

test "a block that changes between its reading and its taking is read again, from its copy" {
    var fixture: Fixture = undefined;
    try fixture.init(1 << 30);
    defer fixture.deinit();
    try fixture.fill(3, 10, 1);
    try fixture.begin();
    defer fixture.end();
    try testing.expect(try fixture.snapshot.read());
    try fixture.fill(5, 1, 2);
    const before = (try fixture.snapshot.take()).?;
    try testing.expectEqual(3, before.block);
    try testing.expectEqual(2 * block_size, before.bytes.len);
    try testing.expect(try fixture.snapshot.read());
    const changed = (try fixture.snapshot.take()).?;
    try testing.expectEqual(5, changed.block);
    try testing.expectEqualSlices(u8, &@as([block_size]u8, @splat(1)), changed.bytes);
    try testing.expect(try fixture.snapshot.read());
    try fixture.discard(6, 1);
    try testing.expectEqual(null, try fixture.snapshot.take());
    try testing.expectEqual(block_size, (try fixture.next()).?.bytes.len);
    try testing.expectEqual(6 * block_size, (try fixture.next()).?.bytes.len);
    try testing.expectEqual(null, try fixture.next());
    // What was taken is not copied any more.
    const copied = fixture.snapshot.copies.?.size;
    try testing.expectEqual(2 * block_size, copied);
    try fixture.fill(3, 10, 3);
    try testing.expectEqual(copied, fixture.snapshot.copies.?.size);
}

test "copies that do not fit below the limit of the layer end the snapshot, and no write" {
    var fixture: Fixture = undefined;
    try fixture.init(12 * block_size);
    defer fixture.deinit();
    try fixture.fill(0, 10, 1);
    try fixture.discard(20, 5);
    try fixture.begin();
    defer fixture.end();
    // Zeros take no space.
    try fixture.discard(20, 5);
    try fixture.fill(0, 2, 2);
    try testing.expect(try fixture.snapshot.read());
    try fixture.fill(2, 1, 3);
    try testing.expectError(error.OverLimit, fixture.snapshot.take());
    try testing.expectError(error.OverLimit, fixture.snapshot.read());
    // They are given up.
    try testing.expectEqual(0, try fixture.on.files().allocated(fixture.snapshot.copies.?.file));
    try fixture.fill(0, 10, 4);
    try fixture.fill(30, 2, 5);
    try fixture.expectLayer();
}

test "an almost full disk begins no snapshot, ends one, and takes the writes" {
    var fixture: Fixture = undefined;
    try fixture.init(1 << 30);
    defer fixture.deinit();
    try fixture.fill(0, 10, 1);
    try testing.expectError(error.NoSpace, fixture.open(std.math.maxInt(u64)));
    try fixture.begin();
    fixture.snapshot.copies.?.free_bytes_min = std.math.maxInt(u64);
    try fixture.fill(0, 1, 2);
    try testing.expectError(error.NoSpace, fixture.snapshot.read());
    fixture.end();
    try fixture.begin();
    fixture.snapshot.copies.?.free_bytes_min = std.math.maxInt(u64);
    try testing.expectError(error.NoSpace, fixture.snapshot.read());
    fixture.end();
    try fixture.begin();
    fixture.layer.is_short = true;
    try fixture.fill(0, 1, 3);
    try testing.expectError(error.NoSpace, fixture.snapshot.read());
    fixture.layer.is_short = false;
    fixture.end();
    try fixture.expectLayer();
}

test "a block that has rotted ends the snapshot, and a write of the block mends it" {
    var fixture: Fixture = undefined;
    try fixture.init(1 << 30);
    defer fixture.deinit();
    const files = fixture.on.files();
    try fixture.fill(0, 10, 1);
    const data = try files.open("one/data", .write);
    defer files.close(data);
    for ([_]bool{ false, true }) |is_written| {
        try files.write(data, "rot", 7 * block_size + 9);
        try fixture.begin();
        defer fixture.end();
        if (is_written) try fixture.fill(7, 1, 2);
        try testing.expectError(error.Rotten, fixture.next());
        try testing.expectEqual(7 * block_size, fixture.snapshot.rotten_at);
    }
    try fixture.expectLayer();
    try fixture.begin();
    defer fixture.end();
    // It was kept before.
    try fixture.fill(7, 1, 3);
    try files.write(data, "rot", 7 * block_size + 9);
    while (try fixture.next()) |_| {}
    try testing.expectEqual(10, fixture.snapshot.at);
}

test "a layer that is lost, closed or replaced has no snapshot, and nothing is left in the store" {
    var fixture: Fixture = undefined;
    try fixture.init(1 << 30);
    defer fixture.deinit();
    try fixture.fill(0, 10, 1);
    try fixture.begin();
    fixture.snapshot.end(&fixture.layer);
    try testing.expectError(error.Ended, fixture.snapshot.read());
    // The packet loop ends a snapshot, and frees nothing.
    try testing.expect(try fixture.on.files().size(fixture.snapshot.copies.?.file) > disk_size);
    fixture.end();
    try fixture.open(0);
    fixture.layer.is_lost = true;
    try testing.expectError(error.Lost, fixture.snapshot.begin(&fixture.layer));
    fixture.layer.is_lost = false;
    const id = fixture.layer.head.layer_id;
    fixture.layer.head.layer_id = .fromBytes(@splat(7));
    try testing.expectError(error.Ended, fixture.snapshot.begin(&fixture.layer));
    fixture.layer.head.layer_id = id;
    fixture.end();
    const files = fixture.on.files();
    var name: @import("../files/files.zig").Name = undefined;
    try testing.expectEqualStrings("one", (try files.nextName("", "", &name)).?);
    try testing.expectEqual(null, try files.nextName("", "one", &name));
    // Of a power cut.
    files.close(try files.create("snapshot-copies"));
    try fixture.open(0);
    fixture.end();
    try testing.expectError(error.InUse, LayerSnapshot.openWhole(gpa, files, "one"));
    try files.remove("one/sums");
    try testing.expectError(error.Lost, fixture.open(0));
}
