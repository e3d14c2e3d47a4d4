//! Tests write layers on a disk that loses and tears writes, against an array of what each sector
//! may hold.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const SimFiles = @import("../kit/sim_files.zig");
const testing = std.testing;
const Prng = base.Prng;
const WriteLayer = store.WriteLayer;

const sector_size = 512;
/// 40 blocks and a short one.
const sectors = 40 * 8 + 3;
const disk_size = sectors * sector_size;
const dir = "layers/one";

/// The disk below: its own stamp fills each sector.
const BaseDisk = struct {
    fn source() store.BlockSource {
        return .{ .context = undefined, .vtable = &.{ .read = readBelow }, .size = disk_size };
    }

    fn readBelow(_: *anyopaque, buffer: []u8, offset: u64) store.block_source.ReadError!void {
        var at = offset;
        var rest = buffer;
        while (rest.len > 0) {
            // The layer reads below by sectors.
            @memset(std.mem.bytesAsSlice(u64, rest[0..sector_size]), stampBelow(at / sector_size));
            at += sector_size;
            rest = rest[sector_size..];
        }
    }

    fn stampBelow(sector: u64) u64 {
        return 1 << 40 | sector;
    }
};

/// Every stamp that a sector may hold after a crash; the last one is the current one.
const Model = struct {
    possible: [sectors]std.ArrayList(u64) = @splat(.empty),
    stamp_next: u64 = 1,

    fn init() !Model {
        var model: Model = .{};
        for (&model.possible, 0..) |*list, sector| try list.append(
            testing.allocator,
            BaseDisk.stampBelow(sector),
        );
        return model;
    }

    fn deinit(model: *Model) void {
        for (&model.possible) |*list| list.deinit(testing.allocator);
    }

    fn set(model: *Model, sector: u64, stamp: u64) !void {
        try model.possible[@intCast(sector)].append(testing.allocator, stamp);
    }

    fn settle(model: *Model) void {
        for (&model.possible) |*list| {
            list.items[0] = list.getLast();
            list.shrinkRetainingCapacity(1);
        }
    }

    /// Checks the whole disk; what was read is what it holds from now on.
    fn check(model: *Model, layer: *WriteLayer, after: enum { crash, nothing }) !void {
        var bytes: [disk_size]u8 align(8) = undefined;
        try layer.read(&bytes, 0);
        for (&model.possible, 0..) |*list, sector| {
            const words = std.mem.bytesAsSlice(u64, bytes[sector * sector_size ..][0..sector_size]);
            try testing.expect(std.mem.allEqual(u64, @alignCast(words), words[0]));
            switch (after) {
                .nothing => try testing.expectEqual(list.getLast(), words[0]),
                .crash => {
                    try testing.expect(std.mem.findScalar(u64, list.items, words[0]) != null);
                    list.items[0] = words[0];
                    list.shrinkRetainingCapacity(1);
                },
            }
        }
    }
};

fn headOf(class: WriteLayer.Class, limit_bytes: u64) store.layer_head.Head {
    return .{
        .layer_id = .fromBytes(@splat(7)),
        .binding = bindingOf(class),
        .limit_bytes = limit_bytes,
        .sequence = 0,
    };
}

fn bindingOf(class: WriteLayer.Class) WriteLayer.Binding {
    return .{
        .class = class,
        .device_id = .fromBytes(@splat(1)),
        .version_id = .fromBytes(@splat(2)),
        .disk_size = disk_size,
    };
}

const LayerFixture = struct {
    sim: SimFiles,
    prng: Prng,
    model: Model,
    batch: WriteLayer.Batch = .{},

    fn init(seed: u64) !LayerFixture {
        var fixture: LayerFixture = .{
            .sim = try .init(testing.allocator, seed),
            .prng = .init(seed),
            .model = try .init(),
        };
        try fixture.sim.files().makeDir("layers");
        fixture.sim.syncAll();
        return fixture;
    }

    fn deinit(fixture: *LayerFixture) void {
        fixture.sim.deinit();
        fixture.model.deinit();
    }

    fn create(fixture: *LayerFixture) !WriteLayer {
        return WriteLayer.create(
            testing.allocator,
            fixture.sim.files(),
            dir,
            headOf(.edge_persistent, 1 << 30),
            BaseDisk.source(),
        );
    }

    fn open(fixture: *LayerFixture) !WriteLayer {
        return WriteLayer.open(
            testing.allocator,
            fixture.sim.files(),
            dir,
            &bindingOf(.edge_persistent),
            BaseDisk.source(),
        );
    }

    /// One random operation; after a failure each sector may have changed or not.
    fn step(fixture: *LayerFixture, layer: *WriteLayer) !void {
        const first = fixture.prng.below(sectors);
        const count = fixture.prng.between(
            1,
            @min(sectors - first, fixture.prng.pick(u64, &.{ 1, 8, 9, 64 })),
        );
        const offset, const size = .{ first * sector_size, count * sector_size };
        switch (fixture.prng.below(8)) {
            0...4 => {
                var bytes: [64 * sector_size]u8 = undefined;
                const zeros = fixture.prng.chance(1, 8);
                for (0..@intCast(count)) |index| {
                    const stamp = if (zeros) 0 else fixture.model.stamp_next;
                    fixture.model.stamp_next += 1;
                    @memset(
                        std.mem.bytesAsSlice(u64, bytes[index * sector_size ..][0..sector_size]),
                        stamp,
                    );
                    try fixture.model.set(first + index, stamp);
                }
                try layer.write(bytes[0..@intCast(size)], offset);
            },
            5 => {
                for (first..first + count) |sector| try fixture.model.set(sector, 0);
                try layer.discard(offset, size);
            },
            6 => {
                try layer.flush(&fixture.batch);
                fixture.model.settle();
            },
            else => try fixture.model.check(layer, .nothing),
        }
    }
};

const rounds = 120;

test "after any crash each sector is what was synced or what was written since, and nothing else" {
    for (0..rounds) |seed| {
        var fixture: LayerFixture = try .init(seed);
        defer fixture.deinit();
        var layer = try fixture.create();
        for (0..6) |_| {
            fixture.sim.stop_after = fixture.sim.operations + fixture.prng.below(60);
            for (0..40) |_| fixture.step(&layer) catch |err| switch (err) {
                error.Lost, error.ReadFailed => break,
                else => return err,
            };
            layer.close(testing.allocator);
            if (fixture.prng.chance(1, 4)) fixture.sim.endProcess() else fixture.sim.crash();
            layer = try fixture.open();
            try fixture.model.check(&layer, .crash);
            // Unsynced data that a process finds must be synced before it is relied on.
            fixture.sim.syncAll();
        }
        layer.close(testing.allocator);
    }
}

test "an interrupted creation leaves a whole layer or none" {
    for (0..rounds) |seed| {
        var fixture: LayerFixture = try .init(seed);
        defer fixture.deinit();
        fixture.sim.stop_after = fixture.sim.operations + seed % 20;
        if (fixture.create()) |made| {
            var layer = made;
            layer.close(testing.allocator);
        } else |err| try testing.expectEqual(error.DiskFailed, err);
        fixture.sim.crash();
        var layer = fixture.open() catch |err| blk: {
            try testing.expectEqual(error.NotFound, err);
            break :blk try fixture.create();
        };
        defer layer.close(testing.allocator);
        try fixture.model.check(&layer, .nothing);
    }
}

test "an interrupted removal is finished later, and never leaves a layer that looks lost" {
    for (0..rounds) |seed| {
        var fixture: LayerFixture = try .init(seed);
        defer fixture.deinit();
        var layer = try fixture.create();
        try layer.write(&@as([4096]u8, @splat(3)), 0);
        try layer.flush(&fixture.batch);
        layer.close(testing.allocator);
        fixture.sim.stop_after = fixture.sim.operations + seed % 9;
        WriteLayer.remove(fixture.sim.files(), dir) catch |err|
            try testing.expectEqual(error.DiskFailed, err);
        fixture.sim.crash();
        layer = fixture.open() catch |err| switch (err) {
            error.NotFound => try fixture.create(),
            // Only if no part of the removal was durable.
            error.Lost => return error.LooksLost,
            else => return err,
        };
        layer.close(testing.allocator);
    }
}

test "a layer of another version, device, size, class or process is refused by name" {
    var fixture: LayerFixture = try .init(1);
    defer fixture.deinit();
    const files = fixture.sim.files();
    var layer = try fixture.create();
    try testing.expectError(error.InUse, fixture.open());
    try testing.expectError(error.InUse, WriteLayer.remove(files, dir));
    try testing.expectError(error.Exists, fixture.create());
    layer.close(testing.allocator);
    var binding = bindingOf(.edge_persistent);
    binding.version_id = .fromBytes(@splat(9));
    try testing.expectError(
        error.AnotherVersion,
        WriteLayer.open(testing.allocator, files, dir, &binding, BaseDisk.source()),
    );
    binding = bindingOf(.edge_persistent);
    binding.version_root[31] = 1;
    try testing.expectError(
        error.AnotherVersion,
        WriteLayer.open(testing.allocator, files, dir, &binding, BaseDisk.source()),
    );
    binding = bindingOf(.edge_persistent);
    binding.device_id = .fromBytes(@splat(9));
    try testing.expectError(
        error.AnotherDevice,
        WriteLayer.open(testing.allocator, files, dir, &binding, BaseDisk.source()),
    );
    binding = bindingOf(.maintenance);
    try testing.expectError(
        error.AnotherClass,
        WriteLayer.open(testing.allocator, files, dir, &binding, BaseDisk.source()),
    );
    binding = bindingOf(.edge_persistent);
    binding.disk_size -= sector_size;
    var smaller = BaseDisk.source();
    smaller.size = binding.disk_size;
    try testing.expectError(
        error.AnotherSize,
        WriteLayer.open(testing.allocator, files, dir, &binding, smaller),
    );
    layer = try fixture.open();
    layer.close(testing.allocator);
}

test "a layer with missing, truncated or damaged parts is lost, and nothing below it is served" {
    const Damage = struct { expected: anyerror, do: *const fn (*SimFiles) anyerror!void };
    const damages = [_]Damage{
        .{ .expected = error.Lost, .do = struct {
            fn do(sim: *SimFiles) !void {
                try sim.files().remove(dir ++ "/data");
            }
        }.do },
        .{ .expected = error.Lost, .do = struct {
            fn do(sim: *SimFiles) !void {
                try sim.files().remove(dir ++ "/map");
            }
        }.do },
        .{ .expected = error.Lost, .do = struct {
            fn do(sim: *SimFiles) !void {
                const handle = try sim.files().open(dir ++ "/data", .write);
                defer sim.files().close(handle);
                try sim.files().setSize(handle, 4096);
            }
        }.do },
        .{ .expected = error.Damaged, .do = struct {
            fn do(sim: *SimFiles) !void {
                const handle = try sim.files().open(dir ++ "/map", .write);
                defer sim.files().close(handle);
                try sim.files().punch(handle, 0, 4096);
            }
        }.do },
        .{ .expected = error.Damaged, .do = struct {
            fn do(sim: *SimFiles) !void {
                sim.flipBit(dir ++ "/map", 9, 3);
            }
        }.do },
        .{ .expected = error.Damaged, .do = struct {
            fn do(sim: *SimFiles) !void {
                sim.flipBit(dir ++ "/head", 100, 3);
            }
        }.do },
    };
    for (damages) |damage| {
        var fixture: LayerFixture = try .init(2);
        defer fixture.deinit();
        var layer = try fixture.create();
        try layer.write(&@as([4096]u8, @splat(3)), 0);
        try layer.flush(&fixture.batch);
        layer.close(testing.allocator);
        try damage.do(&fixture.sim);
        try testing.expectError(damage.expected, fixture.open());
    }
    // A missing head: the layer was written, so no new one replaces it unasked.
    var fixture: LayerFixture = try .init(2);
    defer fixture.deinit();
    var layer = try fixture.create();
    try layer.write(&@as([4096]u8, @splat(3)), 0);
    try layer.flush(&fixture.batch);
    layer.close(testing.allocator);
    try fixture.sim.files().remove(dir ++ "/head");
    try testing.expectError(error.NotFound, fixture.open());
    try testing.expectError(error.Lost, fixture.create());
    try WriteLayer.remove(fixture.sim.files(), dir);
    layer = try fixture.create();
    layer.close(testing.allocator);
}

test "a data file that is truncated under a running layer stops it" {
    var fixture: LayerFixture = try .init(3);
    defer fixture.deinit();
    var layer = try fixture.create();
    defer layer.close(testing.allocator);
    try layer.write(&@as([8192]u8, @splat(3)), 0);
    const handle = try fixture.sim.files().open(dir ++ "/data", .write);
    try fixture.sim.files().setSize(handle, 4096);
    var bytes: [512]u8 = undefined;
    try testing.expectError(error.Lost, layer.read(&bytes, 4096));
    try testing.expectError(error.Lost, layer.read(&bytes, 100 * 512));
    try testing.expectError(error.Lost, layer.write(&bytes, 0));
}

test "a failed sync loses the layer: the state of the disk is unknown" {
    var fixture: LayerFixture = try .init(4);
    defer fixture.deinit();
    var layer = try fixture.create();
    defer layer.close(testing.allocator);
    try layer.write(&@as([4096]u8, @splat(3)), 0);
    fixture.sim.fail_at = fixture.sim.operations;
    try testing.expectError(error.Lost, layer.flush(&fixture.batch));
    var bytes: [512]u8 = undefined;
    try testing.expectError(error.Lost, layer.read(&bytes, 0));
}

test "a full layer accepts writes that need no space, and a discard frees space" {
    var fixture: LayerFixture = try .init(5);
    defer fixture.deinit();
    const head = headOf(.edge_persistent, 4 * 4096);
    var layer = try WriteLayer.create(
        testing.allocator,
        fixture.sim.files(),
        dir,
        head,
        BaseDisk.source(),
    );
    defer layer.close(testing.allocator);
    const blocks: [4 * 4096]u8 = @splat(3);
    try layer.write(&blocks, 0);
    try testing.expectEqual(4 * 4096, layer.usedBytes());
    var before: [disk_size]u8 = undefined;
    try layer.read(&before, 0);
    try testing.expectError(error.Full, layer.write(blocks[0..512], 5 * 4096));
    try testing.expectError(error.Full, layer.write(blocks[0..8192], 3 * 4096));
    var after: [disk_size]u8 = undefined;
    try layer.read(&after, 0);
    try testing.expectEqualSlices(u8, &before, &after);
    try layer.write(blocks[0..4096], 4096);
    try layer.discard(0, 4096);
    try testing.expectEqual(3 * 4096, layer.usedBytes());
    try layer.write(blocks[0..512], 5 * 4096);
    try testing.expectError(error.Full, layer.write(blocks[0..512], 0));
}

test "a first write of blocks takes two syncs, a write of owned blocks takes one, no write takes none" {
    var fixture: LayerFixture = try .init(6);
    defer fixture.deinit();
    var layer = try fixture.create();
    defer layer.close(testing.allocator);
    const course = [_]struct {
        offset: u64,
        syncs: u64,
    }{ .{ .offset = 0, .syncs = 2 }, .{ .offset = 512, .syncs = 1 } };
    for (course) |step| {
        const before = fixture.sim.syncs;
        try layer.write(&@as([512]u8, @splat(3)), step.offset);
        try layer.flush(&fixture.batch);
        try layer.flush(&fixture.batch);
        try testing.expectEqual(step.syncs, fixture.sim.syncs - before);
    }
}

test "a volatile layer never syncs and leaves nothing behind" {
    var fixture: LayerFixture = try .init(7);
    defer fixture.deinit();
    const before = fixture.sim.syncs;
    var layer = try WriteLayer.create(
        testing.allocator,
        fixture.sim.files(),
        dir,
        headOf(.edge, 1 << 30),
        BaseDisk.source(),
    );
    for (0..200) |_| try fixture.step(&layer);
    try fixture.model.check(&layer, .nothing);
    layer.close(testing.allocator);
    try testing.expectEqual(before, fixture.sim.syncs);
    var name: store.files.Name = undefined;
    try testing.expectEqual(null, try fixture.sim.files().nextName("layers", "", &name));
}
