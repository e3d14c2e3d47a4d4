//! A deterministic random source: the same seed gives the same numbers on every machine. Only u32
//! and u64 are drawn, since `usize` draws differ between 32 and 64 bits. It is for tests,
//! simulation and jitter, never for keys.

const std = @import("std");
const assert = std.debug.assert;

pub const Prng = @This();

state: std.Random.Xoshiro256,

pub fn init(seed: u64) Prng {
    return .{ .state = .init(seed) };
}

pub fn nextU64(prng: *Prng) u64 {
    return prng.state.next();
}

pub fn nextU32(prng: *Prng) u32 {
    return @truncate(prng.state.next() >> 32);
}

/// A number in [0, limit); limit is not 0.
pub fn below(prng: *Prng, limit: u64) u64 {
    assert(limit > 0);
    return prng.state.random().uintLessThan(u64, limit);
}

/// A number in [first, last].
pub fn between(prng: *Prng, first: u64, last: u64) u64 {
    assert(first <= last);
    return prng.state.random().intRangeAtMost(u64, first, last);
}

/// True `numerator` times out of `denominator`.
pub fn chance(prng: *Prng, numerator: u64, denominator: u64) bool {
    assert(numerator <= denominator);
    return prng.below(denominator) < numerator;
}

pub fn fill(prng: *Prng, buffer: []u8) void {
    prng.state.random().bytes(buffer);
}

/// Picks an item of a slice that is not empty.
pub fn pick(prng: *Prng, comptime T: type, items: []const T) T {
    return items[@intCast(prng.below(items.len))];
}

const testing = std.testing;

test "the same seed always gives the same numbers" {
    var prng: Prng = .init(42);
    var again: Prng = .init(42);
    for (0..100) |_| try testing.expectEqual(prng.nextU64(), again.nextU64());
    var pinned: Prng = .init(1);
    try testing.expectEqual(pinned_first_of_seed_1, pinned.nextU64());
}

/// xoshiro256++ seeded by splitmix64; a change of the algorithm would invalidate every recorded
/// seed.
const pinned_first_of_seed_1: u64 = 14971601782005023387;

test "numbers stay within their limits" {
    var prng: Prng = .init(7);
    for (0..1000) |_| {
        try testing.expect(prng.below(3) < 3);
        const number = prng.between(5, 9);
        try testing.expect(number >= 5);
        try testing.expect(number <= 9);
    }
    try testing.expect(prng.chance(1, 1));
    try testing.expect(!prng.chance(0, 1));
}
