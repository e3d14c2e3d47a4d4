//! Seals fragments into packets of one session, each under a number that no other packet of its
//! slot has. Valid until the next call of the server.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const stream_seal = @import("../seal.zig");
const StreamServer = @import("server.zig");
const assert = std.debug.assert;
const Sealer = @This();

session: *StreamServer.Session,
/// Reserved counters that are not used yet.
counter: u64 = 0,
counters_left: u64 = 0,

/// Reserves the counters of the next packets together.
pub fn reserve(own: *Sealer, count: u64) void {
    assert(count > 0);
    own.counter = own.session.takeCounters(count);
    own.counters_left = count;
}

/// The last `count` packets that were sealed are not sent: their numbers stay unused.
pub fn skip(own: *Sealer, count: u64) void {
    assert(count > 0);
    _ = @atomicRmw(u64, &own.session.counter.skipped, .Add, count, .monotonic);
}

/// Returns the device's current address.
pub fn to(own: *const Sealer) base.Endpoint {
    return own.session.from;
}

/// `out` holds a header, the payload and a tag.
pub fn seal(
    own: *Sealer,
    header: *const [wire.header_size]u8,
    payload: []const u8,
    out: []u8,
) []const u8 {
    if (own.counters_left == 0) own.reserve(1);
    defer own.counter += 1;
    assert(own.counters_left > 0);
    own.counters_left -= 1;
    return stream_seal.sealFragment(&own.session.from_edge, own.counter, header, payload, out);
}
