//! The content of the simulated versions: a function of version and offset, so that a read of any
//! size can be checked without keeping a byte. Reads take time: most are cached, some wait for a
//! slow disk.

const std = @import("std");
const base = @import("base");

pub const Disk = @This();

prng: base.Prng,
latency_us_typical: u64,
latency_us_slow: u64,
slow_per_mille: u64,
/// So many reads fail; the next try may succeed.
error_per_mille: u64,

pub const Version = struct {
    id: base.Uuid,
    /// In bytes; a multiple of 512.
    size: u64,

    fn key(version: Version) u64 {
        return std.mem.readInt(u64, version.id.bytes[0..8], .little);
    }
};

pub fn init(prng: *base.Prng) Disk {
    return .{
        .prng = .init(prng.nextU64()),
        .latency_us_typical = prng.between(5, 200),
        .latency_us_slow = prng.between(1_000, 30_000),
        .slow_per_mille = prng.below(20),
        .error_per_mille = if (prng.chance(1, 2)) 0 else prng.below(100),
    };
}

/// Draws how long the next read takes.
pub fn latencyUs(disk: *Disk) u64 {
    if (disk.prng.chance(disk.slow_per_mille, 1000))
        return disk.prng.between(1, disk.latency_us_slow);
    return disk.prng.between(1, disk.latency_us_typical);
}

/// Draws whether the next read fails.
pub fn fails(disk: *Disk) bool {
    return disk.prng.chance(disk.error_per_mille, 1000);
}

/// Divides a range of bytes into words; at both ends there may be parts of words. A simulation
/// spends most of its time on these words.
const Span = struct {
    first: u64,
    head: usize,
    words: usize,

    fn of(offset: u64, size: usize) Span {
        const head: usize = @min(size, @as(usize, @intCast((8 - offset % 8) % 8)));
        return .{ .first = (offset + head) / 8, .head = head, .words = (size - head) / 8 };
    }
};

pub fn fill(version: Version, offset: u64, buffer: []u8) void {
    const key = version.key();
    const span: Span = .of(offset, buffer.len);
    const end = span.head + span.words * 8;
    fillPart(key, offset, buffer[0..span.head]);
    const words = std.mem.bytesAsSlice(u64, buffer[span.head..end]);
    for (words, span.first..) |*word, index| word.* = wordAt(key, index);
    fillPart(key, offset + end, buffer[end..]);
}

/// Fills a buffer that lies within one word.
fn fillPart(key: u64, offset: u64, buffer: []u8) void {
    const word = std.mem.toBytes(wordAt(key, offset / 8));
    @memcpy(buffer, word[@intCast(offset % 8)..][0..buffer.len]);
}

/// Returns where the bytes begin to differ from the version's, or the start of the word that
/// differs; null: nowhere.
pub fn firstDifference(version: Version, offset: u64, bytes: []const u8) ?u64 {
    const key = version.key();
    const span: Span = .of(offset, bytes.len);
    const end = span.head + span.words * 8;
    if (!isPart(key, offset, bytes[0..span.head])) return offset;
    const words = std.mem.bytesAsSlice(u64, bytes[span.head..end]);
    for (words, span.first..) |word, index| if (word != wordAt(key, index)) return index * 8;
    return if (isPart(key, offset + end, bytes[end..])) null else offset + end;
}

fn isPart(key: u64, offset: u64, bytes: []const u8) bool {
    const word = std.mem.toBytes(wordAt(key, offset / 8));
    return std.mem.eql(u8, bytes, word[@intCast(offset % 8)..][0..bytes.len]);
}

/// Returns the word as it lies in memory.
inline fn wordAt(key: u64, index: u64) u64 {
    const mixed = (key ^ index *% 0x9e3779b97f4a7c15) *% 0xd6e8feb86659fd93;
    return std.mem.nativeToLittle(u64, mixed ^ (mixed >> 32));
}

const testing = std.testing;

test "a piece of the disk is the same however it is read, and differs from another version's" {
    const version: Version = .{ .id = .fromRandom(@splat(1)), .size = 1 << 20 };
    const other: Version = .{ .id = .fromRandom(@splat(2)), .size = 1 << 20 };
    var whole: [4096]u8 = undefined;
    fill(version, 512, &whole);
    var piece: [101]u8 = undefined;
    fill(version, 512 + 1003, &piece);
    try testing.expectEqualSlices(u8, whole[1003..][0..101], &piece);
    try testing.expectEqual(null, firstDifference(version, 512, &whole));
    try testing.expect(firstDifference(other, 512, &whole) != null);
    whole[77] ^= 1;
    try testing.expect(firstDifference(version, 512, &whole).? <= 512 + 77);
}

test "a byte is the same in a read of any size and offset, and a wrong one is found" {
    const version: Version = .{ .id = .fromRandom(@splat(1)), .size = 1 << 20 };
    var whole: [64]u8 = undefined;
    fill(version, 512, &whole);
    for (0..32) |from| for (0..whole.len - from) |size| {
        var piece: [64]u8 = undefined;
        fill(version, 512 + from, piece[0..size]);
        try testing.expectEqualSlices(u8, whole[from..][0..size], piece[0..size]);
        try testing.expectEqual(null, firstDifference(version, 512 + from, piece[0..size]));
        for (0..size) |at| {
            piece[at] ^= 0x10;
            const found = firstDifference(version, 512 + from, piece[0..size]).?;
            try testing.expect(found <= 512 + from + at and found + 8 > 512 + from + at);
            piece[at] ^= 0x10;
        }
    };
}
