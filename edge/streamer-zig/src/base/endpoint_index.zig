//! Finds a table's slot by its endpoint, in constant time and fixed memory: open addressing with
//! linear probing, at most half full. The seed keeps attackers who choose their addresses from
//! choosing their slots.

const std = @import("std");
const Endpoint = @import("addresses.zig").Endpoint;
const untouched = @import("untouched.zig");
const assert = std.debug.assert;

pub const EndpointIndex = @This();

/// `free_key` where a slot is free; no endpoint has address 0.0.0.0 and port 0.
keys: []u48,
values: []u16,
seed: u64,
count: u32 = 0,

const free_key: u48 = 0;

/// For at most `entries_max` endpoints.
pub fn init(gpa: std.mem.Allocator, entries_max: u32, seed: u64) error{OutOfMemory}!EndpointIndex {
    assert(entries_max > 0 and entries_max <= std.math.maxInt(u16));
    const size = std.math.ceilPowerOfTwoAssert(u32, 2 * entries_max);
    const keys = try untouched.allocZeroed(gpa, u48, free_key, size);
    errdefer untouched.freeZeroed(gpa, u48, keys);
    const values = try untouched.allocUntouched(gpa, u16, size);
    return .{ .keys = keys, .values = values, .seed = seed };
}

pub fn deinit(index: *EndpointIndex, gpa: std.mem.Allocator) void {
    untouched.freeZeroed(gpa, u48, index.keys);
    untouched.freeUntouched(gpa, u16, index.values);
    index.* = undefined;
}

pub fn get(index: *const EndpointIndex, endpoint: Endpoint) ?u16 {
    const key = endpoint.toInt();
    if (key == free_key) return null;
    const place = index.placeOf(key);
    return if (index.keys[place] == key) index.values[place] else null;
}

/// The endpoint must not have an entry.
pub fn put(index: *EndpointIndex, endpoint: Endpoint, value: u16) void {
    const key = endpoint.toInt();
    assert(key != free_key);
    assert(2 * (index.count + 1) <= index.keys.len);
    const place = index.placeOf(key);
    assert(index.keys[place] == free_key);
    index.keys[place] = key;
    index.values[place] = value;
    index.count += 1;
}

/// The endpoint must have an entry.
pub fn remove(index: *EndpointIndex, endpoint: Endpoint) void {
    var hole = index.placeOf(endpoint.toInt());
    assert(index.keys[hole] == endpoint.toInt());
    index.count -= 1;
    // Displaced entries behind the hole move up, so that no search ends too early.
    var place = index.after(hole);
    while (index.keys[place] != free_key) : (place = index.after(place)) {
        const home = index.homeOf(index.keys[place]);
        const mask = index.keys.len - 1;
        if (((place -% home) & mask) < ((place -% hole) & mask)) continue;
        index.keys[hole] = index.keys[place];
        index.values[hole] = index.values[place];
        hole = place;
    }
    index.keys[hole] = free_key;
}

/// Returns where the key is, or would be put.
fn placeOf(index: *const EndpointIndex, key: u48) usize {
    var place = index.homeOf(key);
    while (index.keys[place] != free_key and index.keys[place] != key) place = index.after(place);
    return place;
}

fn homeOf(index: *const EndpointIndex, key: u48) usize {
    return @intCast(mix(key, index.seed) & (index.keys.len - 1));
}

fn after(index: *const EndpointIndex, place: usize) usize {
    return (place + 1) & (index.keys.len - 1);
}

/// Every bit of the result depends on every bit of both (the finalizer of SplitMix64 between two
/// keys).
pub fn mix(key: u64, seed: u64) u64 {
    var bits = (key ^ seed) *% 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) *% 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) *% 0x94d049bb133111eb;
    return bits ^ (bits >> 31) ^ (seed >> 17);
}

const testing = std.testing;

test "inserted entries are found and removed ones are not, however they collide" {
    const Prng = @import("prng.zig");
    var prng: Prng = .init(7);
    var index: EndpointIndex = try .init(testing.allocator, 64, 3);
    defer index.deinit(testing.allocator);
    var model: [64]?Endpoint = @splat(null);
    for (0..20_000) |_| {
        const at: u16 = @intCast(prng.below(64));
        if (model[at]) |endpoint| {
            try testing.expectEqual(at, index.get(endpoint).?);
            if (prng.chance(1, 2)) {
                index.remove(endpoint);
                model[at] = null;
                try testing.expectEqual(null, index.get(endpoint));
            }
            continue;
        }
        const endpoint: Endpoint =
            .{ .ip = .fromInt(@intCast(1 + prng.below(40))), .port = @intCast(prng.below(8)) };
        if (index.get(endpoint)) |other| {
            try testing.expect(model[other].?.eql(endpoint));
            continue;
        }
        index.put(endpoint, at);
        model[at] = endpoint;
    }
    var count: u32 = 0;
    for (model) |known| count += @intFromBool(known != null);
    try testing.expectEqual(count, index.count);
}
