//! Tests packed units through the store: versions that are imported from images of text, programs
//! and noise are read, verified, updated, freed and refused.

const std = @import("std");
const base = @import("base");
const lz4 = @import("codec").lz4;
const store_module = @import("store.zig");

const block = store_module.block;
const Checkpoint = store_module.import_checkpoint.Checkpoint;
const ImageSource = store_module.image_source.ImageSource;
const Import = store_module.import.Import;
const LinuxFiles = store_module.LinuxFiles;
const Manifest = store_module.Manifest;
const Prng = base.Prng;
const Store = store_module.Store;
const unit = store_module.unit;
const Usage = store_module.usage.Usage;
const Uuid = base.Uuid;
const Verification = store_module.verify.Verification;
const testing = std.testing;
const gpa = testing.allocator;

/// Not a whole unit, and not a whole block.
const disk_size = 1100 * block.block_size - 1024;

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    store: Store,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        try Store.make(fixture.on.files(), .{ .id = idOf(1), .seed = @splat(5) });
        fixture.store = try fixture.openStore();
    }

    fn openStore(fixture: *Fixture) !Store {
        // A cache of two sets, so that units leave it.
        const options: store_module.store_dir.Options =
            .{ .cache_nodes = 16, .cache_units = 16, .file_size_max = 1 << 20 };
        return .open(gpa, fixture.on.files(), options);
    }

    fn deinit(fixture: *Fixture) void {
        fixture.store.close(gpa);
        fixture.tmp.cleanup();
    }

    fn import(fixture: *Fixture, image: *const Image, id: Uuid, parent: Uuid) !Manifest {
        var change = try fixture.store.lockForChange();
        defer change.end();
        var running: Import = try .begin(.{
            .gpa = gpa,
            .io = testing.io,
            .source = image.source(),
            .is_canceled = &never,
            .watch = .{
                .context = fixture,
                .progress = progress,
                .monotonicUs = monotonicUs,
            },
        }, &change, .{
            .version = id,
            .vdisk = idOf(2),
            .parent = parent,
            .number = 1,
            .pad = false,
            .stamp = undefined,
            .source_size = undefined,
            .root_level = undefined,
        });
        defer running.deinit();
        return running.run(&change);
    }

    fn collect(fixture: *Fixture) !void {
        var change = try fixture.store.lockForChange();
        defer change.end();
        var collection: store_module.collect.Collection = try .begin(gpa, &change);
        defer collection.end();
        while (try collection.step(1 << 20)) {}
    }

    /// Bytes that the extents take.
    fn stored(fixture: *Fixture) !u64 {
        var sum: u64 = 0;
        var file: block.FileNumber = 0;
        while (try fixture.store.data.next(file)) |found| {
            file = found;
            sum += try fixture.store.files.allocated(try fixture.store.data.handleOf(file));
        }
        return sum;
    }

    fn problems(fixture: *Fixture, manifest: *const Manifest) !u32 {
        var verification: Verification = .init(gpa, &fixture.store);
        defer verification.deinit();
        verification.begin(manifest);
        var count: u32 = 0;
        while (true) switch (try verification.step(1 << 20)) {
            .more => {},
            .problem => count += 1,
            .done => return count,
        };
    }
};

var never: std.atomic.Value(bool) = .init(false);
var clock_us: u64 = 0;

fn progress(_: *anyopaque, _: *const store_module.import.Progress) void {}

/// Every piece ends with a checkpoint.
fn monotonicUs() u64 {
    clock_us += std.time.us_per_min;
    return clock_us;
}

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

const Image = struct {
    bytes: []u8,

    fn init(prng: *Prng) !Image {
        const bytes = try gpa.alloc(u8, disk_size);
        var at: usize = 0;
        while (at < bytes.len) {
            const size = @min(bytes.len - at, block.block_size * prng.between(1, 20));
            fill(prng, bytes[at..][0..@intCast(size)]);
            at += @intCast(size);
        }
        return .{ .bytes = bytes };
    }

    fn fill(prng: *Prng, bytes: []u8) void {
        switch (prng.below(4)) {
            0 => @memset(bytes, 0),
            1 => prng.fill(bytes),
            // Text that repeats, and every byte of which is from the last.
            else => for (bytes, 0..) |*byte, at| {
                byte.* = if (at < 64 or prng.chance(1, 30))
                    @intCast(1 + prng.below(255))
                else
                    bytes[at - 64];
            },
        }
    }

    fn deinit(image: *Image) void {
        gpa.free(image.bytes);
    }

    fn source(image: *const Image) ImageSource {
        return .{
            .context = @constCast(image),
            .vtable = &.{ .read = read, .nextData = nextData, .now = now },
            .size = image.bytes.len,
            .is_positional = true,
        };
    }

    fn read(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
        _: *u64,
    ) store_module.image_source.ReadError!usize {
        const image: *const Image = @ptrCast(@alignCast(context));
        @memcpy(buffer, image.bytes[@intCast(offset)..][0..buffer.len]);
        return buffer.len;
    }

    /// Like the holes of a file, which begin anywhere.
    fn nextData(context: *anyopaque, offset: u64) ?u64 {
        const image: *const Image = @ptrCast(@alignCast(context));
        return std.mem.findNonePos(u8, image.bytes, @intCast(offset), &.{0});
    }

    fn now(_: *anyopaque) ?ImageSource.Now {
        return .{ .stamp = .{ .kind = .file, .inode = 1 }, .size = disk_size };
    }
};

/// Reads random ranges, at once where that is possible.
fn expectReads(fixture: *Fixture, prng: *Prng, id: Uuid, expected: []const u8) !u32 {
    var version = try fixture.store.openVersion(id);
    defer version.close();
    const buffer = try gpa.alloc(u8, 200 << 10);
    defer gpa.free(buffer);
    const source = version.reader.source();
    var at_once: u32 = 0;
    for (0..150) |_| {
        const offset: usize = @intCast(prng.below(disk_size / 512) * 512);
        const most = @min(buffer.len, disk_size - offset);
        const size: usize = @intCast(512 * prng.between(1, most / 512));
        const part = buffer[0..if (prng.chance(1, 2)) @min(size, 16 << 10) else size];
        if (try source.readNow(part, offset)) {
            try testing.expectEqualSlices(u8, expected[offset..][0..part.len], part);
            at_once += 1;
        }
        try source.read(part, offset);
        try testing.expectEqualSlices(u8, expected[offset..][0..part.len], part);
    }
    return at_once;
}

test "an image is packed, and read in any ranges; updates share what they do not change" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var prng: Prng = .init(1);
    var image: Image = try .init(&prng);
    defer image.deinit();
    const first = try fixture.import(&image, idOf(3), .zero);
    try testing.expect(first.has_units);
    try testing.expect(try expectReads(&fixture, &prng, idOf(3), image.bytes) > 25);
    const before = try fixture.stored();
    try testing.expect(before < disk_size / 2);
    const old = try gpa.dupe(u8, image.bytes);
    defer gpa.free(old);
    for (0..30) |_| {
        const offset: usize = @intCast(prng.below(disk_size / 512) * 512);
        Image.fill(&prng, image.bytes[offset..][0..@min(disk_size - offset, 512 * 11)]);
    }
    const second = try fixture.import(&image, idOf(4), idOf(3));
    try testing.expect(try fixture.stored() - before < 30 * 16 << 10);
    _ = try expectReads(&fixture, &prng, idOf(4), image.bytes);
    _ = try expectReads(&fixture, &prng, idOf(3), old);
    // The root does not depend on how blocks are stored.
    const alone = try fixture.import(&image, idOf(5), .zero);
    try testing.expectEqual(second.root.hash, alone.root.hash);
    for (&[_]Manifest{ first, second, alone }) |*manifest|
        try testing.expectEqual(0, try fixture.problems(manifest));
}

test "the packed bytes of whole units are told once their blocks are checked" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var prng: Prng = .init(6);
    var image: Image = try .init(&prng);
    defer image.deinit();
    _ = try fixture.import(&image, idOf(3), .zero);
    var version = try fixture.store.openVersion(idOf(3));
    defer version.close();
    var stored: unit.Stored = undefined;
    var found: u32 = 0;
    for (0..disk_size / unit.raw_size_max) |index| {
        const first = index * unit.blocks_max;
        try testing.expectEqual(null, try version.reader.packedNow(first, &stored));
        var bytes: [unit.raw_size_max]u8 = undefined;
        try version.reader.read(&bytes, first * block.block_size);
        const packed_bytes = try version.reader.packedNow(first, &stored) orelse continue;
        found += 1;
        var back: [unit.raw_size_max]u8 = undefined;
        try lz4.unpack(&back, packed_bytes);
        try testing.expectEqualSlices(u8, &bytes, &back);
    }
    try testing.expect(found > 20);
}

test "what is freed leaves the blocks that others need, and sizes tell what a version takes" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var prng: Prng = .init(2);
    var image: Image = try .init(&prng);
    defer image.deinit();
    const first = try fixture.import(&image, idOf(3), .zero);
    {
        var usage: Usage = try .of(gpa, &fixture.store);
        defer usage.deinit();
        const sizes = try usage.sizesOf(&fixture.store, &first);
        try testing.expectEqual(0, sizes.shared);
        // Nodes are counted, and what lies between units is not.
        try testing.expect(sizes.own < try fixture.stored() + 40 * block.block_size);
        try testing.expect(sizes.own > try fixture.stored() - 40 * block.block_size);
    }
    const changed = image.bytes[0 .. 800 * block.block_size];
    for (0..198) |index| Image.fill(&prng, changed[index * 4 * block.block_size ..][0..9000]);
    _ = try fixture.import(&image, idOf(4), idOf(3));
    const before = try fixture.stored();
    {
        var change = try fixture.store.lockForChange();
        defer change.end();
        try change.delete(idOf(3));
    }
    try fixture.collect();
    try testing.expect(try fixture.stored() < before);
    fixture.store.cache.clear();
    fixture.store.units.clear();
    _ = try expectReads(&fixture, &prng, idOf(4), image.bytes);
}

test "a version with a damaged unit names its blocks, and no byte of them is read" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var prng: Prng = .init(3);
    var image: Image = try .init(&prng);
    defer image.deinit();
    const made = try fixture.import(&image, idOf(3), .zero);
    var version = try fixture.store.openVersion(idOf(3));
    defer version.close();
    const index: u64, const location: block.Location = for (0..1000) |index| {
        const location = (try version.reader.entryOf(index)).location;
        if (location.is_packed and location.place().last == 7 and location.place().index == 0)
            break .{ index, location };
    } else return error.NothingPacked;
    var name: store_module.files.Name = undefined;
    const files = fixture.store.files;
    const handle = try files.open(fixture.store.data.nameOf(location.file, &name), .write);
    defer files.close(handle);
    try files.write(handle, "damage", location.offset() + 100);
    try testing.expectEqual(8, try fixture.problems(&made));
    fixture.store.units.clear();
    var bytes: block.Block = undefined;
    for (0..8) |at| try testing.expectError(
        error.Damaged,
        version.reader.read(&bytes, (index + at) * block.block_size),
    );
    // Cut within the unit.
    try files.setSize(handle, location.offset() + 512);
    try testing.expectError(error.Damaged, version.reader.read(&bytes, index * block.block_size));
}

test "a unit of other blocks, or another block of the unit, is found by its hash" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const store = &fixture.store;
    var data: store_module.Appender = try .init(gpa, &store.data, 1 << 20);
    defer data.deinit(gpa);
    const table = try gpa.create(lz4.Table);
    defer gpa.destroy(table);
    var raw: [3 * block.block_size]u8 = undefined;
    for (&raw, 0..) |*byte, at| byte.* = @intCast(1 + at / block.block_size);
    var stored: unit.Stored = undefined;
    const bytes = unit.pack(.{ .quick = table }, &stored, &raw).?;
    const place = try data.appendUnit(bytes);
    try data.sync();
    const location = unit.locationOf(place.file, place.sector, bytes.len, 3, 1);
    const units = &store.units;
    const found = try units.get(&store.data, location, 2);
    try testing.expectEqualSlices(u8, raw[block.block_size..], found);
    // From memory, although nobody can read it from the disk.
    const again = try units.getNow(&store.data, location, 2, units.unpacked);
    try testing.expectEqual(found.ptr, again.?.ptr);
    var wrong = location.place();
    wrong.index = 3;
    const beyond: block.Location =
        .{ .file = place.file, .block = @bitCast(wrong), .is_packed = true };
    try testing.expectError(error.Damaged, units.get(&store.data, beyond, 1));
    wrong.last = 3;
    wrong.last_sector = 3;
    const longer: block.Location =
        .{ .file = place.file, .block = @bitCast(wrong), .is_packed = true };
    try testing.expectError(error.Damaged, units.get(&store.data, longer, 1));
}

test "a store of an earlier release gets the next format with its first import" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try testing.expectEqual(1, fixture.store.format);
    var prng: Prng = .init(4);
    var image: Image = try .init(&prng);
    defer image.deinit();
    _ = try fixture.import(&image, idOf(3), .zero);
    try testing.expectEqual(2, fixture.store.format);
    fixture.store.close(gpa);
    fixture.store = try fixture.openStore();
    try testing.expectEqual(2, fixture.store.format);
    _ = try expectReads(&fixture, &prng, idOf(3), image.bytes);
    // What a program of an earlier release meets: a format that it does not know.
    const head = try fixture.store.files.open("bootfarm-store", .write);
    defer fixture.store.files.close(head);
    var bytes: [108]u8 = undefined;
    try testing.expect(try fixture.store.files.readWhole(head, &bytes, 0));
    bytes[11] += 1;
    base.Sha256.hash(bytes[0..76], bytes[76..108], .{});
    try fixture.store.files.write(head, &bytes, 0);
    try testing.expectError(error.TooNew, fixture.openStore());
}
