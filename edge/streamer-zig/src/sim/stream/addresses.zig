//! What every address of a simulated network has sent to the edge and got from it, to see that nobody gets more than he sent before he has
//! shown that he receives what the edge sends him.

const std = @import("std");
const base = @import("base");
const Endpoint = base.Endpoint;

pub const StreamAddresses = @This();

const places_max = 2048;

places: [places_max]Place = @splat(.{}),
count: u32 = 0,
/// Of those that find no place: nothing is told of them.
rest: Place = .{ .was_reached = true, .is_proved = true },

pub const Place = struct {
    /// 0: free.
    key: u48 = 0,
    /// Of the edge's process that runs now; all sent in answer to what came from this address.
    bytes_in: u64 = 0,
    bytes_out: u64 = 0,
    /// Something of this process of the edge arrived here.
    was_reached: bool = false,
    /// A session was opened, or gone on with, from here.
    is_proved: bool = false,
};

pub fn of(addresses: *StreamAddresses, endpoint: Endpoint) *Place {
    const key = endpoint.toInt();
    var index: usize = @intCast((@as(u64, key) *% 0x9e3779b97f4a7c15) >> 53);
    while (addresses.places[index].key != 0) {
        if (addresses.places[index].key == key) return &addresses.places[index];
        index = (index + 1) % places_max;
    }
    if (addresses.count == places_max / 2) return &addresses.rest;
    addresses.count += 1;
    addresses.places[index] = .{ .key = key };
    return &addresses.places[index];
}

/// Another process of the edge knows nothing of whom this one has reached.
pub fn clear(addresses: *StreamAddresses) void {
    addresses.places = @splat(.{});
    addresses.count = 0;
}
