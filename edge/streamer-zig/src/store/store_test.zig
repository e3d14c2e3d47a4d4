//! Tests of the store's parts together, on files of this machine.

const std = @import("std");
const base = @import("base");
const store_module = @import("store.zig");

const Appender = store_module.Appender;
const Collection = store_module.collect.Collection;
const block = store_module.block;
const LinuxFiles = store_module.LinuxFiles;
const Manifest = store_module.Manifest;
const Store = store_module.Store;
const TreeBuilder = store_module.TreeBuilder;
const Usage = store_module.usage.Usage;
const Verification = store_module.verify.Verification;
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

    /// Creates a version that differs from another in these blocks; byte 0 stands for zeros.
    fn seal(
        fixture: *Fixture,
        parent: ?Uuid,
        id: Uuid,
        size: u64,
        changes: []const ChangedBlock,
    ) !void {
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

    /// Formats an id as text, valid until the next call.
    fn difference(fixture: *Fixture, a: Uuid, b: Uuid) ![]const u8 {
        const Text = struct {
            var buffer: [256]u8 = undefined;
            var writer: std.Io.Writer = undefined;

            fn add(_: void, range: store_module.compare.Range) void {
                writer.print("{d}+{d} ", .{ range.first, range.count }) catch unreachable;
            }
        };
        Text.writer = .fixed(&Text.buffer);
        const store = &fixture.store;
        const first = try store.manifestOf(a);
        const second = try store.manifestOf(b);
        var comparison: store_module.compare.Comparison(void) = .{
            .nodes = &store.nodes,
            .context = {},
            .report = Text.add,
        };
        try comparison.run(
            .{ .root = first.root, .level = first.rootLevel() },
            .{ .root = second.root, .level = second.rootLevel() },
        );
        return Text.writer.buffered();
    }
};

const ChangedBlock = struct { index: u64, byte: u8 };

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

test "each version keeps its blocks and shares those that did not change" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const size = 1_000_000 * block.block_size + 512;
    try fixture.seal(
        null,
        idOf(1),
        size,
        &.{
            .{ .index = 0, .byte = 1 },
            .{ .index = 1, .byte = 2 },
            .{ .index = 1_000_000, .byte = 3 },
        },
    );
    try fixture.seal(idOf(1), idOf(2), size, &.{
        .{ .index = 1, .byte = 0 }, .{ .index = 500_000, .byte = 4 },
    });
    try fixture.seal(idOf(2), idOf(3), size, &.{
        .{ .index = 0, .byte = 7 }, .{ .index = 500_000, .byte = 0 },
    });
    fixture.store.close(testing.allocator);
    try fixture.open();
    for ([_]struct { u8, u64, u8 }{
        .{ 1, 0, 1 },       .{ 1, 1, 2 }, .{ 1, 1_000_000, 3 }, .{ 1, 500_000, 0 },
        .{ 2, 0, 1 },       .{ 2, 1, 0 }, .{ 2, 1_000_000, 3 }, .{ 2, 500_000, 4 },
        .{ 3, 0, 7 },       .{ 3, 1, 0 }, .{ 3, 1_000_000, 3 }, .{ 3, 500_000, 0 },
        .{ 3, 999_999, 0 },
    }) |case| try fixture.expect(idOf(case[0]), case[1], case[2]);
    // Blocks that became zeros again leave no trace in the root.
    try fixture.seal(idOf(3), idOf(4), size, &.{
        .{ .index = 0, .byte = 1 }, .{ .index = 1, .byte = 2 },
    });
    const first = try fixture.store.manifestOf(idOf(1));
    const last = try fixture.store.manifestOf(idOf(4));
    try testing.expectEqual(first.root.hash, last.root.hash);
    try testing.expectEqual(4, last.counter);
}

/// In a debug build the loop of `expectEqualSlices` takes most of a test that reads gigabytes.
fn expectBytes(expected: []const u8, actual: []const u8) !void {
    if (!std.mem.eql(u8, expected, actual))
        return testing.expectEqualSlices(u8, expected, actual);
}

test "a read of any range returns the disk's bytes, before and after its blocks were checked" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const size = 300 * block.block_size + 1536;
    var changes: [301]ChangedBlock = undefined;
    var prng: base.Prng = .init(7);
    for (&changes, 0..) |*written, index| written.* = .{
        .index = index,
        .byte = if (prng.chance(1, 4)) 0 else @intCast(index % 255 + 1),
    };
    const disk = try testing.allocator.alloc(u8, size);
    defer testing.allocator.free(disk);
    for (disk, 0..) |*byte, at| byte.* = changes[at / block.block_size].byte;
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
        try expectBytes(disk[@intCast(offset)..][0..bytes.len], bytes);
    }
    try testing.expectError(error.BeyondTheEnd, source.read(buffer[0..2], size - 1));
}

test "blocks in memory are read without waiting once this reader or another one of the version has checked them" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const size = 300 * block.block_size + 1536;
    var changes: [301]ChangedBlock = undefined;
    var prng: base.Prng = .init(13);
    for (&changes, 0..) |*written, index| written.* = .{
        .index = index,
        .byte = if (prng.chance(1, 4)) 0 else @intCast(index % 255 + 1),
    };
    const disk = try testing.allocator.alloc(u8, size);
    defer testing.allocator.free(disk);
    for (disk, 0..) |*byte, at| byte.* = changes[at / block.block_size].byte;
    try fixture.seal(null, idOf(1), size, &changes);
    var version = try fixture.store.openVersion(idOf(1));
    defer version.close();
    var other: Store = try .open(testing.allocator, fixture.on.files(), .{ .cache_nodes = 16 });
    defer other.close(testing.allocator);
    var beside = version.reader;
    beside.reading = other.reading();
    const buffer = try testing.allocator.alloc(u8, 128 * block.block_size);
    defer testing.allocator.free(buffer);
    for (0..500) |_| {
        const offset = prng.below(size);
        const bytes = buffer[0..@intCast(prng.between(1, @min(buffer.len, size - offset)))];
        switch (prng.below(3)) {
            0 => {
                try beside.read(bytes, offset);
                version.reader.markChecked(offset, bytes.len);
            },
            1 => try version.reader.read(bytes, offset),
            else => {
                if (!try version.reader.readNow(bytes, offset)) continue;
                try expectBytes(disk[@intCast(offset)..][0..bytes.len], bytes);
            },
        }
    }
    fixture.store.cache.clear();
    // The location on the disk is known; its bytes are not checked yet.
    try testing.expectEqual(false, try version.reader.readNow(buffer[0..], 0));
    try beside.read(buffer, 0);
    version.reader.markChecked(0, buffer.len);
    const is_told = fixture.on.read_now.load(.monotonic) != .never;
    try testing.expectEqual(is_told, try version.reader.readNow(buffer, 0));
    // A read that ends in the block after the checked one.
    try testing.expectEqual(
        false,
        try version.reader.readNow(buffer[0..block.block_size], buffer.len - 1),
    );
}

test "blocks that updates changed in the middle of others are read in their place, in any range" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var prng: base.Prng = .init(11);
    var disk: [230]u8 = undefined;
    var changes: [disk.len]ChangedBlock = undefined;
    for (&changes, &disk, 0..) |*written, *byte, index| {
        byte.* = if (prng.chance(1, 16)) 0 else @intCast(index % 199 + 1);
        written.* = .{ .index = index, .byte = byte.* };
    }
    try fixture.seal(null, idOf(1), disk.len * block.block_size, &changes);
    for (2..7) |number| {
        var count: usize = 0;
        for (&disk, 0..) |*byte, index| {
            // In runs of a few blocks, some of them zeros.
            if (!prng.chance(1, if (count > 0 and changes[count - 1].index + 1 == index) 2 else 12))
                continue;
            byte.* = if (prng.chance(1, 8)) 0 else @intCast(200 + number);
            changes[count] = .{ .index = index, .byte = byte.* };
            count += 1;
        }
        try fixture.seal(
            idOf(@intCast(number - 1)),
            idOf(@intCast(number)),
            disk.len * block.block_size,
            changes[0..count],
        );
    }
    const whole = try testing.allocator.alloc(u8, disk.len * block.block_size);
    defer testing.allocator.free(whole);
    for (whole, 0..) |*byte, at| byte.* = disk[at / block.block_size];
    const buffer = try testing.allocator.alloc(u8, 64 * block.block_size);
    defer testing.allocator.free(buffer);
    for (0..20) |_| {
        // Nothing is checked yet at the start of each round.
        var version = try fixture.store.openVersion(idOf(6));
        defer version.close();
        for (0..100) |_| {
            const offset = prng.below(disk.len * block.block_size);
            const bytes = buffer[0..@intCast(prng.between(
                1,
                @min(buffer.len, disk.len * block.block_size - offset),
            ))];
            try version.reader.source().read(bytes, offset);
            try expectBytes(whole[@intCast(offset)..][0..bytes.len], bytes);
        }
        fixture.store.close(testing.allocator);
        try fixture.open();
    }
}

test "a version is created once, and is deleted when nobody has it open" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.seal(null, idOf(1), 4096, &.{});
    try testing.expectError(
        error.Exists,
        fixture.seal(null, idOf(1), 4096, &.{.{ .index = 0, .byte = 1 }}),
    );
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

test "a damaged manifest does not prevent new versions, and no counter is used twice" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const store = &fixture.store;
    try fixture.seal(null, idOf(1), 4096, &.{});
    try fixture.seal(null, idOf(2), 4096, &.{});
    const counter = (try store.manifestOf(idOf(2))).counter;
    {
        var name: store_module.files.Name = undefined;
        const handle = try store.files.open(store_module.manifest.fileName(idOf(2), &name), .write);
        defer store.files.close(handle);
        try store.files.write(handle, "x", 100);
    }
    try testing.expectError(error.Damaged, store.manifestOf(idOf(2)));
    try fixture.seal(null, idOf(3), 4096, &.{});
    try testing.expectEqual(counter + 1, (try store.manifestOf(idOf(3))).counter);
    {
        var change = try store.lockForChange();
        defer change.end();
        try change.delete(idOf(3));
    }
    try fixture.seal(null, idOf(4), 4096, &.{});
    try testing.expectEqual(counter + 2, (try store.manifestOf(idOf(4))).counter);
    // A store of an earlier release has no counter file and reads all manifests.
    try store.files.remove(store_module.counter_file.name);
    try testing.expectError(error.Damaged, fixture.seal(null, idOf(5), 4096, &.{}));
}

test "a flipped bit of an extent or a node is found before a byte is delivered" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.seal(null, idOf(1), 2 * block.block_size, &.{
        .{ .index = 0, .byte = 1 }, .{ .index = 1, .byte = 2 },
    });
    const files = fixture.on.files();
    var version = try fixture.store.openVersion(idOf(1));
    defer version.close();
    for ([_][]const u8{ "extents/000001", "nodes/000001" }) |name| {
        const handle = try files.open(name, .write);
        defer files.close(handle);
        const bits = try files.size(handle) * 8;
        // Every 61st bit; the store's simulation flips all of them.
        var bit: u64 = 0;
        while (bit < bits) : (bit += 61) {
            var byte: [1]u8 = undefined;
            _ = try files.read(handle, &byte, bit / 8);
            const before = byte;
            byte[0] ^= @as(u8, 1) << @intCast(bit % 8);
            try files.write(handle, &byte, bit / 8);
            fixture.store.cache.clear();
            var buffer: [2 * block.block_size]u8 = undefined;
            const index =
                if (std.mem.startsWith(u8, name, "extents")) bit / 8 / block.block_size else 0;
            const part = buffer[0..512];
            try testing.expectError(
                error.Damaged,
                version.reader.source().read(part, index * block.block_size + 512),
            );
            try testing.expectError(error.Damaged, version.reader.source().read(&buffer, 0));
            try files.write(handle, &before, bit / 8);
        }
    }
    fixture.store.cache.clear();
    try fixture.expect(idOf(1), 1, 2);
}

test "only what no version refers to is freed" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const size = 50_000 * block.block_size;
    var all: [600]ChangedBlock = undefined;
    for (&all, 0..) |*written, index| written.* = .{
        .index = index * 80,
        .byte = @intCast(index % 250 + 1),
    };
    try fixture.seal(null, idOf(1), size, &all);
    for (all[0..300]) |*written| written.byte = 251;
    try fixture.seal(idOf(1), idOf(2), size, all[0..300]);
    try fixture.seal(idOf(2), idOf(3), size, &.{.{ .index = 80, .byte = 0 }});
    var before: Usage = try .of(testing.allocator, &fixture.store);
    defer before.deinit();
    const first = try before.sizesOf(&fixture.store, &try fixture.store.manifestOf(idOf(1)));
    // The blocks that the second version replaced, and the nodes above them.
    try testing.expect(first.own >= 300 * block.block_size);
    try testing.expect(first.shared >= 300 * block.block_size);
    {
        var change = try fixture.store.lockForChange();
        defer change.end();
        try testing.expectEqual(0, try collected(&change));
        try change.delete(idOf(1));
        try testing.expectEqual(first.own, try collected(&change));
        try testing.expectEqual(0, try collected(&change));
    }
    fixture.store.cache.clear();
    try fixture.expect(idOf(2), 80, 251);
    try fixture.expect(idOf(3), 80, 0);
    try fixture.expect(idOf(3), 599 * 80, 600 % 250);
    {
        var change = try fixture.store.lockForChange();
        defer change.end();
        try change.delete(idOf(2));
        try change.delete(idOf(3));
        _ = try collected(&change);
    }
    // A file is removed with its last block. The last file stays, so that no location is used
    // twice.
    const files = fixture.on.files();
    try testing.expectError(error.NotFound, files.open("extents/000001", .read));
    const left = try files.open("extents/000004", .read);
    defer files.close(left);
    try testing.expectEqual(0, try files.allocated(left));
    try fixture.seal(null, idOf(4), size, &.{.{ .index = 0, .byte = 9 }});
    try fixture.expect(idOf(4), 0, 9);
}

test "a caller that limits the rate is called back while nodes are read, and the counts stay the same" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    // Each block has its own node.
    var all: [600]ChangedBlock = undefined;
    for (&all, 0..) |*written, index| written.* = .{ .index = index * 102, .byte = 7 };
    try fixture.seal(null, idOf(1), 62_000 * block.block_size, &all);
    const WaitCounter = struct {
        last: u64 = 0,
        count: u32 = 0,

        fn wait(context: *anyopaque, done: u64) void {
            const waits: *@This() = @ptrCast(@alignCast(context));
            waits.count += 1;
            waits.last = done;
        }
    };
    var waits: WaitCounter = .{};
    var usage: Usage = try .ofAtRate(
        testing.allocator,
        &fixture.store,
        .{ .context = &waits, .wait = WaitCounter.wait },
    );
    defer usage.deinit();
    try testing.expectEqual(2, waits.count);
    try testing.expectEqual(512 * block.block_size, waits.last);
    const manifest = try fixture.store.manifestOf(idOf(1));
    const sizes = try usage.sizesOf(&fixture.store, &manifest);
    // 600 nodes of the lowest level, 6 above them, the root, and the data.
    try testing.expectEqual((600 + 6 + 1 + 600) * block.block_size, sizes.own);
    try testing.expectEqual(607 * block.block_size, usage.read);
}

/// Collects in many steps and returns the number of freed bytes.
fn collected(change: *store_module.store_dir.Change) !u64 {
    var collection: Collection = try .begin(testing.allocator, change);
    defer collection.end();
    while (try collection.step(100_000)) {}
    return collection.freed;
}

test "a merge writes a manifest and has the bytes of its source version" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const size = 1000 * block.block_size;
    try fixture.seal(null, idOf(1), size, &.{.{ .index = 0, .byte = 1 }});
    try fixture.seal(idOf(1), idOf(2), size, &.{.{ .index = 500, .byte = 2 }});
    try fixture.seal(idOf(2), idOf(3), size, &.{.{ .index = 999, .byte = 3 }});
    try fixture.seal(null, idOf(9), size, &.{});
    var change = try fixture.store.lockForChange();
    defer change.end();
    const merge = store_module.merge.merge;
    var wanted: store_module.merge.Request = .{
        .of = idOf(3),
        .onto = null,
        .version = idOf(4),
        .number = 4,
        .created_unix_ms = 0,
    };
    try merge(&change, wanted);
    try testing.expectError(error.Exists, merge(&change, wanted));
    wanted = .{
        .of = idOf(3),
        .onto = idOf(1),
        .version = idOf(5),
        .number = 5,
        .created_unix_ms = 0,
    };
    try merge(&change, wanted);
    wanted.version = idOf(6);
    wanted.onto = idOf(9);
    try testing.expectError(error.NotBelow, merge(&change, wanted));
    try testing.expect((try fixture.store.manifestOf(idOf(4))).isBase());
    try testing.expectEqual(idOf(1), (try fixture.store.manifestOf(idOf(5))).parent);
    for ([_]u8{ 1, 2, 3 }) |number| try change.delete(idOf(number));
    _ = try collected(&change);
    for ([_]u8{ 4, 5 }) |number| {
        try fixture.expect(idOf(number), 0, 1);
        try fixture.expect(idOf(number), 500, 2);
        try fixture.expect(idOf(number), 999, 3);
    }
}

test "a comparison of two versions lists the blocks that differ" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const size = 100_000 * block.block_size;
    try fixture.seal(
        null,
        idOf(1),
        size,
        &.{
            .{ .index = 7, .byte = 1 },
            .{ .index = 101, .byte = 2 },
            .{ .index = 50_000, .byte = 2 },
        },
    );
    try fixture.seal(
        idOf(1),
        idOf(2),
        size,
        &.{
            .{ .index = 101, .byte = 3 },
            .{ .index = 102, .byte = 4 },
            .{ .index = 50_000, .byte = 0 },
        },
    );
    try fixture.seal(null, idOf(3), 50 * block.block_size, &.{.{ .index = 7, .byte = 1 }});
    try testing.expectEqualStrings("101+2 50000+1 ", try fixture.difference(idOf(1), idOf(2)));
    try testing.expectEqualStrings("101+2 50000+1 ", try fixture.difference(idOf(2), idOf(1)));
    try testing.expectEqualStrings("", try fixture.difference(idOf(2), idOf(2)));
    try testing.expectEqualStrings("101+1 50000+1 ", try fixture.difference(idOf(1), idOf(3)));
    try testing.expectEqualStrings("101+2 ", try fixture.difference(idOf(3), idOf(2)));
}

test "reading every block finds a damaged one and reports where it is" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.seal(null, idOf(1), 300 * block.block_size, &.{
        .{ .index = 1, .byte = 1 }, .{ .index = 250, .byte = 2 },
    });
    try fixture.seal(idOf(1), idOf(2), 300 * block.block_size, &.{.{ .index = 2, .byte = 3 }});
    const files = fixture.on.files();
    const handle = try files.open("extents/000001", .write);
    defer files.close(handle);
    try files.write(handle, "x", block.block_size);
    var verification: Verification = .init(testing.allocator, &fixture.store);
    defer verification.deinit();
    var problems: u32 = 0;
    for ([_]u8{ 1, 2 }) |number| {
        verification.begin(&try fixture.store.manifestOf(idOf(number)));
        while (true) switch (try verification.step(10_000)) {
            .more => {},
            .problem => |problem| {
                try testing.expectEqual(250, problem.step.first);
                try testing.expectEqual(error.Damaged, problem.why);
                problems += 1;
            },
            .done => break,
        };
    }
    // Blocks 1 and 2; three nodes of the first version and two of the second.
    try testing.expectEqual(7 * block.block_size, verification.checked);
    try testing.expectEqual(1, problems);
}

test "a directory that is not a store, or a damaged store, is reported as such" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try testing.expectError(error.NotAStore, Store.open(testing.allocator, files, .{}));
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "mine", .data = "x" });
    try testing.expectError(
        error.NotEmpty,
        Store.make(files, .{ .id = idOf(1), .seed = @splat(1) }),
    );
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

test "foreign names beside manifests and numbered files are skipped" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.seal(null, idOf(5), 4096, &.{});
    try fixture.seal(null, idOf(9), 4096, &.{});
    const files = fixture.on.files();
    for ([_][]const u8{ "versions/00", "versions/06.manifest", "versions/zz.new" }) |name|
        files.close(try files.create(name));
    const first = (try fixture.store.nextVersion(null)).?;
    try testing.expect(first.eql(idOf(5)));
    const second = (try fixture.store.nextVersion(first)).?;
    try testing.expect(second.eql(idOf(9)));
    try testing.expectEqual(null, try fixture.store.nextVersion(second));
}

test "a manifest is not served under another id or from another store" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const store = &fixture.store;
    try fixture.seal(null, idOf(5), 4096, &.{});
    var names: [2]store_module.files.Name = undefined;
    const from = store_module.manifest.fileName(idOf(5), &names[0]);
    const to = store_module.manifest.fileName(idOf(6), &names[1]);
    try store.files.rename(from, to);
    try testing.expectError(error.OtherName, store.manifestOf(idOf(6)));
    try testing.expectError(error.OtherName, store.openVersion(idOf(6)));
    try store.files.rename(to, from);
    var version = try store.openVersion(idOf(5));
    version.close();
    store.id = idOf(7);
    try testing.expectError(error.OtherStore, store.manifestOf(idOf(5)));
    // A manifest that is cut off.
    const handle = try store.files.open(from, .write);
    defer store.files.close(handle);
    try store.files.setSize(handle, 4095);
    try testing.expectError(error.Damaged, store.manifestOf(idOf(5)));
}

test "a store signs only with its own key" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.on.files();
    var change = try fixture.store.lockForChange();
    defer change.end();
    _ = try change.key();
    const handle = try files.open("store-key", .write);
    defer files.close(handle);
    // Another seed with a right checksum, a changed one, and a part of it.
    var bytes: [64]u8 = @splat(6);
    base.Sha256.hash(bytes[0..32], bytes[32..], .{});
    try files.write(handle, &bytes, 0);
    try testing.expectError(error.KeyDamaged, change.key());
    bytes[0..32].* = @splat(5);
    try files.write(handle, &bytes, 0);
    try testing.expectError(error.KeyDamaged, change.key());
    base.Sha256.hash(bytes[0..32], bytes[32..], .{});
    try files.write(handle, &bytes, 0);
    _ = try change.key();
    try files.setSize(handle, 63);
    try testing.expectError(error.KeyDamaged, change.key());
}

test "a store of a later format is not opened, and one that is cut off is damaged" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.on.files();
    const handle = try files.open("bootfarm-store", .write);
    defer files.close(handle);
    var bytes: [108]u8 = undefined;
    try testing.expect(try files.readWhole(handle, &bytes, 0));
    bytes[11] = 3;
    base.Sha256.hash(bytes[0..76], bytes[76..], .{});
    try files.write(handle, &bytes, 0);
    try testing.expectError(error.TooNew, Store.open(testing.allocator, files, .{}));
    try files.setSize(handle, 107);
    try testing.expectError(error.HeadDamaged, Store.open(testing.allocator, files, .{}));
}

test "names of the store are told from foreign ones, and a store is made beside those on request" {
    const isOwn = store_module.store_dir.isOwn;
    for ([_][]const u8{
        "bootfarm-store", "lock",        "store-key", "counter",      "sealing", "extents",
        "nodes",          "layers",      "versions",  "boot-bundles", "imports", "profiles",
        "lock.new",       "counter.new", "file-maps",
    }) |name| try testing.expect(isOwn(name));
    for ([_][]const u8{ "", "mine", "lock.old", ".new", "extents2" }) |name|
        try testing.expect(!isOwn(name));
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "mine", .data = "x" });
    try Store.make(on.files(), .{ .id = idOf(1), .seed = @splat(1), .beside_files = true });
    var store: Store = try .open(testing.allocator, on.files(), .{ .cache_nodes = 16 });
    store.close(testing.allocator);
}

test "a collection counts what it has examined, within its budget" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var all: [100]ChangedBlock = undefined;
    for (&all, 0..) |*written, index| written.* = .{ .index = index, .byte = 7 };
    try fixture.seal(null, idOf(1), 100 * block.block_size, &all);
    for (all[0..50]) |*written| written.byte = 8;
    try fixture.seal(idOf(1), idOf(2), 100 * block.block_size, all[0..50]);
    var change = try fixture.store.lockForChange();
    defer change.end();
    try change.delete(idOf(1));
    var collection: Collection = try .begin(testing.allocator, &change);
    defer collection.end();
    var steps: u32 = 0;
    var before: u64 = 0;
    while (try collection.step(10 * block.block_size)) : (steps += 1) {
        try testing.expect(collection.seen - before <= 10 * block.block_size);
        before = collection.seen;
    }
    // 150 blocks and two nodes.
    try testing.expectEqual(152 * block.block_size, collection.seen);
    try testing.expectEqual(51 * block.block_size, collection.freed);
    try testing.expect(steps >= 15);
}

test "a version is merged only onto one below it of its own vDisk" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.seal(null, idOf(1), 4096, &.{});
    try fixture.seal(idOf(1), idOf(2), 4096, &.{.{ .index = 0, .byte = 2 }});
    try fixture.seal(idOf(2), idOf(3), 4096, &.{.{ .index = 0, .byte = 3 }});
    var change = try fixture.store.lockForChange();
    defer change.end();
    var other = try fixture.store.manifestOf(idOf(1));
    other.version = idOf(8);
    other.vdisk = idOf(77);
    try change.commit(&other);
    const merge = store_module.merge.merge;
    var wanted: store_module.merge.Request = .{
        .of = idOf(3),
        .onto = idOf(8),
        .version = idOf(4),
        .number = 4,
        .created_unix_ms = 5,
    };
    try testing.expectError(error.OtherVdisk, merge(&change, wanted));
    wanted.onto = idOf(3);
    try testing.expectError(error.NotBelow, merge(&change, wanted));
    wanted.onto = idOf(2);
    try merge(&change, wanted);
    const made = try fixture.store.manifestOf(idOf(4));
    try testing.expectEqual(idOf(2), made.parent);
    try testing.expectEqual(4, made.number);
    try testing.expectEqual(5, made.created_unix_ms);
    try testing.expectEqual((try fixture.store.manifestOf(idOf(3))).root, made.root);
    // Behind a deleted parent nothing can be told.
    try change.delete(idOf(2));
    wanted.onto = idOf(1);
    wanted.version = idOf(5);
    try testing.expectError(error.NotBelow, merge(&change, wanted));
}
