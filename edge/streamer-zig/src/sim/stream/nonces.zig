//! Which counters each key of the stream's proof has sealed packets under: one that comes twice would be a nonce used twice. Whoever has a
//! key for sending counts up, and sends what it has sealed nearly in that order; so the last ones of each key are enough.

const std = @import("std");
const Invariants = @import("invariants.zig");

pub const StreamNonces = @This();

const places_max = 4096;

places: [places_max]Place = @splat(.{}),
count: u32 = 0,

const Place = struct {
    /// The begin of a key, which is random; 0: free.
    key: u64 = 0,
    /// The highest, and which of those below it have been: bit i is that of i + 1 less.
    counter: u64 = 0,
    below: u64 = 0,

    fn goOn(place: *Place, counter: u64) void {
        const step = counter - place.counter;
        place.below = if (step > 64) 0 else if (step == 64) 1 << 63 else place.below << @intCast(step) | @as(u64, 1) << @intCast(step - 1);
        place.counter = counter;
    }
};

pub fn clear(nonces: *StreamNonces) void {
    nonces.places = @splat(.{});
    nonces.count = 0;
}

/// A packet was sealed with this key.
pub fn note(nonces: *StreamNonces, invariants: *Invariants, key_bytes: *const [32]u8, counter: u64) void {
    const key = std.mem.readInt(u64, key_bytes[0..8], .little) | 1;
    var index: usize = @intCast(key >> 52);
    while (nonces.places[index].key != 0) : (index = (index + 1) % places_max) {
        const place = &nonces.places[index];
        if (place.key != key) continue;
        if (counter > place.counter) return place.goOn(counter);
        const behind = place.counter - counter;
        if (behind == 0 or behind > 64 or place.below >> @intCast(behind - 1) & 1 == 1)
            return invariants.violate(.nonce_once, "a key seals under {d} after it has under {d}", .{ counter, place.counter });
        place.below |= @as(u64, 1) << @intCast(behind - 1);
        return;
    }
    // Of keys that find no place nothing is told.
    if (nonces.count == places_max / 2) return;
    nonces.count += 1;
    nonces.places[index] = .{ .key = key, .counter = counter };
}

test "a counter that comes again is found, with another key it is another nonce" {
    var nonces: StreamNonces = .{};
    var invariants: Invariants = .{};
    const one: [32]u8 = @splat(1);
    const other: [32]u8 = @splat(2);
    nonces.note(&invariants, &one, 1);
    nonces.note(&invariants, &other, 1);
    nonces.note(&invariants, &one, 4);
    nonces.note(&invariants, &one, 2);
    nonces.note(&invariants, &one, 3);
    nonces.note(&invariants, &one, 90);
    nonces.note(&invariants, &one, 40);
    try std.testing.expectEqual(null, invariants.violation);
    for ([_]u64{ 90, 40, 4 }) |again| {
        invariants.violation = null;
        nonces.note(&invariants, &one, again);
        try std.testing.expectEqual(.nonce_once, invariants.violation.?.check);
    }
}
