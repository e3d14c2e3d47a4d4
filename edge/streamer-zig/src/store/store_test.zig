//! The parts of the store together, on files of this machine.

const std = @import("std");
const base = @import("base");
const store_module = @import("store.zig");

const Appender = store_module.Appender;
const block = store_module.block;
const LinuxFiles = store_module.LinuxFiles;
const Manifest = store_module.Manifest;
const Store = store_module.Store;
const TreeBuilder = store_module.TreeBuilder;
const Uuid = base.Uuid;
const testing = std.testing;

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    store: Store,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        try Store.make(fixture.on.files(), .{ .id = .fromRandom(@splat(1)), .seed = @splat(5) });
        try fixture.open();
    }

    fn open(fixture: *Fixture) !void {
        fixture.store = try .open(testing.allocator, fixture.on.files(), .{ .cache_nodes = 16 });
    }

    fn deinit(fixture: *Fixture) void {
        fixture.store.close(testing.allocator);
        fixture.tmp.cleanup();
    }

    /// A version that differs from another in these blocks; byte 0: zeros.
    fn seal(fixture: *Fixture, parent: ?Uuid, id: Uuid, size: u64, changes: []const Written) !void {
        const store = &fixture.store;
        var change = try store.lockForChange();
        defer change.end();
        var data: Appender = try .init(testing.allocator, &store.data, 1 << 20);
        defer data.deinit(testing.allocator);
        var nodes: Appender = try .init(testing.allocator, &store.nodes, 1 << 20);
        defer nodes.deinit(testing.allocator);
        const root = if (parent) |above| (try store.manifestOf(above)).root else block.Entry.zeros;
        var builder: TreeBuilder = .init(&store.cache, &nodes, root, block.blockCount(size));
        for (changes) |written| {
            const bytes: block.Block = @splat(written.byte);
            try builder.put(written.index, if (written.byte == 0) .zeros else .{
                .hash = block.hashOf(&bytes),
                .location = try data.append(&bytes),
            });
        }
        const new_root = try builder.finish();
        try data.sync();
        try nodes.sync();
        try change.commit(&.{
            .store = store.id,
            .organization = .zero,
            .vdisk = .fromRandom(@splat(2)),
            .version = id,
            .parent = parent orelse .zero,
            .number = 1,
            .incarnation = 0,
            .counter = try change.nextCounter(),
            .created_unix_ms = 0,
            .disk_size = size,
            .root = new_root,
        });
    }

    fn expect(fixture: *Fixture, id: Uuid, index: u64, byte: u8) !void {
        var version = try fixture.store.openVersion(id);
        defer version.close();
        const source = version.reader.source();
        var buffer: block.Block = undefined;
        const offset = index * block.block_size;
        const size: usize = @intCast(@min(block.block_size, source.size - offset));
        try source.read(buffer[0..size], offset);
        try testing.expect(std.mem.allEqual(u8, buffer[0..size], byte));
    }
};

const Written = struct { index: u64, byte: u8 };

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

test "each version keeps its blocks, and shares those that did not change" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const size = 1_000_000 * block.block_size + 512;
    try fixture.seal(null, idOf(1), size, &.{ .{ .index = 0, .byte = 1 }, .{ .index = 1, .byte = 2 }, .{ .index = 1_000_000, .byte = 3 } });
    try fixture.seal(idOf(1), idOf(2), size, &.{ .{ .index = 1, .byte = 0 }, .{ .index = 500_000, .byte = 4 } });
    try fixture.seal(idOf(2), idOf(3), size, &.{ .{ .index = 0, .byte = 7 }, .{ .index = 500_000, .byte = 0 } });
    fixture.store.close(testing.allocator);
    try fixture.open();
    for ([_]struct { u8, u64, u8 }{
        .{ 1, 0, 1 },       .{ 1, 1, 2 }, .{ 1, 1_000_000, 3 }, .{ 1, 500_000, 0 },
        .{ 2, 0, 1 },       .{ 2, 1, 0 }, .{ 2, 1_000_000, 3 }, .{ 2, 500_000, 4 },
        .{ 3, 0, 7 },       .{ 3, 1, 0 }, .{ 3, 1_000_000, 3 }, .{ 3, 500_000, 0 },
        .{ 3, 999_999, 0 },
    }) |case| try fixture.expect(idOf(case[0]), case[1], case[2]);
    // What went back to zeros leaves no trace in the root.
    try fixture.seal(idOf(3), idOf(4), size, &.{ .{ .index = 0, .byte = 1 }, .{ .index = 1, .byte = 2 } });
    const first = try fixture.store.manifestOf(idOf(1));
    const last = try fixture.store.manifestOf(idOf(4));
    try testing.expectEqual(first.root.hash, last.root.hash);
    try testing.expectEqual(4, last.counter);
}

test "a read of any range is the bytes of the disk, before and after its blocks were checked" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const size = 300 * block.block_size + 1536;
    var changes: [301]Written = undefined;
    var prng: base.Prng = .init(7);
    for (&changes, 0..) |*written, index| written.* = .{ .index = index, .byte = if (prng.chance(1, 4)) 0 else @intCast(index % 255 + 1) };
    try fixture.seal(null, idOf(1), size, &changes);
    var version = try fixture.store.openVersion(idOf(1));
    defer version.close();
    const source = version.reader.source();
    const buffer = try testing.allocator.alloc(u8, 128 * block.block_size);
    defer testing.allocator.free(buffer);
    for (0..2000) |_| {
        const offset = prng.below(size);
        const bytes = buffer[0..@intCast(prng.between(1, @min(buffer.len, size - offset)))];
        try source.read(bytes, offset);
        for (bytes, offset..) |byte, at| try testing.expectEqual(changes[at / block.block_size].byte, byte);
    }
    try testing.expectError(error.BeyondTheEnd, source.read(buffer[0..2], size - 1));
}

test "a version is there once, and goes when nobody has it open" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.seal(null, idOf(1), 4096, &.{});
    try testing.expectError(error.Exists, fixture.seal(null, idOf(1), 4096, &.{.{ .index = 0, .byte = 1 }}));
    var change = try fixture.store.lockForChange();
    defer change.end();
    try testing.expectError(error.Locked, fixture.store.lockForChange());
    var version = try fixture.store.openVersion(idOf(1));
    try testing.expectError(error.Locked, change.delete(idOf(1)));
    version.close();
    try change.delete(idOf(1));
    try testing.expectError(error.NotFound, change.delete(idOf(1)));
    try testing.expectError(error.NotFound, fixture.store.openVersion(idOf(1)));
    try testing.expectEqual(null, try fixture.store.nextVersion(null));
}

test "every flipped bit of an extent or a node is found before a byte is delivered" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.seal(null, idOf(1), 2 * block.block_size, &.{ .{ .index = 0, .byte = 1 }, .{ .index = 1, .byte = 2 } });
    const files = fixture.on.files();
    for ([_][]const u8{ "extents/000001", "nodes/000001" }) |name| {
        const handle = try files.open(name, .write);
        defer files.close(handle);
        const size = try files.size(handle);
        for (0..size * 8) |bit| {
            var byte: [1]u8 = undefined;
            _ = try files.read(handle, &byte, bit / 8);
            const before = byte;
            byte[0] ^= @as(u8, 1) << @intCast(bit % 8);
            try files.write(handle, &byte, bit / 8);
            fixture.store.cache.clear();
            var version = try fixture.store.openVersion(idOf(1));
            defer version.close();
            var buffer: [2 * block.block_size]u8 = undefined;
            const index = if (std.mem.startsWith(u8, name, "extents")) bit / 8 / block.block_size else 0;
            const part = buffer[0..512];
            try testing.expectError(error.Damaged, version.reader.source().read(part, index * block.block_size + 512));
            try testing.expectError(error.Damaged, version.reader.source().read(&buffer, 0));
            try files.write(handle, &before, bit / 8);
        }
    }
    fixture.store.cache.clear();
    try fixture.expect(idOf(1), 1, 2);
}

test "a directory that is no store, or a damaged one, is named so" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try testing.expectError(error.NotAStore, Store.open(testing.allocator, files, .{}));
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "mine", .data = "x" });
    try testing.expectError(error.NotEmpty, Store.make(files, .{ .id = idOf(1), .seed = @splat(1) }));
    try tmp.dir.deleteFile(testing.io, "mine");
    try Store.make(files, .{ .id = idOf(1), .seed = @splat(1) });
    try testing.expectError(error.Exists, Store.make(files, .{ .id = idOf(1), .seed = @splat(1) }));
    const handle = try files.open("bootfarm-store", .write);
    defer files.close(handle);
    try files.write(handle, "x", 20);
    try testing.expectError(error.HeadDamaged, Store.open(testing.allocator, files, .{}));
    try files.write(handle, "x", 0);
    try testing.expectError(error.NotAStore, Store.open(testing.allocator, files, .{}));
}
