//! When a device leaves an edge whose store does not give it a read (packages/proto/STREAM.md,
//! "Fail-over"): an edge with a damaged block, or a dead disk, answers everything else, so that
//! silence never shows it. Pure: it counts and decides.

const std = @import("std");
const assert = std.debug.assert;

pub const StoreErrors = @This();

/// The device leaves as soon as it may.
is_due: bool = false,
/// Until then it asks the edge that it has, if it has been at all the others.
not_before_us: u64 = 0,
interval_us: u64 = interval_us_first,

/// So many answers to one read within the time below, each to another request.
const count_max = 3;
const window_us = 2 * std.time.us_per_s;
/// From one departure to the next one for an edge that it has left, doubled with each.
const interval_us_first = 10 * std.time.us_per_s;
const interval_us_max = 5 * std.time.us_per_min;

/// The errors of one read at one edge.
pub const OfRead = struct {
    count: u8 = 0,
    first_us: u64 = 0,
    /// The request that the latest one answers.
    attempt: u16 = 0,
};

pub fn onError(errors: *StoreErrors, now_us: u64, of_read: *OfRead, attempt: u16) void {
    // The network may deliver an answer twice.
    if (of_read.count > 0 and attempt == of_read.attempt) return;
    if (of_read.count == 0 or now_us -| of_read.first_us > window_us)
        of_read.* = .{ .first_us = now_us };
    of_read.count += 1;
    of_read.attempt = attempt;
    if (of_read.count < count_max) return;
    of_read.count = 0;
    errors.is_due = true;
}

/// Some edge gave a read that another one did not.
pub fn onRead(errors: *StoreErrors) void {
    errors.* = .{};
}

/// Where the device may go: to an edge whose store has not failed it lately, only to those that
/// have, or nowhere.
pub const Others = enum { able, unable, none };

/// Returns when the device leaves; null: it does not.
pub fn departsAt(errors: *const StoreErrors, others: Others) ?u64 {
    if (!errors.is_due) return null;
    return switch (others) {
        .able => 0,
        .unable => errors.not_before_us,
        .none => null,
    };
}

/// Tells whether the device leaves now.
pub fn takeDeparture(errors: *StoreErrors, now_us: u64, others: Others) bool {
    if (now_us < errors.departsAt(others) orelse return false) return false;
    errors.is_due = false;
    if (others == .unable) errors.interval_us = @min(2 * errors.interval_us, interval_us_max);
    errors.not_before_us = now_us + errors.interval_us;
    assert(errors.not_before_us > now_us);
    return true;
}

const testing = std.testing;

test "three errors of one read within two seconds, each of another request, are a reason to leave" {
    const second = std.time.us_per_s;
    var errors: StoreErrors = .{};
    var read: OfRead = .{};
    for ([_]u64{ 1, 2 }) |attempt| errors.onError(attempt, &read, @intCast(attempt));
    // Copies of the last answer.
    for (0..5) |_| errors.onError(3, &read, 2);
    try testing.expect(!errors.takeDeparture(3, .able));
    errors.onError(2 * second + 1, &read, 3);
    try testing.expect(errors.takeDeparture(2 * second + 1, .able));
    try testing.expect(!errors.takeDeparture(2 * second + 1, .able));
    // Slower ones are not.
    errors = .{};
    for (0..20) |step| {
        errors.onError(step * (second + 1), &read, @intCast(step));
        try testing.expect(!errors.takeDeparture(step * (second + 1), .able));
    }
}

test "a device that no edge gives the read leaves less and less often, and at once after one did" {
    const second = std.time.us_per_s;
    var errors: StoreErrors = .{};
    var now_us: u64 = 7;
    var others: Others = .able;
    for ([_]u64{ 10, 20, 40, 80, 160, 300, 300 }) |interval_s| {
        errors.is_due = true;
        try testing.expect(errors.takeDeparture(now_us, others));
        others = .unable;
        errors.is_due = true;
        now_us += interval_s * second;
        try testing.expectEqual(now_us, errors.departsAt(.unable));
        try testing.expect(!errors.takeDeparture(now_us - 1, .unable));
    }
    // It has not been at this one.
    try testing.expect(errors.takeDeparture(now_us - 1, .able));
    errors.onRead();
    errors.is_due = true;
    // Nobody else can take it.
    try testing.expect(!errors.takeDeparture(now_us, .none));
    try testing.expectEqual(null, errors.departsAt(.none));
    try testing.expect(errors.takeDeparture(now_us, .unable));
}
