//! Checksums of the blocks of a write layer: a file `sums` with one entry for each 4 KiB block of
//! the disk, behind a head. A block that no longer matches its entry has rotted on the disk, and is
//! never delivered.
//!
//! Blocks are overwritten in place, and nothing orders a block and its entry on the disk: after a
//! power failure either may be the older one. So an entry vouches for its block only if the layer
//! was closed in order since it was written. The head counts generations: each opening begins one,
//! and makes that durable before the first write. An orderly close syncs everything and says so. An
//! opening that finds no such word calls all generations so far uncertain: a block that differs
//! from an entry of them counts as what a crash left, until it is written again. No sync waits for
//! the entries.
//!
//! An entry of zeros says nothing: a block that was never written or is a hole, or that a release
//! without checksums has written.

const std = @import("std");
const base = @import("base");
const Files = @import("../files/files.zig");
const simulated = @import("../simulated.zig");
const assert = std.debug.assert;
const Handle = Files.Handle;

pub const LayerSums = @This();

pub const block_size = 4096;
/// The head has a block of its own, so that entries of neighbours share pages.
const head_size = 4096;
const entry_size = 8;
pub const head_bytes = 32;
/// Entries that are read or written together.
const batch_blocks = 512;
/// Of an entry's 64 bits; the rest is a part of the hash.
const generation_bits = 16;
const generation_max = std.math.maxInt(u16);

handle: Handle,
/// Salts the hashes, so that a block of another layer does not match.
seed: u64,
generation: u16,
/// Generations up to this one are uncertain.
uncertain: u16,
/// An entry could not be written: an older one may stand for its block.
has_failed: bool = false,
/// Was closed in order: nothing may be written any more.
is_closed: bool = false,

const magic = "BFLSUMS\x00".*;

const Head = extern struct {
    magic: [8]u8,
    seed: [8]u8,
    generation: [2]u8,
    uncertain: [2]u8,
    /// The generation was closed in order.
    is_closed: u8,
    reserved: [3]u8 = @splat(0),
    checksum: [8]u8,

    comptime {
        assert(@sizeOf(Head) == head_bytes);
    }

    fn checksumOf(head: *const Head) u64 {
        return std.hash.XxHash64.hash(0, std.mem.asBytes(head)[0..@offsetOf(Head, "checksum")]);
    }
};

pub const Error = Files.Error || error{Damaged};

fn fileSize(disk_size: u64) u64 {
    const blocks = std.math.divCeil(u64, disk_size, block_size) catch unreachable;
    return head_size + blocks * entry_size;
}

fn seedOf(layer_id: base.Uuid) u64 {
    return std.mem.readInt(u64, layer_id.bytes[0..8], .little);
}

/// Makes the file of a layer that has none and does not outlive its process: it is not synced.
pub fn create(
    files: Files,
    handle: Handle,
    layer_id: base.Uuid,
    disk_size: u64,
) Files.Error!LayerSums {
    var sums: LayerSums =
        .{ .handle = handle, .seed = seedOf(layer_id), .generation = 1, .uncertain = 0 };
    try files.setSize(handle, fileSize(disk_size));
    try sums.writeHead(files, false);
    return sums;
}

/// Makes the file of a layer that has none, and syncs it.
pub fn createSynced(
    files: Files,
    handle: Handle,
    layer_id: base.Uuid,
    disk_size: u64,
) Files.Error!LayerSums {
    const sums = try create(files, handle, layer_id, disk_size);
    try files.sync(handle);
    return sums;
}

/// Begins the next generation of an existing file, and makes that durable.
pub fn open(files: Files, handle: Handle, layer_id: base.Uuid, disk_size: u64) Error!LayerSums {
    var sums: LayerSums = try .load(files, handle, layer_id, disk_size);
    // The last number is used for good: a layer is opened a few times a day.
    if (sums.generation == generation_max) sums.uncertain = generation_max;
    sums.generation +|= 1;
    if (simulated.has(.sums_always_certain)) sums.uncertain = 0;
    try sums.writeHead(files, false);
    try files.sync(handle);
    return sums;
}

/// Reads the file of a layer that nobody writes, to judge its blocks.
pub fn load(files: Files, handle: Handle, layer_id: base.Uuid, disk_size: u64) Error!LayerSums {
    if (try files.size(handle) != fileSize(disk_size)) return error.Damaged;
    var head: Head = undefined;
    if (!try files.readWhole(handle, std.mem.asBytes(&head), 0)) return error.Damaged;
    const seed = seedOf(layer_id);
    if (!std.mem.eql(u8, &head.magic, &magic) or
        std.mem.readInt(u64, &head.checksum, .little) != head.checksumOf() or
        std.mem.readInt(u64, &head.seed, .little) != seed or head.is_closed > 1)
        return error.Damaged;
    const last = std.mem.readInt(u16, &head.generation, .little);
    const uncertain = std.mem.readInt(u16, &head.uncertain, .little);
    if (last == 0 or uncertain > last) return error.Damaged;
    return .{
        .handle = handle,
        .seed = seed,
        .generation = last,
        .uncertain = if (head.is_closed == 1) uncertain else last,
    };
}

/// The data are on the disk: makes the entries durable, and certain for the next opening.
pub fn closeInOrder(sums: *LayerSums, files: Files) Files.Error!void {
    if (sums.has_failed) return;
    sums.is_closed = true;
    try files.sync(sums.handle);
    try sums.writeHead(files, true);
    try files.sync(sums.handle);
}

fn writeHead(sums: *const LayerSums, files: Files, is_closed: bool) Files.Error!void {
    var head: Head = .{
        .magic = magic,
        .seed = undefined,
        .generation = undefined,
        .uncertain = undefined,
        .is_closed = @intFromBool(is_closed),
        .checksum = undefined,
    };
    std.mem.writeInt(u64, &head.seed, sums.seed, .little);
    std.mem.writeInt(u16, &head.generation, sums.generation, .little);
    std.mem.writeInt(u16, &head.uncertain, sums.uncertain, .little);
    std.mem.writeInt(u64, &head.checksum, head.checksumOf(), .little);
    try files.write(sums.handle, std.mem.asBytes(&head), 0);
}

fn entryOf(sums: *const LayerSums, block: u64, bytes: []const u8) u64 {
    assert(bytes.len == block_size);
    var hash: std.hash.XxHash64 = .init(sums.seed +% block);
    hash.update(bytes);
    const kept = hash.final() & ~@as(u64, generation_max);
    return kept | sums.generation;
}

/// Notes blocks that were written, whole ones, from `block` on. A disk that refuses makes the
/// entries of this generation uncertain, and the write counts.
pub fn note(sums: *LayerSums, files: Files, block: u64, bytes: []const u8) void {
    assert(bytes.len % block_size == 0);
    assert(!sums.is_closed);
    var entries: [batch_blocks]u64 = undefined;
    var done: usize = 0;
    const count = bytes.len / block_size;
    while (done < count) {
        const part: usize = @min(batch_blocks, count - done);
        for (entries[0..part], done..) |*entry, index| entry.* = std.mem.nativeToLittle(
            u64,
            sums.entryOf(block + index, bytes[index * block_size ..][0..block_size]),
        );
        files.write(
            sums.handle,
            std.mem.sliceAsBytes(entries[0..part]),
            head_size + (block + done) * entry_size,
        ) catch {
            sums.has_failed = true;
        };
        done += part;
    }
}

/// Blocks became holes.
pub fn forget(sums: *LayerSums, files: Files, block: u64, count: u64) void {
    assert(!sums.is_closed);
    const zeros: [batch_blocks * entry_size]u8 = @splat(0);
    var done: u64 = 0;
    while (done < count) {
        const part: u64 = @min(batch_blocks, count - done);
        files.write(
            sums.handle,
            zeros[0..@intCast(part * entry_size)],
            head_size + (block + done) * entry_size,
        ) catch {
            sums.has_failed = true;
        };
        done += part;
    }
}

/// The block has rotted: no later opening takes it for what a crash left. Writing it again mends
/// it.
pub fn condemn(sums: *LayerSums, files: Files, block: u64) void {
    // No entry of a block that was written has generation 0.
    const entry = std.mem.nativeToLittle(u64, 1 << generation_bits);
    files.write(sums.handle, std.mem.asBytes(&entry), head_size + block * entry_size) catch {};
}

pub const Verdict = union(enum) {
    ok,
    /// Its content is not what was written.
    rotten: u64,
    /// The entries are not in memory.
    unknown,
};

/// Judges whole blocks from `block` on. `now`: only if their entries are in memory.
pub fn judge(
    sums: *const LayerSums,
    files: Files,
    block: u64,
    bytes: []const u8,
    how: enum { now, waiting },
) Files.Error!Verdict {
    assert(bytes.len % block_size == 0);
    var entries: [batch_blocks]u64 = undefined;
    var done: usize = 0;
    const count = bytes.len / block_size;
    while (done < count) {
        const part: usize = @min(batch_blocks, count - done);
        const into = std.mem.sliceAsBytes(entries[0..part]);
        const offset = head_size + (block + done) * entry_size;
        const size = switch (how) {
            .now => try files.readNow(sums.handle, into, offset),
            .waiting => try files.read(sums.handle, into, offset),
        };
        if (size < into.len) return if (how == .now) .unknown else .{ .rotten = block + done };
        for (entries[0..part], done..) |stored, index| {
            const part_bytes = bytes[index * block_size ..][0..block_size];
            if (!sums.matches(std.mem.littleToNative(u64, stored), block + index, part_bytes))
                return .{ .rotten = block + index };
        }
        done += part;
    }
    return .ok;
}

/// Brings entries into memory.
pub fn warm(sums: *const LayerSums, files: Files, block: u64, count: u64) Files.Error!void {
    var entries: [batch_blocks * entry_size]u8 = undefined;
    var done: u64 = 0;
    while (done < count) {
        const part: u64 = @min(batch_blocks, count - done);
        const into = entries[0..@intCast(part * entry_size)];
        _ = try files.read(sums.handle, into, head_size + (block + done) * entry_size);
        done += part;
    }
}

fn matches(sums: *const LayerSums, entry: u64, block: u64, bytes: []const u8) bool {
    if (entry == 0 or simulated.has(.layer_unchecked)) return true;
    if (sums.entryOf(block, bytes) >> generation_bits == entry >> generation_bits) return true;
    const generation: u16 = @truncate(entry);
    // 0 is that of a condemned block; a later one was never written.
    if (generation == 0) return false;
    return generation <= sums.uncertain or sums.has_failed;
}

const testing = std.testing;
const LinuxFiles = @import("../files/linux_files.zig");

const SumsFixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    const disk_size = 1100 * block_size + 512;
    const id: base.Uuid = .fromBytes(@splat(9));

    fn init(fixture: *SumsFixture) !void {
        fixture.tmp = testing.tmpDir(.{});
        fixture.on = .fromFd(fixture.tmp.dir.handle);
    }

    fn create(fixture: *SumsFixture) !LayerSums {
        return .create(fixture.files(), try fixture.files().create("sums"), id, disk_size);
    }

    fn open(fixture: *SumsFixture) !LayerSums {
        return .open(fixture.files(), try fixture.files().open("sums", .write), id, disk_size);
    }

    fn files(fixture: *SumsFixture) Files {
        return fixture.on.files();
    }

    fn expect(
        fixture: *SumsFixture,
        sums: *const LayerSums,
        block: u64,
        bytes: []const u8,
        verdict: Verdict,
    ) !void {
        try testing.expectEqual(verdict, try sums.judge(fixture.files(), block, bytes, .waiting));
    }
};

test "every flipped bit of a block is found, at any place, and a hole says nothing" {
    var fixture: SumsFixture = undefined;
    try fixture.init();
    defer fixture.tmp.cleanup();
    const files = fixture.files();
    var sums = try fixture.create();
    defer files.close(sums.handle);
    const bytes = try testing.allocator.alloc(u8, 1000 * block_size);
    defer testing.allocator.free(bytes);
    for (bytes, 0..) |*byte, at| byte.* = @truncate(at / 513);
    sums.note(files, 100, bytes);
    try fixture.expect(&sums, 100, bytes, .ok);
    for ([_]usize{ 0, 511, 512, 999 }) |block| for ([_]usize{ 0, 5, 8 * block_size - 1 }) |bit| {
        const byte = &bytes[block * block_size + bit / 8];
        byte.* ^= @as(u8, 1) << @intCast(bit % 8);
        try fixture.expect(&sums, 100, bytes, .{ .rotten = 100 + block });
        byte.* ^= @as(u8, 1) << @intCast(bit % 8);
    };
    // The same bytes elsewhere are not what was written there.
    try fixture.expect(&sums, 101, bytes[0..block_size], .{ .rotten = 101 });
    sums.forget(files, 100, 700);
    try fixture.expect(&sums, 101, bytes[0..block_size], .ok);
    try fixture.expect(&sums, 800, bytes[0..block_size], .{ .rotten = 800 });
    // Never written.
    try fixture.expect(&sums, 0, bytes[0..block_size], .ok);
}

test "an entry vouches for its block after an orderly close, and after a crash once it is written again" {
    var fixture: SumsFixture = undefined;
    try fixture.init();
    defer fixture.tmp.cleanup();
    const files = fixture.files();
    const first: [block_size]u8 = @splat(1);
    const other: [block_size]u8 = @splat(2);
    var sums = try fixture.create();
    sums.note(files, 3, &first);
    try sums.closeInOrder(files);
    files.close(sums.handle);
    sums = try fixture.open();
    try fixture.expect(&sums, 3, &other, .{ .rotten = 3 });
    files.close(sums.handle);
    // Once condemned, it stays so, whatever happens.
    sums = try fixture.open();
    sums.note(files, 9, &first);
    sums.condemn(files, 9);
    files.close(sums.handle);
    // It was not closed in order.
    for (0..2) |_| {
        sums = try fixture.open();
        try fixture.expect(&sums, 3, &first, .ok);
        try fixture.expect(&sums, 3, &other, .ok);
        try fixture.expect(&sums, 9, &first, .{ .rotten = 9 });
        sums.note(files, 4, &first);
        try fixture.expect(&sums, 4, &other, .{ .rotten = 4 });
        try sums.closeInOrder(files);
        files.close(sums.handle);
    }
    sums = try fixture.open();
    defer files.close(sums.handle);
    try fixture.expect(&sums, 3, &other, .ok);
    try fixture.expect(&sums, 4, &other, .{ .rotten = 4 });
    sums.note(files, 3, &first);
    try fixture.expect(&sums, 3, &other, .{ .rotten = 3 });
}

test "a head that is not this layer's, or has a flipped bit, is damaged" {
    var fixture: SumsFixture = undefined;
    try fixture.init();
    defer fixture.tmp.cleanup();
    const files = fixture.files();
    const sums = try fixture.create();
    defer files.close(sums.handle);
    var head: [32]u8 = undefined;
    _ = try files.readWhole(sums.handle, &head, 0);
    for (0..8 * head.len) |bit| {
        var damaged = head;
        damaged[bit / 8] ^= @as(u8, 1) << @intCast(bit % 8);
        try files.write(sums.handle, &damaged, 0);
        const opened = LayerSums.open(files, sums.handle, SumsFixture.id, SumsFixture.disk_size);
        try testing.expectError(error.Damaged, opened);
    }
    try files.write(sums.handle, &head, 0);
    const other: base.Uuid = .fromBytes(@splat(8));
    try testing.expectError(
        error.Damaged,
        LayerSums.open(files, sums.handle, other, SumsFixture.disk_size),
    );
    try files.setSize(sums.handle, 100);
    try testing.expectError(
        error.Damaged,
        LayerSums.open(files, sums.handle, SumsFixture.id, SumsFixture.disk_size),
    );
}

test "the last generation is used for good, and is never certain" {
    var fixture: SumsFixture = undefined;
    try fixture.init();
    defer fixture.tmp.cleanup();
    const files = fixture.files();
    var sums = try fixture.create();
    sums.generation = generation_max - 1;
    const bytes: [block_size]u8 = @splat(1);
    sums.note(files, 3, &bytes);
    for (0..3) |step| {
        try sums.closeInOrder(files);
        files.close(sums.handle);
        sums = try fixture.open();
        try testing.expectEqual(generation_max, sums.generation);
        const other: [block_size]u8 = @splat(2);
        try fixture.expect(&sums, 3, &other, if (step == 0) .{ .rotten = 3 } else .ok);
    }
    files.close(sums.handle);
}
