//! FETCH_TIMES (packages/proto/STREAM.md, "Where time went"): how long each of a device's latest
//! READs took at the device, so that the edge can subtract its own part of each. Part of
//! `stream.zig`, which gives its guarantees.

const std = @import("std");
const assert = std.debug.assert;

const header_size = 16;
const entry_size = 8;
/// Sealed, the packet is never larger than every path takes: nobody would notice that it is lost.
pub const reads_max = 64;
/// A device names a read before it has numbered this many later packets: an edge keeps its part of
/// the reads of twice as many.
pub const later_ids_max = 64;

pub const FetchTime = struct {
    request_id: u32,
    /// µs from the first READ with this id to its last byte; longer ones count as the largest.
    fetch_us: u32,

    pub fn encode(time: FetchTime, out: *[entry_size]u8) void {
        std.mem.writeInt(u32, out[0..4], time.request_id, .big);
        std.mem.writeInt(u32, out[4..8], time.fetch_us, .big);
    }

    fn decode(bytes: *const [entry_size]u8) FetchTime {
        return .{
            .request_id = std.mem.readInt(u32, bytes[0..4], .big),
            .fetch_us = std.mem.readInt(u32, bytes[4..8], .big),
        };
    }
};

/// In the form of the packet.
pub const FetchTimes = struct {
    reads: Reads,

    pub const Reads = struct {
        bytes: []const u8,

        pub fn count(reads: Reads) u16 {
            return @intCast(@divExact(reads.bytes.len, entry_size));
        }

        pub fn at(reads: Reads, index: u16) FetchTime {
            return .decode(reads.bytes[@as(usize, index) * entry_size ..][0..entry_size]);
        }
    };
};

/// Collects the reads of one packet.
pub fn FetchTimeBuffer(comptime capacity: u16) type {
    comptime assert(capacity > 0 and capacity <= reads_max);
    return struct {
        const Buffer = @This();

        bytes: [capacity * entry_size]u8 = undefined,
        count: u16 = 0,

        /// Returns false if there is no space left.
        pub fn append(buffer: *Buffer, time: FetchTime) bool {
            assert(buffer.count <= capacity);
            if (buffer.count == capacity) return false;
            time.encode(buffer.bytes[@as(usize, buffer.count) * entry_size ..][0..entry_size]);
            buffer.count += 1;
            return true;
        }

        pub fn isFull(buffer: *const Buffer) bool {
            return buffer.count == capacity;
        }

        pub fn view(buffer: *const Buffer) FetchTimes.Reads {
            return .{ .bytes = buffer.bytes[0 .. @as(usize, buffer.count) * entry_size] };
        }
    };
}

pub fn parse(bytes: []const u8) error{WrongSize}!FetchTimes {
    const body = bytes[header_size..];
    if (body.len == 0 or body.len % entry_size != 0) return error.WrongSize;
    if (body.len / entry_size > reads_max) return error.WrongSize;
    return .{ .reads = .{ .bytes = body } };
}

/// The header is written already.
pub fn emit(times: FetchTimes, out: []u8) []u8 {
    assert(times.reads.count() > 0 and times.reads.count() <= reads_max);
    const size = header_size + times.reads.bytes.len;
    @memcpy(out[header_size..size], times.reads.bytes);
    return out[0..size];
}

const testing = std.testing;

test "a buffer takes as many reads as it has capacity for, and gives them back in order" {
    var buffer: FetchTimeBuffer(2) = .{};
    try testing.expectEqual(0, buffer.view().count());
    const first: FetchTime = .{ .request_id = 7, .fetch_us = 900 };
    const second: FetchTime = .{ .request_id = std.math.maxInt(u32), .fetch_us = 0 };
    try testing.expect(buffer.append(first));
    try testing.expect(!buffer.isFull());
    try testing.expect(buffer.append(second));
    try testing.expect(buffer.isFull());
    try testing.expect(!buffer.append(first));
    try testing.expectEqual(2, buffer.view().count());
    try testing.expectEqual(first, buffer.view().at(0));
    try testing.expectEqual(second, buffer.view().at(1));
}
