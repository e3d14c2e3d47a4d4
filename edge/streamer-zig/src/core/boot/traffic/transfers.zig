//! The files that a device loads before its stream, each with the time and the bytes that it took
//! (`transfers` in packages/proto/UPLINK.md). Fed by the agent's TFTP and HTTP; bounded, and files
//! beyond the limit are counted. It explains, and decides nothing. Names come from the network.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const Transfers = @This();

pub const count_max = 24;
/// Loaders probe for files that need not exist, and anybody can: they take no more slots than that.
const missing_max = count_max / 3;
/// The index of a file that has no slot.
pub const none = std.math.maxInt(u8);

pub const Protocol = enum(u8) { tftp, http };

pub const Outcome = enum(u8) {
    done,
    /// The device stopped acknowledging.
    timeout,
    /// The device ended it with an error.
    refused,
    /// Its file could not be read, or the device requested another one instead.
    aborted,
    not_found,
};

/// All requests of one file by one protocol.
pub const Transfer = struct {
    /// Its first 64 bytes.
    name: base.UntrustedText,
    protocol: Protocol,
    /// µs since the boot's start: the first request, and the last packet that was counted.
    start_us: u64,
    last_us: u64,
    /// Of the file; what was sent twice counts once.
    bytes: u64 = 0,
    /// Blocks of TFTP, or segments of TCP.
    retransmitted: u32 = 0,
    requests: u32 = 1,
    /// Of the last request by TFTP, in bytes; 0 before its first block, and after a restart.
    block_size: u16 = 0,
    /// Of the last request; null while it runs, and if its end was never observed.
    outcome: ?Outcome = null,
};

pub const Progress = struct {
    bytes: u64 = 0,
    retransmitted: u64 = 0,
    block_size: u16 = 0,
    outcome: ?Outcome = null,
};

slots: [count_max]?Transfer = @splat(null),
/// Requests of files that had no slot.
left_out: u32 = 0,

/// Returns the file's index for `onProgress`, or `none`.
pub fn onRequest(
    transfers: *Transfers,
    at_us: u64,
    protocol: Protocol,
    name: []const u8,
) u8 {
    const text: base.UntrustedText = .init(name);
    for (&transfers.slots, 0..) |*slot, index| if (slot.*) |*known| {
        if (known.protocol != protocol or !known.name.eql(&text)) continue;
        known.requests +|= 1;
        known.last_us = @max(known.last_us, at_us);
        known.outcome = null;
        return @intCast(index);
    } else {
        slot.* = .{ .name = text, .protocol = protocol, .start_us = at_us, .last_us = at_us };
        assert(slot.*.?.last_us >= slot.*.?.start_us);
        return @intCast(index);
    };
    transfers.left_out +|= 1;
    return none;
}

/// A file was requested that does not exist.
pub fn onMissing(transfers: *Transfers, at_us: u64, protocol: Protocol, name: []const u8) void {
    var missing: u32 = 0;
    for (transfers.slots) |slot| {
        const known = slot orelse continue;
        missing += @intFromBool(known.outcome == .not_found);
    }
    assert(missing <= count_max);
    if (missing >= missing_max) {
        transfers.left_out +|= 1;
        return;
    }
    const index = transfers.onRequest(at_us, protocol, name);
    transfers.onProgress(index, at_us, .{ .outcome = .not_found });
}

/// Ignores an index without a file.
pub fn onProgress(transfers: *Transfers, index: u8, at_us: u64, progress: Progress) void {
    if (index >= count_max) return;
    const known = if (transfers.slots[index]) |*value| value else return;
    known.last_us = @max(known.last_us, at_us);
    known.bytes +|= progress.bytes;
    known.retransmitted +|= std.math.cast(u32, progress.retransmitted) orelse
        std.math.maxInt(u32);
    if (progress.block_size > 0) known.block_size = progress.block_size;
    known.outcome = progress.outcome orelse known.outcome;
    assert(known.last_us >= known.start_us);
}

pub fn count(transfers: *const Transfers) u8 {
    for (&transfers.slots, 0..) |*slot, index| if (slot.* == null) return @intCast(index);
    return count_max;
}

/// Name, protocol, start, last packet, bytes, retransmitted, requests, outcome (`none` without).
const Kept = struct { []const u8, u8, u64, u64, u64, u32, u32, u8 };

/// Short: the journal writes it again with each change of the boot.
pub fn jsonStringify(transfers: Transfers, json: anytype) !void {
    try json.beginArray();
    try json.write(transfers.left_out);
    for (&transfers.slots) |*slot| {
        const known = if (slot.*) |*value| value else break;
        const outcome = if (known.outcome) |outcome| @backingInt(outcome) else none;
        const kept: Kept = .{
            known.name.slice(), @backingInt(known.protocol),
            known.start_us,     known.last_us,
            known.bytes,        known.retransmitted,
            known.requests,     outcome,
        };
        try json.write(kept);
    }
    try json.endArray();
}

pub fn jsonParse(
    allocator: std.mem.Allocator,
    source: anytype,
    options: std.json.ParseOptions,
) !Transfers {
    if (.array_begin != try source.next()) return error.UnexpectedToken;
    var transfers: Transfers = .{
        .left_out = try std.json.innerParse(u32, allocator, source, options),
    };
    for (&transfers.slots) |*slot| {
        if (try source.peekNextTokenType() == .array_end) break;
        const kept = try std.json.innerParse(Kept, allocator, source, options);
        const protocol = std.enums.fromInt(Protocol, kept[1]) orelse return error.InvalidEnumTag;
        if (kept[3] < kept[2]) return error.InvalidNumber;
        slot.* = .{
            .name = .init(kept[0]),
            .protocol = protocol,
            .start_us = kept[2],
            .last_us = kept[3],
            .bytes = kept[4],
            .retransmitted = kept[5],
            .requests = kept[6],
            .outcome = if (kept[7] == none) null else std.enums.fromInt(Outcome, kept[7]) orelse
                return error.InvalidEnumTag,
        };
    }
    if (.array_end != try source.next()) return error.UnexpectedToken;
    return transfers;
}

const testing = std.testing;

test "each file counts once, whatever number of requests it takes" {
    var transfers: Transfers = .{};
    const kernel = transfers.onRequest(100, .http, "kernel");
    const other = transfers.onRequest(150, .tftp, "kernel");
    try testing.expect(kernel != other);
    transfers.onProgress(kernel, 300, .{ .bytes = 1000, .retransmitted = 2 });
    transfers.onProgress(kernel, 240, .{ .block_size = 1468 });
    transfers.onProgress(kernel, 250, .{ .bytes = 24, .outcome = .done });
    try testing.expectEqual(Outcome.done, transfers.slots[kernel].?.outcome.?);
    try testing.expectEqual(kernel, transfers.onRequest(400, .http, "kernel"));
    const known = transfers.slots[kernel].?;
    try testing.expectEqual(null, known.outcome);
    try testing.expectEqual(2, known.requests);
    try testing.expectEqual(1024, known.bytes);
    try testing.expectEqual(1468, known.block_size);
    try testing.expectEqual(2, known.retransmitted);
    try testing.expectEqual(100, known.start_us);
    try testing.expectEqual(400, known.last_us);
    try testing.expectEqual(2, transfers.count());
}

test "files beyond the limit are counted, and missing ones leave slots for others" {
    var transfers: Transfers = .{};
    var buffer: [16]u8 = undefined;
    for (0..100) |index| transfers.onMissing(
        index,
        .tftp,
        try std.mem.print(&buffer, "probe{d}", .{index}),
    );
    try testing.expectEqual(missing_max, transfers.count());
    try testing.expectEqual(100 - missing_max, transfers.left_out);
    transfers.left_out = 0;
    for (0..count_max) |index| {
        const name = try std.mem.print(&buffer, "file{d}", .{index});
        const is_kept = transfers.onRequest(index, .tftp, name) != none;
        try testing.expectEqual(index < count_max - missing_max, is_kept);
    }
    try testing.expectEqual(missing_max, transfers.left_out);
    const before = transfers;
    transfers.onProgress(none, 5, .{ .bytes = 1 });
    try testing.expectEqualDeep(before, transfers);
}

test "a journal gives back every file, and refuses what none wrote" {
    var transfers: Transfers = .{ .left_out = 7 };
    var buffer: [16]u8 = undefined;
    for (0..count_max) |index| {
        const name = try std.mem.print(&buffer, "a\"\\\x1b{d}", .{index});
        const slot = transfers.onRequest(index, .tftp, name);
        transfers.onProgress(slot, 9, .{ .bytes = index, .outcome = .timeout });
    }
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const text = try std.json.Stringify.valueAlloc(arena.allocator(), transfers, .{});
    const parsed = try std.json.parseFromSliceLeaky(Transfers, arena.allocator(), text, .{});
    try testing.expectEqualDeep(transfers, parsed);
    const damaged = [_][]const u8{
        "[0,[\"a\",9,1,2,0,0,1,255]]",
        "[0,[\"a\",0,2,1,0,0,1,255]]",
        "[0,[\"a\",0,1,2,0,0,1,99]]",
        "{}",
    };
    for (damaged) |each| {
        const result = std.json.parseFromSliceLeaky(Transfers, arena.allocator(), each, .{});
        try testing.expect(std.meta.isError(result));
    }
}
