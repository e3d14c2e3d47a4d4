//! Tests packing.zig and piece_packer.zig with two versions of a store.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const lz4 = @import("codec").lz4;
const store = @import("store");
const wire = @import("wire").stream;
const packing = @import("packing.zig");
const PiecePacker = @import("piece_packer.zig");
const VersionDisk = @import("version_disk.zig").VersionDisk;
const testing = std.testing;
const gpa = testing.allocator;

const Piece = core.stream.packed_answers.Piece;
const block_size = store.block.block_size;
const unit_size = core.stream.packed_answers.unit_size;
const ReadRequest = core.stream.Server.ReadRequest;

/// Three units and a half: text, noise, zeros, text, with a short block at the end.
const disk_size = 3 * unit_size + 4 * block_size + 512;
const unit_blocks = store.unit.blocks_max;
const block_count = (disk_size + block_size - 1) / block_size;

/// A store with two versions of the same blocks, the second with one changed block in its first
/// unit.
const Fixture = struct {
    tmp: testing.TmpDir,
    on: store.LinuxFiles,
    from: store.Store,
    disks: [2]VersionDisk,
    packer: PiecePacker,
    scratch: []u8,
    out: []u8,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        const files = fixture.on.files();
        try store.Store.make(files, .{ .id = .fromRandom(@splat(1)), .seed = @splat(5) });
        fixture.from = try .open(gpa, files, .{ .cache_nodes = 16 });
        for (&fixture.disks, 0..) |*disk, number| {
            const id: base.Uuid = .fromRandom(@splat(@intCast(number + 2)));
            try fixture.make(id, number == 1);
            disk.* = .{ .version = try fixture.from.openVersion(id) };
            // The loop answers what was read and verified before.
            var bytes: [disk_size]u8 = undefined;
            try disk.source().read(&bytes, 0);
        }
        fixture.packer = try .init(gpa, 1 << 20);
        fixture.scratch = try gpa.alloc(u8, wire.read_size_max);
        fixture.out = try gpa.alloc(u8, wire.read_size_max);
    }

    fn putUnit(
        data: *store.Appender,
        builder: *store.TreeBuilder,
        blocks: *const [unit_blocks]store.block.Block,
    ) !void {
        const search = try gpa.create(lz4.Search);
        defer gpa.destroy(search);
        var room: store.unit.Stored = undefined;
        const stored = store.unit.pack(.{ .small = search }, &room, @ptrCast(blocks)).?;
        const place = try data.appendUnit(stored);
        for (blocks, 0..) |*bytes, index| try builder.put(index, .{
            .hash = store.block.hashOf(bytes),
            .location = store.unit.locationOf(
                place.file,
                place.sector,
                stored.len,
                unit_blocks,
                index,
            ),
        });
    }

    fn make(fixture: *Fixture, id: base.Uuid, is_changed: bool) !void {
        const from = &fixture.from;
        var data: store.Appender = try .init(gpa, &from.data, 1 << 30);
        defer data.deinit(gpa);
        var nodes: store.Appender = try .init(gpa, &from.nodes, 1 << 30);
        defer nodes.deinit(gpa);
        var builder: store.TreeBuilder = .init(&from.cache, &nodes, .zeros, block_count);
        var unit: [unit_blocks]store.block.Block = undefined;
        for (0..block_count) |index| {
            var bytes: store.block.Block = @splat(0);
            const end = @min(disk_size, (index + 1) * block_size);
            for (index * block_size..end) |at|
                bytes[at - index * block_size] = byteOf(at, is_changed);
            if (std.mem.allEqual(u8, &bytes, 0)) continue;
            // The changed version has its first unit packed.
            if (is_changed and index < unit_blocks) {
                unit[index] = bytes;
                if (index + 1 == unit_blocks) try putUnit(&data, &builder, &unit);
                continue;
            }
            const location = try data.append(&bytes);
            try builder.put(index, .{ .hash = store.block.hashOf(&bytes), .location = location });
        }
        const root = try builder.finish();
        try data.sync();
        try nodes.sync();
        var change = try from.lockForChange();
        defer change.end();
        try change.commit(&.{
            .store = from.id,
            .organization = .zero,
            .vdisk = .fromRandom(@splat(9)),
            .version = id,
            .parent = .zero,
            .number = 1,
            .incarnation = 0,
            .counter = 1,
            .created_unix_ms = 0,
            .disk_size = disk_size,
            .root = root,
        });
    }

    fn deinit(fixture: *Fixture) void {
        gpa.free(fixture.scratch);
        gpa.free(fixture.out);
        fixture.packer.deinit(gpa);
        for (&fixture.disks) |*disk| disk.close();
        fixture.from.close(gpa);
        fixture.tmp.cleanup();
    }

    fn answer(fixture: *Fixture, disk: usize, read: *ReadRequest) ?[]const u8 {
        return packing.answer(
            &fixture.packer,
            &fixture.disks[disk],
            read,
            fixture.scratch,
            fixture.out,
        );
    }

    /// Requests the range until all of it is packed, and packs what is ordered.
    fn want(fixture: *Fixture, disk: usize, offset: u64, length: u32) !void {
        for (0..2) |_| {
            var read = readOf(offset, length);
            try testing.expectEqual(null, fixture.answer(disk, &read));
        }
        const before = fixture.packer.pieces.piece_count.load(.monotonic);
        while (fixture.packer.has(&PiecePacker.keyNow(
            &fixture.disks[disk],
            .{ .offset = offset, .size = @min(length, unit_size) },
        ).?) == false) try testing.expect(fixture.packer.runOne());
        try testing.expect(fixture.packer.pieces.piece_count.load(.monotonic) > before);
    }

    fn expectAnswer(fixture: *Fixture, disk: usize, offset: u64, length: u32) !void {
        var read = readOf(offset, length);
        const bytes = fixture.answer(disk, &read) orelse return error.NotPacked;
        try testing.expectEqual(bytes.len, read.bytes_out);
        const plain_count = wire.fragmentCount(length, read.fragment_size);
        try testing.expect(read.packets_out < plain_count);
        var content: [disk_size]u8 = undefined;
        var size: usize = 0;
        var fragments = read.fragments();
        while (fragments.next()) |fragment| {
            const payload = bytes[fragment.at + 4 ..][0 .. fragment.length - 4];
            @memcpy(content[size..][0..payload.len], payload);
            size += payload.len;
        }
        const to = try gpa.alloc(u8, length);
        defer gpa.free(to);
        try core.stream.packed_answers.unpack(to, offset, content[0..size]);
        for (to, offset..) |byte, at| try testing.expectEqual(byteOf(at, disk == 1), byte);
    }
};

fn byteOf(at: usize, is_changed: bool) u8 {
    if (is_changed and at / block_size == 3) return 'a' + noiseAt(at) % 3;
    return switch (at / unit_size) {
        1 => noiseAt(at),
        2 => 0,
        else => if (at % 64 < 24) noiseAt(at) else @truncate(at / block_size),
    };
}

fn noiseAt(at: usize) u8 {
    const word = (at +% 1) *% 0x9e3779b97f4a7c15;
    return @truncate(((word ^ word >> 31) *% 0xd6e8feb86659fd93) >> 56);
}

fn readOf(offset: u64, length: u32) ReadRequest {
    return .{
        .boot_id = .zero,
        .version_id = .zero,
        .to = .{ .ip = .zero, .port = 0 },
        .session_id = 1,
        .version = .v3,
        .request_id = 7,
        .kind = .demand,
        .offset = offset,
        .length = length,
        .fragment_size = wire.fragment_size_ethernet,
        .overhead = wire.header_size + wire.tag_size,
        .write_cache = .device_ram,
        .ranges = .{},
        .may_pack = true,
        .first = false,
        .repeated = false,
        .bytes_out = length,
        .packets_out = wire.fragmentCount(length, wire.fragment_size_ethernet),
    };
}

test "what devices request twice is packed, and shared by the versions that contain it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.want(0, 0, unit_size);
    try fixture.expectAnswer(0, 0, unit_size);
    // The other version's first unit differs.
    var read = readOf(0, unit_size);
    try testing.expectEqual(null, fixture.answer(1, &read));
    try testing.expectEqual(0, read.packed_bytes);
    // A part of a unit is a piece of its own; here both versions have the same blocks.
    try fixture.want(0, 4 * block_size, 4 * block_size);
    try fixture.expectAnswer(1, 4 * block_size, 4 * block_size);
    // A shorter piece is packed only by who knows that boots read it.
    const short: Piece = .{ .offset = 4 * block_size, .size = 2 * block_size };
    for (0..3) |_| {
        var few = readOf(short.offset, short.size);
        try testing.expectEqual(null, fixture.answer(0, &few));
    }
    var bytes: [2 * block_size]u8 = undefined;
    try fixture.disks[0].source().read(&bytes, short.offset);
    const tree = &fixture.disks[0].version.reader;
    fixture.packer.add(tree, &PiecePacker.keyNow(&fixture.disks[0], short).?, &bytes, short.offset);
    try fixture.expectAnswer(1, short.offset, short.size);
}

test "what the store keeps as one unit is sent as it is packed there" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var room: store.unit.Stored = undefined;
    const unit = (try fixture.disks[1].version.reader.packedNow(0, &room)).?;
    try fixture.want(1, 0, unit_size);
    try fixture.expectAnswer(1, 0, unit_size);
    const key = PiecePacker.keyNow(&fixture.disks[1], .{ .offset = 0, .size = unit_size }).?;
    const held = fixture.packer.pieces.find(&key).?.held;
    defer held.release();
    try testing.expectEqual(unit.len, held.size());
    // The quick search packs the same bytes into more.
    var raw: [unit_size]u8 = undefined;
    try fixture.disks[1].source().read(&raw, 0);
    const table = try gpa.create(lz4.Table);
    defer gpa.destroy(table);
    var out: [unit_size]u8 = undefined;
    try testing.expect(lz4.pack(table, &out, &raw).? > unit.len);
}

test "a piece that was packed quickly is packed once more into fewer bytes, and not a third time" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    // Letters at random: the quick search misses matches.
    var prng: std.Random.DefaultPrng = .init(7);
    var bytes: [unit_size]u8 = undefined;
    for (&bytes) |*byte| byte.* = 'a' + prng.random().uintLessThan(u8, 3);
    const key = PiecePacker.keyNow(&fixture.disks[0], .{ .offset = 0, .size = unit_size }).?;
    const packer = &fixture.packer;
    try testing.expect(!packer.canShrink(&key));
    const tree = &fixture.disks[0].version.reader;
    packer.add(tree, &key, &bytes, 0);
    try testing.expect(packer.canShrink(&key));
    const quick = packer.pieces.find(&key).?.held;
    const before = quick.size();
    quick.release();
    const search = try gpa.create(lz4.Search);
    defer gpa.destroy(search);
    packer.shrink(search, &key, &bytes);
    try testing.expect(!packer.canShrink(&key));
    const small = packer.pieces.find(&key).?.held;
    defer small.release();
    try testing.expect(small.size() < before);
}

test "zeros need no memory, and a unit that does not shrink is sent as it is beside others" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.expectAnswer(0, 2 * unit_size, unit_size);
    try testing.expectEqual(0, fixture.packer.pieces.piece_count.load(.monotonic));
    // Noise alone is plain, now that it is known.
    try fixture.want(0, unit_size, unit_size);
    var noise = readOf(unit_size, unit_size);
    try testing.expectEqual(null, fixture.answer(0, &noise));
    try fixture.expectAnswer(0, unit_size, 2 * unit_size);
    try fixture.want(0, 0, unit_size);
    try fixture.want(0, 3 * unit_size, disk_size - 3 * unit_size);
    try fixture.expectAnswer(0, 0, disk_size);
}

test "a retransmitted READ gets the fragments of the packed answer that it names" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.want(0, 0, unit_size);
    var whole = readOf(0, unit_size);
    const bytes = try gpa.dupe(u8, fixture.answer(0, &whole).?);
    defer gpa.free(bytes);
    var list: wire.RangeList = .{};
    try list.append(.{ .first_fragment = 1, .fragment_count = 1 });
    try list.append(.{ .first_fragment = whole.packets_out - 1, .fragment_count = 5 });
    var again = readOf(0, unit_size);
    again.ranges = list.view();
    try testing.expectEqualSlices(u8, bytes, fixture.answer(0, &again).?);
    try testing.expectEqual(2, again.packets_out);
    var fragments = again.fragments();
    try testing.expectEqual(1, fragments.next().?.index);
    const last = fragments.next().?;
    try testing.expectEqual(whole.packets_out - 1, last.index);
    try testing.expectEqual(null, fragments.next());
    try testing.expectEqual(1440 + @as(u32, last.length), again.bytes_out);
    // Nothing of a packed answer is there: the READ is answered plainly.
    var beyond: wire.RangeList = .{};
    try beyond.append(.{ .first_fragment = 22, .fragment_count = 1 });
    var other = readOf(0, unit_size);
    other.ranges = beyond.view();
    try testing.expectEqual(null, fixture.answer(0, &other));
    try testing.expectEqual(0, other.packed_bytes);
}

test "ranges that are not whole blocks, and plain files, are not packed" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for ([_][2]u32{ .{ 512, unit_size }, .{ 0, 8192 + 512 } }) |range| {
        for (0..3) |_| {
            var read = readOf(range[0], range[1]);
            try testing.expectEqual(null, fixture.answer(0, &read));
        }
    }
    try testing.expectEqual(
        null,
        PiecePacker.keyNow(&fixture.disks[0], .{ .offset = 512, .size = 4096 }),
    );
    const content: [4096]u8 = @splat(1);
    try fixture.tmp.dir.writeFile(testing.io, .{ .sub_path = "file", .data = &content });
    var file: VersionDisk = .{ .file = try .openBelow(fixture.tmp.dir.handle, "file", .disk) };
    defer file.close();
    try testing.expectEqual(null, PiecePacker.keyNow(&file, .{ .offset = 0, .size = 4096 }));
}
