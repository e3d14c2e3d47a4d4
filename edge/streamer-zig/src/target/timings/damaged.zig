//! Inputs for the tests of this folder's parsers: valid except for a few bytes.

const base = @import("base");

/// Changes up to 8 bytes of `bytes`, to any value or to one of `likely`.
pub fn damage(prng: *base.Prng, bytes: []u8, likely: []const u8) void {
    if (bytes.len == 0) return;
    for (0..prng.between(1, 8)) |_| {
        const value =
            if (prng.chance(1, 2)) prng.pick(u8, likely) else @as(u8, @truncate(prng.nextU32()));
        bytes[prng.below(bytes.len)] = value;
    }
}
