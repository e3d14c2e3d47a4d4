//! The READs of one boot as a list of bytes: a head of 64 bytes and a record of 16 bytes for each
//! READ, in the order in which they were answered, little-endian. A READ that came again is not
//! listed twice. Behind them stands what the device says about its boot. Kept by the edge that
//! answered them (docs/reference/files-read.md).

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const guest_trace = @import("guest_trace.zig");
const guest_units = @import("guest_units.zig");
const assert = std.debug.assert;

pub const magic = "BFREADS1";
pub const head_size = 64;
pub const record_size = 16;
/// A Linux boot has some thousand; a device that wishes harm has as many as it likes.
pub const records_max = 200_000;
pub const size_max =
    head_size + records_max * record_size + guest_trace.size_max + guest_units.size_max;

/// Bytes of what a device may say about its boot.
pub fn accountSizeMax(kind: wire.AccountKind) usize {
    return switch (kind) {
        .block_trace => guest_trace.size_max,
        .units => guest_units.size_max,
    };
}

pub const Head = struct {
    boot_id: base.Uuid,
    version_id: base.Uuid,
    started_unix_ms: u64,
    /// READs that were listed no more.
    dropped: u32,
    /// Bytes of the device's account of its reads, and of its units; 0: there is none.
    trace_size: u32 = 0,
    units_size: u32 = 0,
};

/// Sizes and places in sectors of 512 bytes.
pub const Record = packed struct(u128) {
    /// µs since the start of the boot.
    at_us: u40,
    sector: u40,
    sectors: u16,
    /// From the READ to its bytes in hand, in µs.
    storage_us: u28,
    /// It waited for a disk.
    is_cold: bool,
    /// The device asked before its system did.
    is_ahead: bool,
    zero: u2 = 0,

    pub const sector_size = 512;

    pub fn offset(record: Record) u64 {
        return @as(u64, record.sector) * sector_size;
    }

    pub fn length(record: Record) u64 {
        return @as(u64, record.sectors) * sector_size;
    }

    pub fn toBytes(record: Record) [record_size]u8 {
        var bytes: [record_size]u8 = undefined;
        std.mem.writeInt(u128, &bytes, @bitCast(record), .little);
        return bytes;
    }
};

pub const Read = struct {
    at_us: u64,
    /// Bytes.
    offset: u64,
    length: u32,
    storage_us: u64,
    is_cold: bool,
    is_ahead: bool,

    /// Numbers that do not fit become the greatest ones; whole sectors are named.
    pub fn record(read: *const Read) Record {
        const first = read.offset / Record.sector_size;
        const end = (read.offset +| read.length +| (Record.sector_size - 1)) / Record.sector_size;
        return .{
            .at_us = std.math.lossyCast(u40, read.at_us),
            .sector = std.math.lossyCast(u40, first),
            .sectors = std.math.lossyCast(u16, end - first),
            .storage_us = std.math.lossyCast(u28, read.storage_us),
            .is_cold = read.is_cold,
            .is_ahead = read.is_ahead,
        };
    }
};

pub fn encodeHead(head: *const Head) [head_size]u8 {
    var bytes: [head_size]u8 = @splat(0);
    bytes[0..8].* = magic.*;
    bytes[8..24].* = head.boot_id.bytes;
    bytes[24..40].* = head.version_id.bytes;
    std.mem.writeInt(u64, bytes[40..48], head.started_unix_ms, .little);
    std.mem.writeInt(u32, bytes[48..52], head.dropped, .little);
    std.mem.writeInt(u32, bytes[52..56], head.trace_size, .little);
    std.mem.writeInt(u32, bytes[56..60], head.units_size, .little);
    return bytes;
}

pub const List = struct {
    head: Head,
    bytes: []const u8,
    /// Untrusted; empty: there is none.
    trace: []const u8 = "",
    units: []const u8 = "",

    pub fn count(list: *const List) usize {
        return list.bytes.len / record_size;
    }

    pub fn get(list: *const List, index: usize) Record {
        const raw = list.bytes[index * record_size ..][0..record_size];
        return @bitCast(std.mem.readInt(u128, raw, .little));
    }
};

pub fn parse(bytes: []const u8) error{Malformed}!List {
    if (bytes.len < head_size or bytes.len > size_max) return error.Malformed;
    if (!std.mem.startsWith(u8, bytes, magic)) return error.Malformed;
    const trace_size = std.mem.readInt(u32, bytes[52..56], .little);
    const units_size = std.mem.readInt(u32, bytes[56..60], .little);
    const accounts_size = @as(u64, trace_size) + units_size;
    if (accounts_size > bytes.len - head_size) return error.Malformed;
    const units_at = bytes.len - units_size;
    const trace_at = units_at - trace_size;
    if ((trace_at - head_size) % record_size != 0) return error.Malformed;
    return .{
        .head = .{
            .boot_id = .{ .bytes = bytes[8..24].* },
            .version_id = .{ .bytes = bytes[24..40].* },
            .started_unix_ms = std.mem.readInt(u64, bytes[40..48], .little),
            .dropped = std.mem.readInt(u32, bytes[48..52], .little),
            .trace_size = trace_size,
            .units_size = units_size,
        },
        .bytes = bytes[head_size..trace_at],
        .trace = bytes[trace_at..units_at],
        .units = bytes[units_at..],
    };
}

const testing = std.testing;

test "a list is read as it was written" {
    const head: Head = .{
        .boot_id = .fromRandom(@splat(1)),
        .version_id = .fromRandom(@splat(2)),
        .started_unix_ms = 1_795_917_600_000,
        .dropped = 7,
    };
    const read: Read = .{
        .at_us = 1_234_567,
        .offset = 512 * 77,
        .length = 128 << 10,
        .storage_us = 4321,
        .is_cold = true,
        .is_ahead = false,
    };
    const bytes = encodeHead(&head) ++ read.record().toBytes();
    const list = try parse(&bytes);
    try testing.expectEqual(head, list.head);
    try testing.expectEqual(1, list.count());
    const record = list.get(0);
    try testing.expectEqual(read.offset, record.offset());
    try testing.expectEqual(read.length, record.length());
    try testing.expectEqual(1_234_567, record.at_us);
    try testing.expectEqual(4321, record.storage_us);
    try testing.expect(record.is_cold and !record.is_ahead);
    var told = head;
    told.trace_size = 3;
    told.units_size = 2;
    const with_accounts = encodeHead(&told) ++ read.record().toBytes() ++ "abcde".*;
    const told_list = try parse(&with_accounts);
    try testing.expectEqual(1, told_list.count());
    try testing.expectEqualStrings("abc", told_list.trace);
    try testing.expectEqualStrings("de", told_list.units);
    told.trace_size = std.math.maxInt(u32);
    try testing.expectError(error.Malformed, parse(&encodeHead(&told)));
    for (0..head_size) |size| try testing.expectError(error.Malformed, parse(bytes[0..size]));
    try testing.expectError(error.Malformed, parse(bytes[0 .. bytes.len - 1]));
}

test "numbers beyond what a record holds become the greatest ones" {
    const read: Read = .{
        .at_us = std.math.maxInt(u64),
        .offset = std.math.maxInt(u64) - 511,
        .length = 1,
        .storage_us = std.math.maxInt(u64),
        .is_cold = false,
        .is_ahead = true,
    };
    const record = read.record();
    try testing.expectEqual(std.math.maxInt(u40), record.at_us);
    try testing.expectEqual(std.math.maxInt(u28), record.storage_us);
    try testing.expectEqual(std.math.maxInt(u40), record.sector);
    const odd: Read = .{
        .at_us = 0,
        .offset = 100,
        .length = 500,
        .storage_us = 0,
        .is_cold = false,
        .is_ahead = false,
    };
    try testing.expectEqual(2, odd.record().sectors);
}
