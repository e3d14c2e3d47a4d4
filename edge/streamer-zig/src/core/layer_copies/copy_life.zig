//! How long an edge keeps the copy of another edge's write layer. A copy may be all that is left of
//! a device's writes, so it goes only if its owner answers, and long after the last time that it
//! was renewed: an edge whose disk was replaced answers, too, that it has no layers. Pure.

const std = @import("std");

/// The answer of the layer's owner.
pub const Owner = enum {
    /// Not reachable, or no longer an edge of the site.
    silent,
    /// It has the layer, and this edge is to keep the copy.
    offers,
    /// It has no such layer, or another edge is to keep the copy.
    lacks,
};

pub const kept_ms = 30 * std.time.ms_per_day;

pub fn isKept(owner: Owner, moment_unix_ms: u64, now_unix_ms: u64) bool {
    return switch (owner) {
        .silent, .offers => true,
        // A clock that went back removes nothing.
        .lacks => now_unix_ms -| moment_unix_ms < kept_ms,
    };
}

const testing = std.testing;

test "a copy outlives a silent owner, and goes a month after it was last renewed otherwise" {
    for (std.enums.values(Owner)) |owner| {
        const is_lasting = owner == .silent or owner == .offers;
        try testing.expect(isKept(owner, 1000, 1000 + kept_ms - 1));
        try testing.expectEqual(is_lasting, isKept(owner, 1000, 1000 + kept_ms));
        try testing.expect(isKept(owner, 1000, 10));
    }
}
