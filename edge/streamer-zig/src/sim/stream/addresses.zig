//! What each address has sent to an edge and received from it: checks that an address gets no more
//! than it sent before it has shown that it receives the edge's packets.

const std = @import("std");
const base = @import("base");
const Endpoint = base.Endpoint;

pub const Addresses = @This();

const entries_max = 2048;

entries: [entries_max]Entry = @splat(.{}),
count: u32 = 0,
/// Addresses beyond the capacity are not checked.
rest: Entry = .{ .was_reached = true, .is_proved = true },

pub const Entry = struct {
    /// 0: free.
    key: u48 = 0,
    /// Counted since the edge's process started.
    bytes_in: u64 = 0,
    bytes_out: u64 = 0,
    /// A packet of this process of the edge has arrived here.
    was_reached: bool = false,
    /// A session was opened or resumed from here.
    is_proved: bool = false,
};

pub fn of(addresses: *Addresses, endpoint: Endpoint) *Entry {
    const key = endpoint.toInt();
    var index: usize = @intCast((@as(u64, key) *% 0x9e3779b97f4a7c15) >> 53);
    while (addresses.entries[index].key != 0) {
        if (addresses.entries[index].key == key) return &addresses.entries[index];
        index = (index + 1) % entries_max;
    }
    if (addresses.count == entries_max / 2) return &addresses.rest;
    addresses.count += 1;
    addresses.entries[index] = .{ .key = key };
    return &addresses.entries[index];
}

/// The next process of the edge has reached nobody.
pub fn clear(addresses: *Addresses) void {
    addresses.entries = @splat(.{});
    addresses.count = 0;
}
