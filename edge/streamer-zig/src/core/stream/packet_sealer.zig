//! Seals fragments into packets, each under its own counter. Valid until the next call of the
//! server.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const stream_seal = @import("seal.zig");
const Session = @import("server/server.zig").Session;
const assert = std.debug.assert;
const Sealer = @This();

session: *Session,
/// Reserved counters that are not used yet.
counter: u64 = 0,
counters_left: u64 = 0,

/// Reserves the counters of the next packets together.
pub fn reserve(sealer: *Sealer, count: u64) void {
    assert(count > 0);
    sealer.counter = sealer.session.takeCounters(count);
    sealer.counters_left = count;
}

/// Returns the device's current address.
pub fn to(sealer: *const Sealer) base.Endpoint {
    return sealer.session.from;
}

/// `out` holds a header, the payload and a tag.
pub fn seal(
    sealer: *Sealer,
    header: *const [wire.header_size]u8,
    payload: []const u8,
    out: []u8,
) []const u8 {
    if (sealer.counters_left == 0) sealer.reserve(1);
    defer sealer.counter += 1;
    assert(sealer.counters_left > 0);
    sealer.counters_left -= 1;
    return stream_seal.sealFragment(
        &sealer.session.from_edge,
        sealer.counter,
        header,
        payload,
        out,
    );
}
