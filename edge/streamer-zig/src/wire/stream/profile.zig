//! The boot profile on the wire (packages/proto/STREAM.md, "Boot profile"): the blocks that boots
//! of a version read, in order, as a document that a device reads, and USED, by which it reports
//! which of them its system used.

const std = @import("std");
const stream = @import("stream.zig");
const assert = std.debug.assert;
const ParseError = stream.ParseError;

pub const block_size = 4096;
pub const unit_blocks = 8;
pub const unit_size = unit_blocks * block_size;
pub const entry_size = 8;
pub const head_size = 16;
/// This many units make a document of 64 KiB; they cover 256 MiB of a disk.
pub const units_max = 8190;
pub const document_size_max = head_size + units_max * entry_size;
pub const used_units_max = (stream.request_size_max - stream.header_size) / entry_size;

const magic = "BFBP".*;

comptime {
    assert(document_size_max == 64 << 10);
    assert(document_size_max <= stream.read_size_promised);
    assert(unit_size <= stream.read_size_promised);
}

/// 32 KiB of a disk, at 32 KiB times `index`, and the selected blocks of 4 KiB: bit 0 is the first.
/// Never none.
pub const Unit = struct {
    index: u40,
    blocks: u8,

    pub fn encode(unit: Unit, out: *[entry_size]u8) void {
        assert(unit.blocks != 0);
        std.mem.writeInt(u64, out, @as(u64, unit.index) << 24 | @as(u64, unit.blocks) << 16, .big);
    }

    pub fn decode(bytes: *const [entry_size]u8) ParseError!Unit {
        const value = std.mem.readInt(u64, bytes, .big);
        if (@as(u16, @truncate(value)) != 0) return error.ReservedNotZero;
        const blocks: u8 = @truncate(value >> 16);
        if (blocks == 0) return error.BadValue;
        return .{ .index = @intCast(value >> 24), .blocks = blocks };
    }

    /// Byte offset in the disk.
    pub fn offset(unit: Unit) u64 {
        return @as(u64, unit.index) * unit_size;
    }
};

/// A range of a disk as units; the last unit may extend beyond the end of the disk.
pub const UnitIterator = struct {
    first_block: u64,
    end_block: u64,

    /// `length` is not 0.
    pub fn init(offset: u64, length: u32) UnitIterator {
        assert(length > 0);
        return .{
            .first_block = offset / block_size,
            .end_block = (offset + length - 1) / block_size + 1,
        };
    }

    pub fn next(iterator: *UnitIterator) ?Unit {
        if (iterator.first_block >= iterator.end_block) return null;
        const index = iterator.first_block / unit_blocks;
        const end = @min(iterator.end_block, (index + 1) * unit_blocks);
        const blocks = maskOf(
            @intCast(iterator.first_block % unit_blocks),
            @intCast(end - iterator.first_block),
        );
        iterator.first_block = end;
        // Beyond any disk.
        return .{ .index = std.math.cast(u40, index) orelse return null, .blocks = blocks };
    }
};

/// `count` blocks from `first` on.
pub fn maskOf(first: u3, count: u4) u8 {
    assert(count > 0 and @as(u8, first) + count <= unit_blocks);
    return @intCast(((@as(u16, 1) << count) - 1) << first);
}

/// USED: units whose read-ahead blocks the system used, in the order of its demands.
pub const Used = struct {
    units: Units,
};

pub const Units = struct {
    bytes: []const u8 = &.{},

    pub fn count(units: Units) u16 {
        return @intCast(units.bytes.len / entry_size);
    }

    /// The bytes were parsed before.
    pub fn at(units: Units, index: u16) Unit {
        return Unit.decode(units.bytes[@as(usize, index) * entry_size ..][0..entry_size]) catch
            unreachable;
    }
};

pub fn parseUsed(bytes: []const u8) ParseError!Used {
    const body = bytes[stream.header_size..];
    if (body.len == 0 or body.len % entry_size != 0 or body.len / entry_size > used_units_max)
        return error.WrongSize;
    var at: usize = 0;
    while (at < body.len) : (at += entry_size) _ = try Unit.decode(body[at..][0..entry_size]);
    return .{ .units = .{ .bytes = body } };
}

/// The header is written already.
pub fn emitUsed(used: Used, out: []u8) []u8 {
    const size = stream.header_size + used.units.bytes.len;
    @memcpy(out[stream.header_size..size], used.units.bytes);
    return out[0..size];
}

/// Size in bytes of a document of this many units: a multiple of 512.
pub fn documentSize(units: usize) u32 {
    assert(units <= units_max);
    return @intCast(
        std.mem.alignForward(usize, head_size + units * entry_size, stream.sector_size),
    );
}

/// Fills the head of a document whose units are written already; `document.len` is that of
/// `documentSize`, with zeros behind the units.
pub fn seal(document: []u8, units: u16) void {
    assert(document.len == documentSize(units));
    document[0..4].* = magic;
    std.mem.writeInt(u32, document[4..8], units, .big);
    std.mem.writeInt(u64, document[8..16], 0, .big);
    std.mem.writeInt(u32, document[8..12], std.hash.Crc32.hash(document), .big);
}

/// Returns the units of a received document; an error if it is none, or was assembled from two.
pub fn openDocument(document: []u8) ParseError!Units {
    if (document.len < head_size) return error.WrongSize;
    if (!std.mem.eql(u8, document[0..4], &magic)) return error.BadValue;
    const count = std.mem.readInt(u32, document[4..8], .big);
    if (count > units_max) return error.BadValue;
    if (document.len < documentSize(count)) return error.BadValue;
    const whole = document[0..documentSize(count)];
    const expected = std.mem.readInt(u32, whole[8..12], .big);
    @memset(whole[8..12], 0);
    if (std.hash.Crc32.hash(whole) != expected) return error.BadValue;
    const body = whole[head_size..][0 .. count * entry_size];
    for (0..count) |index| _ = try Unit.decode(body[index * entry_size ..][0..entry_size]);
    return .{ .bytes = body };
}

const testing = std.testing;

test "a range of a disk is the blocks that it touches" {
    var units: UnitIterator = .init(7 * 4096 + 512, 4096);
    try testing.expectEqual(Unit{ .index = 0, .blocks = 0x80 }, units.next().?);
    try testing.expectEqual(Unit{ .index = 1, .blocks = 0x01 }, units.next().?);
    try testing.expectEqual(null, units.next());
    units = .init(unit_size, 3 * unit_size);
    for (1..4) |index|
        try testing.expectEqual(Unit{ .index = @intCast(index), .blocks = 0xff }, units.next().?);
    try testing.expectEqual(null, units.next());
}

test "a document survives its bytes, and a changed byte is refused" {
    var document: [512]u8 = @splat(0);
    const units =
        [_]Unit{ .{ .index = 7, .blocks = 0x81 }, .{ .index = std.math.maxInt(u40), .blocks = 1 } };
    for (units, 0..) |unit, index|
        unit.encode(document[head_size + index * entry_size ..][0..entry_size]);
    seal(&document, units.len);
    for (0..document.len) |index| {
        var damaged = document;
        damaged[index] ^= 0x10;
        try testing.expectError(error.BadValue, openDocument(&damaged));
    }
    const found = try openDocument(&document);
    try testing.expectEqual(2, found.count());
    try testing.expectEqual(units[0], found.at(0));
    try testing.expectEqual(units[1], found.at(1));
    try testing.expectError(error.WrongSize, openDocument(document[0..8]));
}

test {
    _ = @import("profile_test.zig");
}
