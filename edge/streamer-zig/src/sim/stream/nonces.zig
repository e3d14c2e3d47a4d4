//! The counters under which each key has sealed packets: a counter that repeats is a nonce used
//! twice. A sender counts up and sends nearly in that order, so the last counters of each key are
//! enough.

const std = @import("std");
const Invariants = @import("invariants.zig");

pub const Nonces = @This();

const slots_max = 4096;

slots: [slots_max]Slot = @splat(.{}),
count: u32 = 0,

const Slot = struct {
    /// The first bytes of a key, which are random; 0: free.
    key: u64 = 0,
    /// The highest counter, and which of those below it were used: bit i is that of i + 1 less.
    counter: u64 = 0,
    below: u64 = 0,

    fn advance(slot: *Slot, counter: u64) void {
        const step = counter - slot.counter;
        const shifted = if (step >= 64) 0 else slot.below << @intCast(step);
        const last = if (step > 64) 0 else @as(u64, 1) << @intCast(step - 1);
        slot.below = shifted | last;
        slot.counter = counter;
    }
};

/// Records a packet that was sealed with this key.
pub fn note(
    nonces: *Nonces,
    invariants: *Invariants,
    key_bytes: *const [32]u8,
    counter: u64,
) void {
    const key = std.mem.readInt(u64, key_bytes[0..8], .little) | 1;
    var index: usize = @intCast(key >> 52);
    while (nonces.slots[index].key != 0) : (index = (index + 1) % slots_max) {
        const slot = &nonces.slots[index];
        if (slot.key != key) continue;
        if (counter > slot.counter) return slot.advance(counter);
        const behind = slot.counter - counter;
        if (behind == 0 or behind > 64 or slot.below >> @intCast(behind - 1) & 1 == 1)
            return invariants.violate(
                .nonce_once,
                "a key seals under {d} after it has sealed under {d}",
                .{ counter, slot.counter },
            );
        slot.below |= @as(u64, 1) << @intCast(behind - 1);
        return;
    }
    // Keys beyond the capacity are not checked.
    if (nonces.count == slots_max / 2) return;
    nonces.count += 1;
    nonces.slots[index] = .{ .key = key, .counter = counter };
}

test "a counter that repeats is found; with another key it is another nonce" {
    var nonces: Nonces = .{};
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
