//! Tests unit_repair.zig: damaged units come back at once or block by block, while somebody reads
//! who has checked their blocks before, and on disks that cannot read what is written.

const std = @import("std");
const store_module = @import("store.zig");

const Appender = store_module.Appender;
const block = store_module.block;
const Files = store_module.Files;
const LinuxFiles = store_module.LinuxFiles;
const TestVersion = @import("test_version.zig");
const TreeBuilder = store_module.TreeBuilder;
const partsOf = store_module.unit_repair.partsOf;
const unit = store_module.unit;
const testing = std.testing;

/// Three units, one behind the other, which share 4 KiB with each other.
const block_count = 3 * unit.blocks_max;

const Fixture = struct {
    version: TestVersion,

    fn init(fixture: *Fixture) !void {
        return fixture.version.init(block_count, fill);
    }

    fn deinit(fixture: *Fixture) void {
        fixture.version.deinit();
    }

    fn locationOf(fixture: *Fixture, index: u64) !block.Location {
        return (try fixture.version.reader.entryOf(index)).location;
    }

    fn write(fixture: *Fixture, at: u64, bytes: []const u8) !void {
        return fixture.version.overwrite("extents/000001", at, bytes);
    }

    fn find(fixture: *Fixture) !?u64 {
        const damage = try store_module.repair.find(
            &fixture.version.reader,
            fixture.version.repairing,
            0,
            block_count,
        ) orelse return null;
        try testing.expectEqual(null, damage.level);
        return damage.index;
    }

    fn put(fixture: *Fixture, index: u64) !void {
        const entry = try fixture.version.reader.entryOf(index);
        try fixture.version.repairing.put(&entry, &blockOf(index));
    }

    fn expectRead(fixture: *Fixture, first: u64, count: usize) !void {
        var buffer: [block_count * block.block_size]u8 = undefined;
        const bytes = buffer[0 .. count * block.block_size];
        try fixture.version.reader.read(bytes, first * block.block_size);
        for (0..count) |index| try testing.expectEqualSlices(
            u8,
            &blockOf(first + index),
            bytes[index * block.block_size ..][0..block.block_size],
        );
    }

    fn expectDamaged(fixture: *Fixture, first: u64, count: usize) !void {
        var buffer: [block_count * block.block_size]u8 = undefined;
        const bytes = buffer[0 .. count * block.block_size];
        try testing.expectError(
            error.Damaged,
            fixture.version.reader.read(bytes, first * block.block_size),
        );
        if (fixture.version.reader.readNow(bytes, first * block.block_size)) |is_read|
            try testing.expect(!is_read)
        else |err|
            try testing.expectEqual(error.Damaged, err);
    }
};

fn fill(version: *TestVersion, data: *Appender, builder: *TreeBuilder) !void {
    for (0..3) |number| {
        var raw: [unit.raw_size_max]u8 = undefined;
        for (0..unit.blocks_max) |index|
            raw[index * block.block_size ..][0..block.block_size].* =
                blockOf(number * unit.blocks_max + index);
        var stored: unit.Stored = undefined;
        const bytes = unit.pack(.{ .quick = &version.repairing.table }, &stored, &raw).?;
        const place = try data.appendUnit(bytes);
        for (0..unit.blocks_max) |index| {
            const location =
                unit.locationOf(place.file, place.sector, bytes.len, unit.blocks_max, index);
            const at = number * unit.blocks_max + index;
            try builder.put(at, .{ .hash = block.hashOf(&blockOf(at)), .location = location });
        }
    }
}

/// Half of it is noise.
fn blockOf(index: u64) block.Block {
    var prng: std.Random.DefaultPrng = .init(index);
    var bytes: block.Block = @splat(@intCast('a' + index));
    prng.random().bytes(bytes[0 .. block.block_size / 2]);
    return bytes;
}

test "a unit whose blocks all come has the bytes that it had" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try testing.expectEqual(null, try fixture.find());
    const location = try fixture.locationOf(8);
    var before: unit.Stored = undefined;
    const stored = before[0..location.storedSize()];
    try testing.expect(try fixture.version.data.read(location, 0, stored));
    try fixture.write(location.offset() + 900, "damage");
    try testing.expectEqual(8, try fixture.find());
    const parts = partsOf(
        &fixture.version.reader,
        .{ .index = 11, .entry = try fixture.version.reader.entryOf(11) },
    );
    try testing.expectEqual(8, parts.count);
    try testing.expectEqual(11, parts.constSlice()[0].index);
    for (parts.constSlice()) |*part| {
        try testing.expect(!fixture.version.repairing.isSound(&part.entry));
        try testing.expectError(
            error.Wrong,
            fixture.version.repairing.put(&part.entry, &blockOf(part.index + 1)),
        );
        try fixture.put(part.index);
        try testing.expect(fixture.version.repairing.isSound(&part.entry));
    }
    try fixture.version.repairing.write(&fixture.version.data);
    try testing.expectEqual(null, try fixture.find());
    var after: unit.Stored = undefined;
    try testing.expect(try fixture.version.data.read(location, 0, after[0..stored.len]));
    try testing.expectEqualSlices(u8, stored, after[0..stored.len]);
    try fixture.expectRead(0, block_count);
}

test "blocks that a unit lacks fail also for those who have checked them, until they come" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.expectRead(0, block_count);
    const location = try fixture.locationOf(8);
    try fixture.write(location.offset() + 2, &.{0xff});
    try fixture.expectDamaged(8, 8);
    try testing.expectEqual(8, try fixture.find());
    for ([_]u64{ 9, 10, 14 }) |index| try fixture.put(index);
    try fixture.version.repairing.write(&fixture.version.data);
    try fixture.expectRead(9, 2);
    try fixture.expectRead(14, 1);
    for ([_]u64{ 8, 11, 12, 13, 15 }) |index| try fixture.expectDamaged(index, 1);
    try fixture.expectDamaged(9, 3);
    try fixture.expectDamaged(0, 16);
    try fixture.expectRead(0, 8);
    try fixture.expectRead(16, 8);
    var stored: unit.Stored = undefined;
    try testing.expectError(error.Damaged, fixture.version.reader.packedNow(8, &stored));
    // The cache has the unit without them.
    try testing.expectEqual(8, try fixture.find());
    for ([_]u64{ 8, 11, 12, 13, 15 }) |index| try fixture.put(index);
    try fixture.version.repairing.write(&fixture.version.data);
    try fixture.expectRead(0, block_count);
    try testing.expect(try fixture.version.reader.packedNow(8, &stored) != null);
}

test "a block that differs from its hash in an intact unit is repaired, and read again" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const location = try fixture.locationOf(8);
    var raw: [unit.raw_size_max]u8 = undefined;
    for (0..8) |index| raw[index * block.block_size ..][0..block.block_size].* =
        blockOf(if (index == 3) 13 else 8 + index);
    var stored: unit.Stored = undefined;
    const place = stored[0..location.storedSize()];
    const packer: unit.Packer = .{ .quick = &fixture.version.repairing.table };
    try testing.expect(unit.packAgain(packer, place, &raw, 0));
    try fixture.write(location.offset(), place);
    try fixture.expectRead(8, 3);
    try fixture.expectDamaged(11, 1);
    try testing.expectEqual(11, try fixture.find());
    try fixture.put(11);
    try fixture.version.repairing.write(&fixture.version.data);
    try fixture.expectRead(0, block_count);
}

test "blocks that do not fit without others are refused" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const location = unit.locationOf(1, 0, 2 * block.unit_sector_size, 2, 0);
    try fixture.version.repairing.read(&fixture.version.data, location);
    const bytes = blockOf(5);
    const entry: block.Entry = .{ .hash = block.hashOf(&bytes), .location = location };
    try fixture.version.repairing.put(&entry, &bytes);
    try testing.expectError(error.Misfit, fixture.version.repairing.write(&fixture.version.data));
    try testing.expectEqual(null, try fixture.find());
}

/// A disk with a sector of 4 KiB that cannot be read before all of it is written, below a file
/// system that reads a sector of which it writes a part.
const BadSector = struct {
    vtable: Files.VTable,
    on: *LinuxFiles,

    threadlocal var below: *const Files.VTable = undefined;
    threadlocal var sector: ?u64 = null;

    fn init(on: *LinuxFiles, number: u64) BadSector {
        below = on.files().vtable;
        sector = number;
        var vtable = below.*;
        vtable.read = read;
        vtable.write = BadSector.write;
        return .{ .vtable = vtable, .on = on };
    }

    fn files(bad: *const BadSector) Files {
        return .{ .context = bad.on, .vtable = &bad.vtable };
    }

    fn touches(offset: u64, size: usize) bool {
        const begin = (sector orelse return false) * block.block_size;
        return offset < begin + block.block_size and begin < offset + size;
    }

    fn read(
        context: *anyopaque,
        handle: Files.Handle,
        buffer: []u8,
        offset: u64,
    ) Files.Error!usize {
        if (touches(offset, buffer.len)) return error.DiskFailed;
        return below.read(context, handle, buffer, offset);
    }

    fn write(
        context: *anyopaque,
        handle: Files.Handle,
        bytes: []const u8,
        offset: u64,
    ) Files.Error!void {
        if (touches(offset, bytes.len)) {
            const begin = sector.? * block.block_size;
            if (offset > begin or offset + bytes.len < begin + block.block_size)
                return error.DiskFailed;
            sector = null;
        }
        return below.write(context, handle, bytes, offset);
    }
};

test "units whose sector the disk has lost are repaired, each after the other" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const locations = [_]block.Location{ try fixture.locationOf(0), try fixture.locationOf(8) };
    // The end of the first unit and the begin of the second one.
    const begin = locations[1].offset();
    try testing.expect(begin % block.block_size != 0);
    var bad: BadSector = .init(&fixture.version.on, begin / block.block_size);
    fixture.version.data.files = bad.files();
    for ([_]u64{ 8, 0 }) |first| {
        try fixture.version.repairing.read(&fixture.version.data, try fixture.locationOf(first));
        for (first..first + 8) |index| {
            const entry = try fixture.version.reader.entryOf(index);
            try testing.expect(!fixture.version.repairing.isSound(&entry));
            try fixture.put(index);
        }
        try fixture.version.repairing.write(&fixture.version.data);
        try testing.expectEqual(null, BadSector.sector);
        fixture.version.units.clear();
        try fixture.expectRead(first, 8);
        if (first == 8) try fixture.expectDamaged(0, 1);
    }
    try fixture.expectRead(0, block_count);
}
