//! Tests write_layer.zig on files of this machine, against an array of the disk's bytes. The
//! simulation in src/sim/store tests it on disks that fail.

const std = @import("std");
const base = @import("base");
const store_module = @import("../store.zig");

const block_size = WriteLayer.block_size;
const BlockSource = store_module.BlockSource;
const LinuxFiles = store_module.LinuxFiles;
const SpiedFiles = @import("../files/spied_files.zig");
const WriteLayer = store_module.WriteLayer;
const testing = std.testing;
const gpa = testing.allocator;

/// 20 blocks, and one of three sectors.
const disk_size = 20 * block_size + 3 * 512;
const dir = "layers/one";

/// The disk below: each sector has its own byte.
const Below = struct {
    problem: ?store_module.block_source.ReadError = null,
    reads: u64 = 0,
    is_in_memory: bool = true,

    fn source(below: *Below) BlockSource {
        return .{
            .context = below,
            .vtable = &.{ .read = read, .readNow = readNow },
            .size = disk_size,
        };
    }

    fn read(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
    ) store_module.block_source.ReadError!void {
        const below: *Below = @ptrCast(@alignCast(context));
        below.reads += 1;
        if (below.problem) |problem| return problem;
        for (buffer, offset..) |*byte, at| byte.* = byteOf(at);
    }

    fn readNow(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
    ) store_module.block_source.ReadError!bool {
        const below: *Below = @ptrCast(@alignCast(context));
        try read(context, buffer, offset);
        return below.is_in_memory;
    }

    fn byteOf(at: u64) u8 {
        return @intCast(100 + at / 512 % 100);
    }
};

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    below: Below = .{},
    spied: SpiedFiles,
    batch: WriteLayer.Batch = .{},
    disk: [disk_size]u8,
    limit_bytes: u64 = 1 << 30,

    fn init(fixture: *Fixture) !void {
        fixture.* = .{
            .tmp = testing.tmpDir(.{ .iterate = true }),
            .on = undefined,
            .spied = undefined,
            .disk = undefined,
        };
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        fixture.spied = .init(&fixture.on);
        try fixture.on.files().makeDir("layers");
        for (&fixture.disk, 0..) |*byte, at| byte.* = Below.byteOf(at);
    }

    fn deinit(fixture: *Fixture) void {
        fixture.tmp.cleanup();
    }

    fn create(fixture: *Fixture, class: WriteLayer.Class) !WriteLayer {
        return .create(gpa, fixture.spied.files(), dir, .{
            .layer_id = .fromRandom(@splat(7)),
            .binding = bindingOf(class),
            .limit_bytes = fixture.limit_bytes,
            .sequence = 0,
        }, fixture.below.source());
    }

    fn open(fixture: *Fixture, class: WriteLayer.Class) !WriteLayer {
        return .open(
            gpa,
            fixture.spied.files(),
            dir,
            &bindingOf(class),
            fixture.below.source(),
        );
    }

    fn write(fixture: *Fixture, layer: *WriteLayer, byte: u8, offset: usize, size: usize) !void {
        var bytes: [disk_size]u8 = undefined;
        @memset(bytes[0..size], byte);
        try layer.write(bytes[0..size], offset);
        @memset(fixture.disk[offset..][0..size], byte);
    }

    fn expectDisk(fixture: *Fixture, layer: *WriteLayer) !void {
        var found: [disk_size]u8 = undefined;
        try layer.read(&found, 0);
        try testing.expect(std.mem.eql(u8, &fixture.disk, &found));
    }
};

fn bindingOf(class: WriteLayer.Class) WriteLayer.Binding {
    return .{
        .class = class,
        .device_id = .fromRandom(@splat(1)),
        .version_id = .fromRandom(@splat(2)),
        .disk_size = disk_size,
    };
}

test "a layer reads as an array of bytes would, in its process and in the next" {
    for ([_]WriteLayer.Class{ .edge, .edge_persistent }) |class| {
        var fixture: Fixture = undefined;
        try fixture.init();
        defer fixture.deinit();
        var layer = try fixture.create(class);
        defer layer.close(gpa);
        var prng: base.Prng = .init(3);
        for (0..400) |round| {
            const first: usize = @intCast(prng.below(disk_size / 512));
            const most = @min(disk_size / 512 - first, prng.pick(usize, &.{ 1, 8, 9, 30 }));
            const offset = first * 512;
            const size: usize = @intCast(512 * prng.between(1, most));
            switch (prng.below(8)) {
                0...3 => try fixture.write(&layer, @truncate(round | 1), offset, size),
                4 => try fixture.write(&layer, 0, offset, size),
                5 => {
                    try layer.discard(offset, size);
                    @memset(fixture.disk[offset..][0..size], 0);
                },
                6 => try layer.flush(&fixture.batch),
                else => {
                    var found: [disk_size]u8 = undefined;
                    const at: usize = @intCast(prng.below(disk_size));
                    const part = found[0..@intCast(prng.between(1, disk_size - at))];
                    try layer.read(part, at);
                    try testing.expect(std.mem.eql(u8, fixture.disk[at..][0..part.len], part));
                    SpiedFiles.in_memory = 1000;
                    @memset(part, 0xee);
                    try testing.expect(try layer.readNow(part, at));
                    try testing.expect(std.mem.eql(u8, fixture.disk[at..][0..part.len], part));
                },
            }
            if (class == .edge or round % 50 != 49) continue;
            try layer.flush(&fixture.batch);
            layer.close(gpa);
            layer = try fixture.open(class);
        }
        try fixture.expectDisk(&layer);
    }
}

test "ranges beyond the end of the disk are refused, up to it they are not" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    var bytes: [disk_size + 512]u8 = @splat('w');
    try layer.read(bytes[0..512], disk_size - 512);
    try layer.write(bytes[0..512], disk_size - 512);
    try layer.discard(disk_size - 512, 512);
    try layer.write(bytes[0..disk_size], 0);
    for ([_][2]u64{
        .{ disk_size - 512, 1024 },
        .{ disk_size, 512 },
        .{ 0, disk_size + 512 },
    }) |range| {
        const part = bytes[0..@intCast(range[1])];
        try testing.expectError(error.BeyondTheEnd, layer.read(part, range[0]));
        try testing.expectError(error.BeyondTheEnd, layer.readNow(part, range[0]));
        try testing.expectError(error.BeyondTheEnd, layer.write(part, range[0]));
        try testing.expectError(error.BeyondTheEnd, layer.discard(range[0], range[1]));
    }
    try testing.expectError(error.BeyondTheEnd, layer.write(bytes[0..0], 0));
    try layer.read(bytes[0..0], disk_size);
}

test "a layer takes blocks up to its limit and not one more, and zeros and rewrites take none" {
    for ([_]WriteLayer.Class{ .edge, .edge_persistent }) |class| {
        var fixture: Fixture = undefined;
        try fixture.init();
        defer fixture.deinit();
        fixture.limit_bytes = 4 * block_size;
        var layer = try fixture.create(class);
        defer layer.close(gpa);
        try fixture.write(&layer, 'a', 0, 3 * block_size);
        try layer.flush(&fixture.batch);
        try testing.expectEqual(3 * block_size, layer.usedBytes());
        // Two blocks for three sectors across their border.
        var bytes: [2 * block_size]u8 = @splat('x');
        try testing.expectError(error.Full, layer.write(bytes[0..1536], 5 * block_size - 512));
        try fixture.expectDisk(&layer);
        try fixture.write(&layer, 'b', 5 * block_size + 512, 512);
        try testing.expectError(error.Full, layer.write(bytes[0..512], 6 * block_size));
        // One known block and one new block.
        try testing.expectError(error.Full, layer.write(bytes[0..8192], 2 * block_size));
        try fixture.write(&layer, 'c', block_size, 2 * block_size);
        try fixture.write(&layer, 0, 10 * block_size, 2 * block_size);
        try fixture.write(&layer, 'd', 5 * block_size, block_size);
        try testing.expectEqual(4 * block_size, layer.usedBytes());
        try layer.discard(block_size, block_size);
        @memset(fixture.disk[block_size..][0..block_size], 0);
        try testing.expectEqual(3 * block_size, layer.usedBytes());
        // An owned block without bytes takes space again.
        try fixture.write(&layer, 'e', 11 * block_size + 512, 512);
        try testing.expectError(error.Full, layer.write(bytes[0..512], block_size));
        try fixture.expectDisk(&layer);
    }
}

test "where the file system is almost full, known blocks are written and new ones are not" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    try fixture.write(&layer, 'a', 0, 2 * block_size);
    try layer.flush(&fixture.batch);
    layer.is_short = true;
    var bytes: [2 * block_size]u8 = @splat('x');
    try testing.expectError(error.NoSpace, layer.write(bytes[0..512], 3 * block_size));
    try testing.expectError(error.NoSpace, layer.write(&bytes, block_size));
    try fixture.write(&layer, 'b', 512, block_size);
    // Zeros and discards free space.
    try fixture.write(&layer, 0, 5 * block_size, block_size);
    try layer.discard(block_size, block_size);
    @memset(fixture.disk[block_size..][0..block_size], 0);
    try fixture.expectDisk(&layer);
    layer.is_short = false;
    try fixture.write(&layer, 'c', 3 * block_size, 512);
    try fixture.expectDisk(&layer);
}

test "a write of known blocks and one more fills a layer up to its limit" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    fixture.limit_bytes = 4 * block_size;
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    try fixture.write(&layer, 'a', 0, 3 * block_size);
    try layer.flush(&fixture.batch);
    try fixture.write(&layer, 'b', 2 * block_size, 2 * block_size);
    try layer.flush(&fixture.batch);
    try testing.expectEqual(4 * block_size, layer.usedBytes());
    try fixture.expectDisk(&layer);
}

test "the short last block of a disk is freed as a whole" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    try fixture.write(&layer, 'a', 20 * block_size, 1536);
    try layer.flush(&fixture.batch);
    try testing.expectEqual(block_size, layer.usedBytes());
    try layer.discard(20 * block_size, 1536);
    @memset(fixture.disk[20 * block_size ..], 0);
    try testing.expectEqual(0, layer.usedBytes());
    try fixture.expectDisk(&layer);
}

test "the disk below is read once for a part of a block, and never for a whole one or an owned one" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    try fixture.write(&layer, 'a', 0, 2 * block_size);
    try fixture.write(&layer, 'b', 512, 512);
    try testing.expectEqual(0, fixture.below.reads);
    try fixture.write(&layer, 'c', 3 * block_size, 512);
    try testing.expectEqual(1, fixture.below.reads);
    try fixture.write(&layer, 'd', 3 * block_size + 1024, 512);
    try testing.expectEqual(1, fixture.below.reads);
    const ReadError = store_module.block_source.ReadError;
    for ([_]ReadError{ error.ReadFailed, error.Damaged, error.Lost }) |problem| {
        fixture.below.problem = problem;
        const bytes: [512]u8 = @splat('x');
        try testing.expectError(problem, layer.write(&bytes, 7 * block_size + 512));
        var found: [512]u8 = undefined;
        try testing.expectError(problem, layer.read(&found, 9 * block_size));
        try testing.expectError(problem, layer.readNow(&found, 9 * block_size));
    }
    fixture.below.problem = null;
    try fixture.expectDisk(&layer);
}

test "a read without waiting gives up where the layer or the disk below would wait" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    try fixture.write(&layer, 'a', 0, block_size);
    var found: [2 * block_size]u8 = undefined;
    // Its bytes, and their checksums.
    for ([_]bool{ false, true }) |is_below| for ([_]u32{ 0, 1, 2 }) |own| {
        fixture.below.is_in_memory = is_below;
        SpiedFiles.in_memory = own;
        try testing.expectEqual(is_below and own == 2, try layer.source().readNow(&found, 0));
    };
}

test "runs name the owner of each part of a range, in order" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    try fixture.write(&layer, 'a', 2 * block_size, 2 * block_size);
    var walk = layer.runs(700, 5 * block_size);
    for ([_]WriteLayer.Run{
        .{ .offset = 700, .size = 2 * block_size - 700, .is_own = false },
        .{ .offset = 2 * block_size, .size = 2 * block_size, .is_own = true },
        .{ .offset = 4 * block_size, .size = block_size + 700, .is_own = false },
    }) |expected| try testing.expectEqual(expected, walk.next().?);
    try testing.expectEqual(null, walk.next());
    walk = layer.runs(2 * block_size + 1, 1);
    try testing.expectEqual(
        WriteLayer.Run{ .offset = 2 * block_size + 1, .size = 1, .is_own = true },
        walk.next().?,
    );
    try testing.expectEqual(null, walk.next());
}

test "a sync copies what changed and nothing else, and a layer of its process has none" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    {
        var fleeting = try fixture.create(.edge);
        defer fleeting.close(gpa);
        try fleeting.write(&@as([512]u8, @splat('x')), 0);
        try testing.expect(!fleeting.beginSync(&fixture.batch));
        try fleeting.flush(&fixture.batch);
    }
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    try testing.expect(!layer.beginSync(&fixture.batch));
    try fixture.write(&layer, 'a', 0, 512);
    try testing.expect(layer.beginSync(&fixture.batch));
    try testing.expectEqual(1, fixture.batch.count);
    // A write meanwhile is of the next sync.
    try fixture.write(&layer, 'b', 512, 512);
    try layer.endSync(layer.runSync(&fixture.batch));
    try testing.expect(layer.beginSync(&fixture.batch));
    try testing.expectEqual(0, fixture.batch.count);
    try testing.expectError(error.Lost, layer.endSync(error.DiskFailed));
    var found: [512]u8 = undefined;
    try testing.expectError(error.Lost, layer.read(&found, 0));
    try testing.expectError(error.Lost, layer.readNow(&found, 0));
    try testing.expectError(error.Lost, layer.write(&found, 0));
    try testing.expectError(error.Lost, layer.discard(0, 512));
    try testing.expectError(error.Lost, layer.flush(&fixture.batch));
    try testing.expectError(error.Lost, layer.endSync({}));
}

/// Changes one byte of a file behind the layer's back.
fn rot(fixture: *Fixture, name: []const u8, offset: u64) !void {
    const files = fixture.on.files();
    const handle = try files.open(name, .write);
    defer files.close(handle);
    var byte: [1]u8 = undefined;
    _ = try files.readWhole(handle, &byte, offset);
    byte[0] ^= 4;
    try files.write(handle, &byte, offset);
}

test "a block that has rotted is never delivered, in its process and after, until it is written again" {
    // A whole one, the short last one, and one that was written in part.
    for ([_]u64{ 1, 20, 5 }) |block| {
        var fixture: Fixture = undefined;
        try fixture.init();
        defer fixture.deinit();
        var layer = try fixture.create(.edge_persistent);
        try fixture.write(&layer, 'a', 0, 3 * block_size);
        try fixture.write(&layer, 'b', 20 * block_size, 1536);
        try fixture.write(&layer, 'c', 5 * block_size + 512, 512);
        try layer.flush(&fixture.batch);
        try rot(&fixture, dir ++ "/data", block * block_size + 700);
        var bytes: [512]u8 = undefined;
        SpiedFiles.in_memory = 1000;
        const offset = block * block_size + 512;
        try testing.expectError(error.Lost, layer.readNow(&bytes, offset));
        try testing.expectEqual(block * block_size, layer.rotten_at.?);
        for ([_]bool{ true, false, true }) |in_order| {
            if (in_order) layer.settle(&fixture.batch);
            layer.close(gpa);
            layer = try fixture.open(.edge_persistent);
            try testing.expectError(error.Lost, layer.read(&bytes, offset));
        }
        layer.close(gpa);
        layer = try fixture.open(.edge_persistent);
        // Not even by writing a part of it.
        try testing.expectError(error.Lost, layer.write(&bytes, offset));
        layer.close(gpa);
        layer = try fixture.open(.edge_persistent);
        defer layer.close(gpa);
        const size = @min(block_size, disk_size - block * block_size);
        try fixture.write(&layer, 'd', block * block_size, size);
        try fixture.expectDisk(&layer);
    }
}

test "checksums cost a write into memory for each write, and no sync" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var layer = try fixture.create(.edge_persistent);
    defer layer.close(gpa);
    const Case = struct { offset: u64, size: usize, calls: SpiedFiles.Calls };
    for ([_]Case{
        // New: the bytes and their checksum, then the map.
        .{ .offset = 0, .size = block_size, .calls = .{ .writes = 3, .syncs = 2 } },
        .{ .offset = 0, .size = block_size, .calls = .{ .writes = 2, .syncs = 1 } },
        .{ .offset = 0, .size = 4 * block_size, .calls = .{ .writes = 3, .syncs = 2 } },
        // A part: the rest of the block is read and checked first.
        .{ .offset = 512, .size = 512, .calls = .{ .reads = 2, .writes = 2, .syncs = 1 } },
        .{ .offset = 512, .size = block_size, .calls = .{ .reads = 4, .writes = 4, .syncs = 1 } },
    }) |case| {
        SpiedFiles.clear();
        try fixture.write(&layer, 'a', case.offset, case.size);
        try layer.flush(&fixture.batch);
        try testing.expectEqual(case.calls, SpiedFiles.calls);
    }
    SpiedFiles.clear();
    var bytes: [4 * block_size]u8 = undefined;
    try layer.read(&bytes, 0);
    try testing.expectEqual(SpiedFiles.Calls{ .reads = 2 }, SpiedFiles.calls);
}

test "after an orderly end rot is found in every block, after an abrupt one in those written since" {
    for ([_]bool{ true, false }) |in_order| {
        var fixture: Fixture = undefined;
        try fixture.init();
        defer fixture.deinit();
        var layer = try fixture.create(.edge_persistent);
        try fixture.write(&layer, 'a', 0, 2 * block_size);
        try layer.flush(&fixture.batch);
        if (in_order) layer.settle(&fixture.batch);
        layer.close(gpa);
        layer = try fixture.open(.edge_persistent);
        defer layer.close(gpa);
        try fixture.write(&layer, 'b', block_size, block_size);
        var bytes: [512]u8 = undefined;
        try rot(&fixture, dir ++ "/data", 9);
        if (in_order)
            try testing.expectError(error.Lost, layer.read(&bytes, 0))
        else
            try layer.read(&bytes, 0);
        layer.is_lost = false;
        try rot(&fixture, dir ++ "/data", block_size + 9);
        try testing.expectError(error.Lost, layer.read(&bytes, block_size));
    }
}

test "a layer without checksums is taken over, and its blocks get them as they are written" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.on.files();
    var layer = try fixture.create(.edge_persistent);
    try fixture.write(&layer, 'a', 0, 2 * block_size);
    try layer.flush(&fixture.batch);
    var old = layer.head;
    layer.close(gpa);
    old.has_sums = false;
    try files.replace(dir ++ "/head", &store_module.layer_head.emit(&old));
    // Also what an interrupted takeover left.
    for ([_]bool{ true, false }) |has_remains| {
        if (!has_remains) try files.remove(dir ++ "/sums");
        try files.replace(dir ++ "/head", &store_module.layer_head.emit(&old));
        layer = try fixture.open(.edge_persistent);
        try testing.expect(layer.head.has_sums);
        try fixture.expectDisk(&layer);
        try fixture.write(&layer, 'b', block_size, block_size);
        layer.settle(&fixture.batch);
        layer.close(gpa);
        layer = try fixture.open(.edge_persistent);
        try fixture.expectDisk(&layer);
        try rot(&fixture, dir ++ "/data", block_size + 9);
        var bytes: [512]u8 = undefined;
        try layer.read(&bytes, 0);
        try testing.expectError(error.Lost, layer.read(&bytes, block_size));
        layer.is_lost = false;
        try fixture.write(&layer, 'b', block_size, block_size);
        layer.close(gpa);
    }
    try files.remove(dir ++ "/sums");
    try testing.expectError(error.Lost, fixture.open(.edge_persistent));
}
