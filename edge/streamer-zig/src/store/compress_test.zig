//! Tests compress.zig: versions that are packed again have their bytes and roots, share what they
//! shared, and are read meanwhile.

const std = @import("std");
const base = @import("base");
const store_module = @import("store.zig");

const Appender = store_module.Appender;
const block = store_module.block;
const Compression = store_module.Compression;
const LinuxFiles = store_module.LinuxFiles;
const Manifest = store_module.Manifest;
const Prng = base.Prng;
const Store = store_module.Store;
const TreeBuilder = store_module.TreeBuilder;
const Usage = store_module.usage.Usage;
const Uuid = base.Uuid;
const testing = std.testing;
const gpa = testing.allocator;

/// Three windows, the last of which ends within a unit and within a block.
const block_count = 2 * store_module.compress.window_blocks + 77;
const disk_size = block_count * block.block_size - 512;

const Disk = [block_count]u32;

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    store: Store,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        try Store.make(fixture.on.files(), .{ .id = idOf(1), .seed = @splat(5) });
        fixture.store = try .open(gpa, fixture.on.files(), .{ .cache_nodes = 64 });
    }

    fn deinit(fixture: *Fixture) void {
        fixture.store.close(gpa);
        fixture.tmp.cleanup();
    }

    /// Stores a version in blocks, as a program does that knows no units.
    fn commit(
        fixture: *Fixture,
        id: Uuid,
        parent: ?Uuid,
        before: *const Disk,
        disk: *const Disk,
    ) !Manifest {
        const store = &fixture.store;
        var change = try store.lockForChange();
        defer change.end();
        var data: Appender = try .init(gpa, &store.data, 1 << 30);
        defer data.deinit(gpa);
        var nodes: Appender = try .init(gpa, &store.nodes, 1 << 30);
        defer nodes.deinit(gpa);
        const root: block.Entry =
            if (parent) |below| (try store.manifestOf(below)).root else .zeros;
        var builder: TreeBuilder = .init(&store.cache, &nodes, root, block_count);
        for (before, disk, 0..) |old, stamp, index| {
            if (old == stamp) continue;
            const bytes = blockOf(stamp, index);
            try builder.put(index, if (stamp == 0) .zeros else .{
                .hash = block.hashOf(&bytes),
                .location = try data.append(&bytes),
            });
        }
        const made: Manifest = .{
            .store = store.id,
            .organization = .zero,
            .vdisk = idOf(2),
            .version = id,
            .parent = parent orelse .zero,
            .number = 1,
            .incarnation = 0,
            .counter = try change.nextCounter(),
            .created_unix_ms = 0,
            .disk_size = disk_size,
            .root = try builder.finish(),
        };
        try data.sync();
        try nodes.sync();
        try change.commit(&made);
        return made;
    }

    /// Returns the bytes that were packed.
    fn compress(fixture: *Fixture) !u64 {
        var compression: Compression = try .init(gpa, &fixture.store);
        defer compression.deinit();
        var change = try fixture.store.lockForChange();
        defer change.end();
        while (try compression.step(&change)) {}
        return compression.packed_bytes;
    }

    fn collect(fixture: *Fixture) !void {
        var change = try fixture.store.lockForChange();
        defer change.end();
        var collection: store_module.collect.Collection = try .begin(gpa, &change);
        defer collection.end();
        while (try collection.step(1 << 20)) {}
    }

    fn stored(fixture: *Fixture) !u64 {
        var sum: u64 = 0;
        for ([_]*store_module.file_set.FileSet{ &fixture.store.data, &fixture.store.nodes }) |set| {
            var file: block.FileNumber = 0;
            while (try set.next(file)) |found| {
                file = found;
                sum += try fixture.store.files.allocated(try set.handleOf(file));
            }
        }
        return sum;
    }

    fn shared(fixture: *Fixture, id: Uuid) !u64 {
        var usage: Usage = try .of(gpa, &fixture.store);
        defer usage.deinit();
        return (try usage.sizesOf(&fixture.store, &try fixture.store.manifestOf(id))).shared;
    }

    fn expectDisk(fixture: *Fixture, id: Uuid, disk: *const Disk) !void {
        var version = try fixture.store.openVersion(id);
        defer version.close();
        try expectReads(&version, disk);
    }
};

fn expectReads(version: *store_module.OpenVersion, disk: *const Disk) !void {
    for (disk, 0..) |stamp, index| {
        var bytes: block.Block = undefined;
        const size: usize = @intCast(@min(bytes.len, disk_size - index * bytes.len));
        try version.reader.source().read(bytes[0..size], index * bytes.len);
        try testing.expectEqualSlices(u8, blockOf(stamp, index)[0..size], bytes[0..size]);
    }
}

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

/// 0: zeros; odd stamps: noise, the others: text.
fn blockOf(stamp: u32, index: u64) block.Block {
    var bytes: block.Block = @splat(0);
    if (stamp == 0) return bytes;
    var prng: Prng = .init(stamp + index * 7919);
    prng.fill(bytes[0..if (stamp % 2 == 1) bytes.len else 700]);
    if (stamp % 2 == 0) for (bytes[700..], 700..) |*byte, at| {
        byte.* = bytes[at - 700];
    };
    if (index + 1 == block_count) @memset(bytes[bytes.len - 512 ..], 0);
    return bytes;
}

fn diskOf(prng: *Prng) Disk {
    var disk: Disk = undefined;
    var stamp: u32 = 0;
    for (&disk) |*of| {
        if (prng.chance(1, 12)) stamp = @intCast(prng.below(5));
        of.* = stamp;
    }
    return disk;
}

test "versions that are packed again have their bytes and roots, and share what they shared" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var prng: Prng = .init(1);
    const first = diskOf(&prng);
    var second = first;
    for (0..200) |_| second[@intCast(prng.below(block_count))] = @intCast(10 + prng.below(2));
    const made = try fixture.commit(idOf(3), null, &@splat(0), &first);
    const update = try fixture.commit(idOf(4), idOf(3), &first, &second);
    const before = try fixture.stored();
    const shared = try fixture.shared(idOf(4));
    try testing.expect(try fixture.compress() > before / 4);
    try fixture.collect();
    try testing.expect(try fixture.stored() < before * 3 / 4);
    fixture.store.cache.clear();
    fixture.store.units.clear();
    for ([_]Uuid{ idOf(3), idOf(4) }, [_]*const Disk{ &first, &second }, [_]*const Manifest{
        &made,
        &update,
    }) |id, disk, old| {
        const now = try fixture.store.manifestOf(id);
        try testing.expectEqual(old.root.hash, now.root.hash);
        try testing.expectEqual(old.counter, now.counter);
        try testing.expect(now.has_units);
        try fixture.expectDisk(id, disk);
    }
    // What both have is stored once.
    try testing.expect(try fixture.shared(idOf(4)) < shared);
    try testing.expect(try fixture.shared(idOf(4)) * 4 > shared);
    {
        var usage: Usage = try .of(gpa, &fixture.store);
        defer usage.deinit();
        const sizes = try usage.sizesOf(&fixture.store, &try fixture.store.manifestOf(idOf(4)));
        try testing.expect(sizes.own < 400 * block.block_size);
    }
    // Nothing is left to do.
    try testing.expectEqual(0, try fixture.compress());
}

test "who has a version open reads it as before, and it is not deleted; then its places are freed" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var prng: Prng = .init(2);
    const disk = diskOf(&prng);
    _ = try fixture.commit(idOf(3), null, &@splat(0), &disk);
    var version = try fixture.store.openVersion(idOf(3));
    _ = try fixture.compress();
    try fixture.collect();
    const before = try fixture.stored();
    fixture.store.cache.clear();
    try expectReads(&version, &disk);
    try fixture.expectDisk(idOf(3), &disk);
    {
        var change = try fixture.store.lockForChange();
        defer change.end();
        try testing.expectError(error.Locked, change.delete(idOf(3)));
    }
    version.close();
    try fixture.collect();
    try testing.expect(try fixture.stored() < before);
    try fixture.expectDisk(idOf(3), &disk);
    var change = try fixture.store.lockForChange();
    defer change.end();
    try change.delete(idOf(3));
    var name: store_module.files.Name = undefined;
    try testing.expectEqual(null, try fixture.store.files.nextName("versions", "", &name));
}

test "a damaged block stays as it is, and the others of its unit are packed" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const disk: Disk = @splat(2);
    _ = try fixture.commit(idOf(3), null, &@splat(0), &disk);
    const location = blk: {
        var version = try fixture.store.openVersion(idOf(3));
        defer version.close();
        break :blk (try version.reader.entryOf(9)).location;
    };
    var name: store_module.files.Name = undefined;
    const files = fixture.store.files;
    const handle = try files.open(fixture.store.data.nameOf(location.file, &name), .write);
    defer files.close(handle);
    try files.write(handle, "damage", location.offset());
    try testing.expectEqual((block_count - 1) * block.block_size, try fixture.compress());
    try fixture.collect();
    fixture.store.cache.clear();
    var version = try fixture.store.openVersion(idOf(3));
    defer version.close();
    var bytes: block.Block = undefined;
    for (0..block_count - 1) |index| {
        const is_read = version.reader.source().read(&bytes, index * block.block_size);
        if (index == 9) {
            try testing.expectError(error.Damaged, is_read);
        } else {
            try is_read;
            try testing.expectEqualSlices(u8, &blockOf(2, index), &bytes);
        }
    }
}

test "windows that boots read come first, and each is packed once" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const disk: Disk = @splat(2);
    _ = try fixture.commit(idOf(3), null, &@splat(0), &disk);
    var compression: Compression = try .init(gpa, &fixture.store);
    defer compression.deinit();
    compression.prefer(store_module.compress.window_blocks * block.block_size);
    // No disk is that large.
    compression.prefer(std.math.maxInt(u64));
    var change = try fixture.store.lockForChange();
    defer change.end();
    try testing.expect(try compression.step(&change));
    const window_size = store_module.compress.window_blocks * block.block_size;
    try testing.expectEqual(window_size, compression.packed_bytes);
    var version = try fixture.store.openVersion(idOf(3));
    defer version.close();
    for ([_]bool{ false, true, false }, 0..) |is_packed, window| {
        const entry = try version.reader.entryOf(window * store_module.compress.window_blocks);
        try testing.expectEqual(is_packed, entry.location.is_packed);
    }
    while (try compression.step(&change)) {}
    try testing.expectEqual(3, compression.windows_done);
    try testing.expectEqual(block_count * block.block_size, compression.packed_bytes);
    try fixture.expectDisk(idOf(3), &disk);
}
