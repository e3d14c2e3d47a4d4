//! Tests of own_copy.zig and held_copy.zig together: what one edge makes, another one fetches, area
//! by area, and a layer comes back from it.

const std = @import("std");
const base = @import("base");
const AreaList = @import("area_list.zig");
const BlockSource = @import("../block_source.zig");
const Files = @import("../files/files.zig");
const HeldCopy = @import("held_copy.zig");
const LayerSnapshot = @import("../layers/snapshot.zig");
const LinuxFiles = @import("../files/linux_files.zig");
const OwnCopy = @import("own_copy.zig");
const WriteLayer = @import("../layers/write_layer.zig");
const layer_file = @import("../layers/layer_file.zig");
const names = @import("names.zig");
const testing = std.testing;
const gpa = testing.allocator;
const block_size = AreaList.block_size;
const area_blocks = AreaList.area_blocks;

/// Ends within a block of the fifth area.
const disk_size = 4 * AreaList.area_size + 3 * block_size + 1536;

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    files: Files,
    layer: WriteLayer,
    batch: *WriteLayer.Batch,
    nothing: u8 = 0,
    own_buffer: Files.Name = undefined,
    held_buffer: Files.Name = undefined,
    own: []const u8,
    held: []const u8,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{});
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        fixture.files = fixture.on.files();
        fixture.batch = try gpa.create(WriteLayer.Batch);
        fixture.layer = try .create(gpa, fixture.files, "layer", .{
            .layer_id = .fromBytes(@splat(1)),
            .binding = .{
                .class = .edge_persistent,
                .device_id = .fromBytes(@splat(2)),
                .version_id = .fromBytes(@splat(3)),
                .disk_size = disk_size,
            },
            .limit_bytes = 1 << 30,
            .sequence = 0,
        }, below(fixture));
        const id: base.Uuid = .fromRandom(@splat(5));
        fixture.own = names.ownDir(id, &fixture.own_buffer);
        fixture.held = names.heldDir(.fromRandom(@splat(6)), id, &fixture.held_buffer);
    }

    fn below(fixture: *Fixture) BlockSource {
        const vtable: *const BlockSource.VTable = &.{ .read = readBelow };
        return .{ .context = &fixture.nothing, .vtable = vtable, .size = disk_size };
    }

    fn readBelow(_: *anyopaque, buffer: []u8, _: u64) BlockSource.ReadError!void {
        @memset(buffer, 'b');
    }

    fn deinit(fixture: *Fixture) void {
        fixture.layer.close(gpa);
        gpa.destroy(fixture.batch);
        fixture.tmp.cleanup();
    }

    fn write(fixture: *Fixture, byte: u8, block: u64) !void {
        var bytes: [block_size]u8 = @splat(byte);
        const offset = block * block_size;
        try fixture.layer.write(bytes[0..@min(bytes.len, disk_size - offset)], offset);
    }

    /// Returns the bytes that were written to the copy.
    fn copy(fixture: *Fixture, moment: u64) !u64 {
        try fixture.layer.flush(fixture.batch);
        fixture.layer.close(gpa);
        defer fixture.layer = WriteLayer.open(gpa, fixture.files, "layer", &.{
            .class = .edge_persistent,
            .device_id = .fromBytes(@splat(2)),
            .version_id = .fromBytes(@splat(3)),
            .disk_size = disk_size,
        }, below(fixture)) catch unreachable;
        var whole: LayerSnapshot = try .openWhole(gpa, fixture.files, "layer");
        defer whole.close();
        var made: OwnCopy = try .begin(gpa, fixture.files, fixture.own, &whole.head);
        defer made.deinit();
        while (try whole.read()) try made.add((try whole.take()).?);
        var list = try made.finish(moment, 0);
        list.deinit(gpa);
        return made.changed_bytes;
    }

    fn ownPath(fixture: *Fixture, name: []const u8, buffer: *Files.Name) []const u8 {
        return names.join(buffer, fixture.own, name);
    }

    fn ownList(fixture: *Fixture) !AreaList {
        var name: Files.Name = undefined;
        return .read(gpa, fixture.files, fixture.ownPath("list", &name));
    }

    /// Fetches as another edge does; returns the number of areas that came, and ends before the
    /// commit after `most`.
    fn fetch(fixture: *Fixture, most: u32) !u32 {
        return fixture.fetchUntil(most, true);
    }

    fn fetchUntil(fixture: *Fixture, most: u32, is_committed: bool) !u32 {
        const files = fixture.files;
        var held: HeldCopy = try .begin(gpa, files, fixture.held, try fixture.ownList());
        defer held.deinit();
        var name: Files.Name = undefined;
        const areas = try files.open(fixture.ownPath("areas", &name), .read);
        defer files.close(areas);
        const buffer = try gpa.create([AreaList.area_size]u8);
        defer gpa.destroy(buffer);
        var count: u32 = 0;
        for (held.list.entries()) |*entry| {
            if (!try held.needs(entry)) continue;
            if (count == most) return count;
            const bytes = (try entry.readFrom(files, areas, buffer)).?;
            buffer[0] ^= 1;
            try testing.expect(!try held.put(entry, bytes));
            buffer[0] ^= 1;
            try testing.expect(try held.put(entry, bytes));
            count += 1;
        }
        if (is_committed) try held.commit();
        return count;
    }

    /// What comes back is what the layer has.
    fn expectRestored(fixture: *Fixture) !void {
        var damaged_at: u64 = 0;
        var calls: u8 = 0;
        const contents = try HeldCopy.restore(
            gpa,
            fixture.files,
            fixture.held,
            "restored",
            .fromBytes(@splat(9)),
            .{ .context = &calls, .call = onProgress },
            &damaged_at,
        );
        try testing.expect(contents.blocks > 0);
        var restored: WriteLayer =
            try .open(gpa, fixture.files, "restored", &fixture.layer.head.binding, below(fixture));
        defer WriteLayer.remove(fixture.files, "restored") catch unreachable;
        defer restored.close(gpa);
        const expected = try gpa.alloc(u8, disk_size);
        defer gpa.free(expected);
        const found = try gpa.alloc(u8, disk_size);
        defer gpa.free(found);
        try fixture.layer.read(expected, 0);
        try restored.read(found, 0);
        try testing.expectEqualSlices(u8, expected, found);
    }

    fn heldMoment(fixture: *Fixture) !u64 {
        return (try HeldCopy.readHeader(fixture.files, fixture.held)).moment_unix_ms;
    }

    fn onProgress(_: *anyopaque, _: u64, _: u64) bool {
        return true;
    }

    fn flip(fixture: *Fixture, dir: []const u8, name: []const u8, offset: u64) !void {
        var buffer: Files.Name = undefined;
        const handle = try fixture.files.open(names.join(&buffer, dir, name), .write);
        defer fixture.files.close(handle);
        var byte: [1]u8 = undefined;
        try testing.expect(try fixture.files.readWhole(handle, &byte, offset));
        byte[0] ^= 1;
        try fixture.files.write(handle, &byte, offset);
    }
};

test "only areas that have changed are written and fetched, and the layer comes back from them" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for ([_]u64{ 0, 3, area_blocks - 1, area_blocks, 2 * area_blocks + 7 }) |block|
        try fixture.write(@truncate(block + 1), block);
    // The last block reaches beyond the end of the disk.
    try fixture.write('e', 4 * area_blocks + 3);
    try testing.expectEqual(6 * block_size, try fixture.copy(1000));
    try testing.expectEqual(4, try fixture.fetch(100));
    try fixture.expectRestored();
    try testing.expectEqual(0, try fixture.copy(2000));
    try testing.expectEqual(0, try fixture.fetch(100));
    try testing.expectEqual(2000, try fixture.heldMoment());
    // One block changes, one area comes, one goes.
    try fixture.write('x', 5);
    try fixture.write('y', 3 * area_blocks);
    try fixture.layer.discard(2 * area_blocks * block_size, AreaList.area_size);
    try fixture.write('z', area_blocks - 1);
    const written = try fixture.copy(3000);
    try testing.expect(written < AreaList.area_size + 6 * block_size);
    // The area of zeros is in the list alone.
    try testing.expectEqual(2, try fixture.fetch(100));
    try fixture.expectRestored();
    try fixture.write('w', 2 * area_blocks + 7);
    _ = try fixture.copy(4000);
    try testing.expectEqual(1, try fixture.fetch(100));
    try fixture.expectRestored();
}

test "a copy stays whole while a newer one is fetched, over any cut" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for (0..4) |area| try fixture.write('a', area * area_blocks);
    _ = try fixture.copy(1000);
    try testing.expectEqual(4, try fixture.fetch(100));
    for (0..4) |area| try fixture.write('b', area * area_blocks + 1);
    _ = try fixture.copy(2000);
    try testing.expectEqual(2, try fixture.fetch(2));
    try testing.expectEqual(1000, try fixture.heldMoment());
    var former = try HeldCopy.readList(gpa, fixture.files, fixture.held);
    defer former.deinit(gpa);
    var name: Files.Name = undefined;
    const areas = try fixture.files.open(names.join(&name, fixture.held, "areas"), .read);
    defer fixture.files.close(areas);
    const buffer = try gpa.create([AreaList.area_size]u8);
    defer gpa.destroy(buffer);
    for (former.entries()) |*entry|
        try testing.expect(entry.isContent((try entry.readFrom(fixture.files, areas, buffer)).?));
    // What came before the cut does not come again.
    try testing.expectEqual(2, try fixture.fetch(100));
    try fixture.expectRestored();
    // The edge is killed in the middle of what follows the commit.
    for (0..4) |area| try fixture.write('c', area * area_blocks + 1);
    _ = try fixture.copy(3000);
    try testing.expectEqual(4, try fixture.fetchUntil(100, false));
    var from: Files.Name = undefined;
    try fixture.files.rename(
        names.join(&from, fixture.held, "list.next"),
        names.join(&name, fixture.held, "list.whole"),
    );
    try fixture.flip(fixture.held, "areas", AreaList.area_size + block_size);
    try HeldCopy.complete(gpa, fixture.files, fixture.held);
    try HeldCopy.complete(gpa, fixture.files, fixture.held);
    try testing.expectEqual(3000, try fixture.heldMoment());
    try fixture.expectRestored();
}

test "an area that has rotted is fetched again, and never becomes part of a layer" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for (0..3) |area| try fixture.write('a', area * area_blocks + 9);
    _ = try fixture.copy(1000);
    _ = try fixture.fetch(100);
    try fixture.flip(fixture.held, "areas", AreaList.area_size + 9 * block_size + 17);
    var damaged_at: u64 = 0;
    try testing.expectError(error.DamagedCopy, HeldCopy.restore(
        gpa,
        fixture.files,
        fixture.held,
        "restored",
        .fromBytes(@splat(9)),
        .{ .context = &damaged_at, .call = Fixture.onProgress },
        &damaged_at,
    ));
    try testing.expectEqual(AreaList.area_size, damaged_at);
    try WriteLayer.remove(fixture.files, "restored");
    try testing.expectEqual(1, try fixture.fetch(100));
    try fixture.expectRestored();
}

test "a copy that is being changed has no list, and one that was not finished is made anew" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.write('a', 1);
    _ = try fixture.copy(1000);
    {
        var list = try fixture.ownList();
        defer list.deinit(gpa);
        var made: OwnCopy = try .begin(gpa, fixture.files, fixture.own, &list.head);
        made.deinit();
    }
    try testing.expectError(error.NotFound, fixture.ownList());
    try testing.expectEqual(block_size, try fixture.copy(2000));
    try OwnCopy.renew(gpa, fixture.files, fixture.own, 3000);
    var list = try fixture.ownList();
    defer list.deinit(gpa);
    try testing.expectEqual(3000, list.header.moment_unix_ms);
    try OwnCopy.remove(fixture.files, fixture.own);
    try testing.expectError(error.NotFound, fixture.ownList());
}

test "a flipped bit anywhere in a list is found, and entries are found without reading all of it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for ([_]u64{ 0, 2, 4 }) |area| try fixture.write('a', area * area_blocks);
    _ = try fixture.copy(1000);
    var list = try fixture.ownList();
    defer list.deinit(gpa);
    const body = try gpa.dupe(u8, list.bytes[AreaList.header_size..]);
    defer gpa.free(body);
    for (0..body.len) |at| {
        body[at] ^= @as(u8, 1) << @intCast(at % 8);
        defer body[at] ^= @as(u8, 1) << @intCast(at % 8);
        try testing.expectError(error.Damaged, AreaList.of(gpa, list.header, body));
    }
    const header = list.header.emit();
    for (0..header.len * 8) |bit| {
        var damaged = header;
        damaged[bit / 8] ^= @as(u8, 1) << @intCast(bit % 8);
        try testing.expectError(error.Damaged, AreaList.Header.parse(&damaged));
    }
    var name: Files.Name = undefined;
    const handle = try fixture.files.open(fixture.ownPath("list", &name), .read);
    defer fixture.files.close(handle);
    for (0..6) |area| {
        const found = try AreaList.readEntry(fixture.files, handle, &list.header, @intCast(area));
        try testing.expectEqual(area % 2 == 0 and area < 5, found != null);
        if (found) |entry| try testing.expectEqual(area, entry.index());
    }
}

test "a list with areas out of order, beyond the disk or without blocks is none" {
    const head = @import("../layers/head.zig").emit(&.{
        .layer_id = .fromBytes(@splat(1)),
        .binding = .{
            .class = .private,
            .device_id = .fromBytes(@splat(2)),
            .version_id = .fromBytes(@splat(3)),
            .disk_size = disk_size,
        },
        .limit_bytes = 1,
        .sequence = 0,
    });
    const Case = struct { areas: [2]u32, owned: u8, is_good: bool };
    for ([_]Case{
        .{ .areas = .{ 0, 4 }, .owned = 1, .is_good = true },
        .{ .areas = .{ 0, 4 }, .owned = 0b1111, .is_good = true },
        .{ .areas = .{ 0, 4 }, .owned = 0b10000, .is_good = false },
        .{ .areas = .{ 0, 4 }, .owned = 0, .is_good = false },
        .{ .areas = .{ 1, 0 }, .owned = 1, .is_good = false },
        .{ .areas = .{ 1, 1 }, .owned = 1, .is_good = false },
        .{ .areas = .{ 0, 5 }, .owned = 1, .is_good = false },
    }) |case| {
        var body: [head.len + 2 * @sizeOf(AreaList.Entry)]u8 = undefined;
        body[0..head.len].* = head;
        for (case.areas, 0..) |area, at| {
            var entry: AreaList.Entry =
                .{ .area = undefined, .owned = @splat(0), .digest = @splat(0) };
            std.mem.writeInt(u32, &entry.area, area, .little);
            entry.owned[0] = case.owned;
            const place = head.len + at * @sizeOf(AreaList.Entry);
            body[place..][0..@sizeOf(AreaList.Entry)].* = std.mem.toBytes(entry);
        }
        var header: AreaList.Header = .{ .count = 2, .moment_unix_ms = 1, .digest = undefined };
        base.Sha256.hash(&body, &header.digest, .{});
        if (AreaList.of(gpa, header, &body)) |list| {
            var found = list;
            found.deinit(gpa);
            try testing.expect(case.is_good);
        } else |err| {
            try testing.expectEqual(error.Damaged, err);
            try testing.expect(!case.is_good);
        }
    }
    // More areas than have numbers.
    var huge = try @import("../layers/head.zig").parse(&head);
    huge.binding.disk_size = std.math.maxInt(u64) - 511;
    const body = @import("../layers/head.zig").emit(&huge);
    var header: AreaList.Header = .{ .count = 0, .moment_unix_ms = 1, .digest = undefined };
    base.Sha256.hash(&body, &header.digest, .{});
    try testing.expectError(error.Damaged, AreaList.of(gpa, header, &body));
}

test "one process at a time works on the copies" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const first = (try names.lock(fixture.files, .own)).?;
    try testing.expectEqual(null, try names.lock(fixture.files, .own));
    fixture.files.close((try names.lock(fixture.files, .held)).?);
    fixture.files.close(first);
    fixture.files.close((try names.lock(fixture.files, .own)).?);
}
