//! Tests handover.zig on files of this machine. The simulation in src/sim/store tests it on disks
//! that fail.

const std = @import("std");
const store_module = @import("../store.zig");

const block_size = WriteLayer.block_size;
const BlockSource = store_module.BlockSource;
const Files = store_module.Files;
const Handle = Files.Handle;
const Handover = store_module.LayerHandover;
const LinuxFiles = store_module.LinuxFiles;
const SpiedFiles = @import("../files/spied_files.zig");
const WriteLayer = store_module.WriteLayer;
const testing = std.testing;
const gpa = testing.allocator;

/// More than two chunks of 64 records of the map, each for 4032 blocks, and a short block.
const disk_size = 135 * 4032 * block_size + 512;
const name = "handover";

fn readBelow(_: *anyopaque, buffer: []u8, _: u64) store_module.block_source.ReadError!void {
    @memset(buffer, 'b');
}

const below: BlockSource =
    .{ .context = undefined, .vtable = &.{ .read = readBelow }, .size = disk_size };

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    spied: SpiedFiles,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        fixture.spied = .init(&fixture.on);
        try fixture.on.files().makeDir("layers");
    }

    fn deinit(fixture: *Fixture) void {
        fixture.tmp.cleanup();
    }

    fn files(fixture: *Fixture) Files {
        return fixture.spied.files();
    }

    fn create(fixture: *Fixture, id: u8) !WriteLayer {
        var dir: [32]u8 = undefined;
        return .create(gpa, fixture.files(), try std.mem.print(&dir, "layers/{d}", .{id}), .{
            .layer_id = .fromRandom(@splat(id)),
            .binding = .{
                .class = .edge,
                .device_id = .fromRandom(@splat(id)),
                .version_id = .fromRandom(@splat(9)),
                .disk_size = disk_size,
            },
            .limit_bytes = 1 << 30,
            .sequence = 0,
        }, below);
    }
};

/// The end of a program: its memory is gone, and its handles stay.
fn forget(layer: *WriteLayer) void {
    layer.map.deinit(gpa);
    layer.* = undefined;
}

fn handOver(files: Files, layers: []const WriteLayer) !Handle {
    var handover: Handover = try .begin(files, name);
    errdefer handover.cancel();
    for (layers, 0..) |*layer, index|
        try handover.add(layer, &@as(Handover.Owner, @splat(@intCast(index))));
    return handover.end();
}

fn expectBytes(layer: *WriteLayer, offset: u64, byte: u8) !void {
    var bytes: [512]u8 = undefined;
    try layer.read(&bytes, offset);
    try testing.expect(std.mem.allEqual(u8, &bytes, byte));
}

fn writeBytes(layer: *WriteLayer, offset: u64, byte: u8) !void {
    try layer.write(&@as([512]u8, @splat(byte)), offset);
}

test "the next program has every write of each layer, and writes on" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.files();
    var layers: [3]WriteLayer = undefined;
    for (&layers, 1..) |*layer, id| layer.* = try fixture.create(@intCast(id));
    for (0..135) |record| try writeBytes(&layers[1], record * 4032 * block_size, @intCast(record));
    try writeBytes(&layers[1], disk_size - 512, 'e');
    try layers[1].discard(5 * 4032 * block_size, block_size);
    try writeBytes(&layers[2], 512, 'x');
    const limits = [_]u64{ layers[0].usedBytes(), layers[1].usedBytes() };
    SpiedFiles.clear();
    const handle = try handOver(files, &layers);
    for (&layers) |*layer| forget(layer);
    var taking: Handover.Taking = try .begin(files, handle);
    for (&layers, 0..) |*layer, index| {
        const taken = (try taking.next(gpa)).?;
        try testing.expectEqual(@as(Handover.Owner, @splat(@intCast(index))), taken.owner);
        layer.* = taken.layer;
    }
    defer for (&layers) |*layer| layer.close(gpa);
    try testing.expectEqual(null, try taking.next(gpa));
    taking.end();
    try testing.expectEqual(0, SpiedFiles.calls.syncs);
    // What lies below is not known yet, and never guessed.
    try testing.expectError(error.ReadFailed, expectBytes(&layers[0], 0, 'b'));
    try testing.expectError(error.ReadFailed, writeBytes(&layers[0], 0, 'a'));
    for (&layers) |*layer| layer.below = below;
    try expectBytes(&layers[0], 0, 'b');
    for (0..135) |record| {
        const byte: u8 = if (record == 5) 0 else @intCast(record);
        try expectBytes(&layers[1], record * 4032 * block_size, byte);
        try expectBytes(&layers[1], record * 4032 * block_size + block_size, 'b');
    }
    try expectBytes(&layers[1], disk_size - 512, 'e');
    try expectBytes(&layers[2], 0, 'b');
    try expectBytes(&layers[2], 512, 'x');
    try testing.expectEqual(limits[0], layers[0].usedBytes());
    try testing.expectEqual(limits[1], layers[1].usedBytes());
    try testing.expect(layers[1].head.layer_id.eql(.fromRandom(@splat(2))));
    try testing.expectEqual(1 << 30, layers[1].head.limit_bytes);
    try writeBytes(&layers[0], 0, 'a');
    try expectBytes(&layers[0], 0, 'a');
}

test "layers are handed over again and again" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.files();
    var layer = try fixture.create(1);
    for (0..20) |round| {
        layer.below = below;
        try writeBytes(&layer, round * 4032 * block_size, @intCast(round));
        const handle = try handOver(files, @as(*[1]WriteLayer, &layer));
        forget(&layer);
        var taking: Handover.Taking = try .begin(files, handle);
        layer = (try taking.next(gpa)).?.layer;
        taking.end();
        for (0..round + 1) |earlier|
            try expectBytes(&layer, earlier * 4032 * block_size, @intCast(earlier));
    }
    layer.close(gpa);
}

test "nothing has a name, before or after" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.files();
    // What a power failure left.
    files.close(try files.create(name));
    var layer = try fixture.create(1);
    defer layer.close(gpa);
    const handle = try handOver(files, @as(*[1]WriteLayer, &layer));
    defer files.close(handle);
    var found: store_module.files.Name = undefined;
    try testing.expectEqual(null, try files.nextName("layers", "", &found));
    try testing.expectEqualStrings("layers", (try files.nextName("", "", &found)).?);
    try testing.expectEqual(null, try files.nextName("", "layers", &found));
}

test "a block that rots after the exchange is found, and one that was condemned before it stays so" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.files();
    var layer = try fixture.create(1);
    try writeBytes(&layer, 0, 'x');
    try writeBytes(&layer, block_size, 'y');
    layer.sums.?.condemn(files, 1);
    const handle = try handOver(files, @as(*[1]WriteLayer, &layer));
    forget(&layer);
    var taking: Handover.Taking = try .begin(files, handle);
    layer = (try taking.next(gpa)).?.layer;
    taking.end();
    defer layer.close(gpa);
    layer.below = below;
    try expectBytes(&layer, 0, 'x');
    try files.write(layer.data, "?", 100);
    try testing.expectError(error.Lost, expectBytes(&layer, 0, 'x'));
    try testing.expectEqual(0, layer.rotten_at);
    layer.is_lost = false;
    try testing.expectError(error.Lost, expectBytes(&layer, block_size, 'y'));
}

test "a hand-over that is cut off anywhere, or in which a bit has flipped, gives nothing that is wrong" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.files();
    var layers = [_]WriteLayer{ try fixture.create(1), try fixture.create(2) };
    defer for (&layers) |*layer| layer.close(gpa);
    for (&layers) |*layer| for (0..3) |record|
        try writeBytes(layer, record * 4032 * block_size, 'x');
    const whole_handle = try handOver(files, &layers);
    defer files.close(whole_handle);
    const bytes = try gpa.alloc(u8, @intCast(try files.size(whole_handle)));
    defer gpa.free(bytes);
    try testing.expect(try files.readWhole(whole_handle, bytes, 0));
    const second_at = 24 + (bytes.len - 24) / 2;
    for (0..bytes.len) |at| {
        for ([_]enum { cut, flipped }{ .cut, .flipped }) |how| {
            const copy = try files.create("copy");
            try files.remove("copy");
            try files.write(copy, bytes[0..if (how == .cut) at else bytes.len], 0);
            if (how == .flipped)
                try files.write(copy, &.{bytes[at] ^ @as(u8, 1) << @intCast(at % 8)}, at);
            var count: u32 = 0;
            const result = takeAll(files, copy, &count);
            // Behind the header, nothing vouches for a second layer but itself.
            try testing.expectEqual(@intFromBool(at >= second_at), count);
            if (result) return error.Taken else |err| switch (err) {
                // The number of the format itself has no other check.
                error.Damaged => {},
                else => return err,
            }
        }
    }
}

fn takeAll(files: Files, handle: Handle, count: *u32) !void {
    var taking: Handover.Taking = try .begin(files, handle);
    defer taking.end();
    while (try taking.next(gpa)) |found| {
        var taken = found;
        // The handles are those of the layers that still exist.
        taken.layer.below = below;
        try expectBytes(&taken.layer, 0, 'x');
        forget(&taken.layer);
        count.* += 1;
    }
}

test "the files of another layer, or of none, are not taken for those of this one" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.files();
    var layers = [_]WriteLayer{ try fixture.create(1), try fixture.create(2) };
    defer for (&layers) |*layer| layer.close(gpa);
    const foreign = try files.create("foreign");
    defer files.close(foreign);
    const data, const sums = .{ layers[0].data, layers[0].sums.?.handle };
    const gone: Handle = @fromBackingInt(1 << 20);
    for ([_]Handle{ layers[1].data, layers[1].sums.?.handle, foreign, gone }) |other| {
        layers[0].data = other;
        try expectRefused(files, &layers);
        layers[0].data = data;
        layers[0].sums.?.handle = other;
        try expectRefused(files, &layers);
        layers[0].sums.?.handle = sums;
    }
}

fn expectRefused(files: Files, layers: []const WriteLayer) !void {
    var count: u32 = 0;
    const handle = try handOver(files, layers);
    if (takeAll(files, handle, &count)) return error.Taken else |err| switch (err) {
        error.Damaged, error.DiskFailed => {},
        else => return err,
    }
    try testing.expectEqual(0, count);
}

test "a later format is told from damage" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.files();
    const handle = try handOver(files, &.{});
    var header: [24]u8 = undefined;
    try testing.expect(try files.readWhole(handle, &header, 0));
    header[8] = Handover.format + 1;
    std.mem.writeInt(u64, header[16..24], std.hash.XxHash64.hash(0, header[0..16]), .little);
    try files.write(handle, &header, 0);
    try testing.expectError(error.NewerFormat, Handover.Taking.begin(files, handle));
    // The handle is closed: nobody takes it a second time.
    try testing.expectError(error.DiskFailed, files.size(handle));
}
