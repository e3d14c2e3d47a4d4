//! The stream client's part of ACCOUNT (packages/proto/STREAM.md): the newest part until it is
//! acknowledged. An edge that knows no accounts never answers, so it is not sent forever, and a
//! wait for it says nothing about the edge.

const std = @import("std");
const wire = @import("wire").stream;
const RttEstimator = @import("../congestion/rtt.zig");
const assert = std.debug.assert;

pub const AccountPart = @This();

const transmissions_max = 8;

kind: wire.AccountKind = .block_trace,
part: u16 = 0,
is_last: bool = false,
bytes: [wire.account_part_size_max]u8 = undefined,
/// 0: there is none.
size: u16 = 0,
request_id: u32 = 0,
sent_count: u8 = 0,
due_at_us: u64 = 0,
timeout_us: u64 = 0,

pub fn set(
    state: *AccountPart,
    now_us: u64,
    request_id: u32,
    part: wire.Account,
    timeout_us: u64,
) void {
    assert(part.bytes.len > 0 and part.bytes.len <= wire.account_part_size_max);
    assert(timeout_us > 0);
    state.* = .{
        .kind = part.kind,
        .part = part.part,
        .is_last = part.is_last,
        .size = @intCast(part.bytes.len),
        .request_id = request_id,
        .due_at_us = now_us,
        .timeout_us = timeout_us,
    };
    @memcpy(state.bytes[0..part.bytes.len], part.bytes);
}

/// Returns when ACCOUNT is sent next; null: there is nothing to send.
pub fn dueAt(state: *const AccountPart) ?u64 {
    return if (state.size == 0) null else state.due_at_us;
}

/// Returns the part when it is due.
pub fn transmit(state: *AccountPart, now_us: u64) ?wire.Account {
    if (state.size == 0 or now_us < state.due_at_us) return null;
    assert(state.timeout_us > 0);
    assert(state.sent_count <= transmissions_max);
    if (state.sent_count == transmissions_max) {
        state.size = 0;
        return null;
    }
    state.sent_count += 1;
    state.due_at_us = now_us + state.timeout_us;
    state.timeout_us = @min(state.timeout_us * 2, RttEstimator.rto_us_max);
    return .{
        .kind = state.kind,
        .part = state.part,
        .is_last = state.is_last,
        .bytes = state.bytes[0..state.size],
    };
}

/// Returns false if the part was acknowledged before, or another one waits.
pub fn acknowledge(state: *AccountPart, request_id: u32) bool {
    assert(state.size <= wire.account_part_size_max);
    if (state.size == 0 or state.request_id != request_id) return false;
    state.size = 0;
    return true;
}

test "a part is sent until it is acknowledged, and not forever" {
    const testing = std.testing;
    var state: AccountPart = .{};
    const part: wire.Account =
        .{ .kind = .units, .part = 3, .is_last = true, .bytes = "bytes" };
    try testing.expectEqual(null, state.dueAt());
    state.set(100, 7, part, 10);
    try testing.expectEqual(null, state.transmit(99));
    try testing.expectEqualDeep(part, state.transmit(100).?);
    try testing.expectEqual(null, state.transmit(109));
    try testing.expectEqualDeep(part, state.transmit(110).?);
    try testing.expect(!state.acknowledge(6));
    try testing.expect(state.acknowledge(7));
    try testing.expect(!state.acknowledge(7));
    try testing.expectEqual(null, state.dueAt());
    state.set(100, 8, part, 10);
    var count: u32 = 0;
    while (state.dueAt()) |at| count += @intFromBool(state.transmit(at) != null);
    try testing.expectEqual(transmissions_max, count);
}
