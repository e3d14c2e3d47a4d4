//! How badly a network treats its packets. Drawn from the seed; `healed` is a quiet LAN.

const std = @import("std");
const base = @import("base");

pub const Faults = struct {
    loss_per_mille: u32 = 0,
    duplicate_per_mille: u32 = 0,
    /// A bit is flipped; the UDP checksum of the receiver finds it and drops the packet.
    corrupt_per_mille: u32 = 0,
    /// Held back by up to `hold_us`, so that others overtake it.
    reorder_per_mille: u32 = 0,
    hold_us: u64 = 0,
    /// Fragments that come to the next device as well, as they do when an address has passed from one to the other.
    stray_per_mille: u32 = 0,
    delay_us: u64 = 100,
    jitter_us: u64 = 0,
    /// Of the edge's own link, in each direction.
    bits_per_us: u64 = 1000,
    /// Packets that would have to wait longer in a switch are dropped.
    queue_us_max: u64 = 20_000,

    /// One link in three is worse than bad, one is quiet.
    pub fn draw(prng: *base.Prng) Faults {
        const quiet: Faults = .{
            .delay_us = prng.between(20, 2_000),
            .jitter_us = prng.below(200),
            .bits_per_us = prng.pick(u64, &.{ 200, 1000, 1000, 10_000 }),
        };
        var faults = quiet;
        switch (prng.below(3)) {
            0 => {},
            1 => {
                faults.loss_per_mille = @intCast(prng.between(1, 60));
                faults.duplicate_per_mille = @intCast(prng.below(30));
                faults.corrupt_per_mille = @intCast(prng.below(20));
                faults.reorder_per_mille = @intCast(prng.below(100));
                faults.stray_per_mille = @intCast(prng.below(200));
            },
            else => {
                faults.loss_per_mille = @intCast(prng.between(60, 300));
                faults.duplicate_per_mille = @intCast(prng.below(200));
                faults.corrupt_per_mille = @intCast(prng.below(50));
                faults.reorder_per_mille = @intCast(prng.below(300));
                faults.stray_per_mille = @intCast(prng.below(100));
            },
        }
        faults.hold_us = prng.between(10, 30_000);
        faults.jitter_us = prng.below(5_000);
        return faults;
    }

    /// Whether what is sent comes, once, in its order.
    pub fn isQuiet(faults: *const Faults) bool {
        return faults.loss_per_mille == 0 and faults.duplicate_per_mille == 0 and faults.corrupt_per_mille == 0 and
            faults.reorder_per_mille == 0 and faults.jitter_us == 0;
    }

    /// The same link when everything is well again.
    pub fn healed(faults: *const Faults) Faults {
        return .{ .delay_us = faults.delay_us, .bits_per_us = faults.bits_per_us };
    }
};

test "a healed link loses nothing and a drawn one stays within the limits" {
    var prng: base.Prng = .init(1);
    for (0..1000) |_| {
        const faults: Faults = .draw(&prng);
        try std.testing.expect(faults.loss_per_mille <= 300);
        try std.testing.expectEqual(0, faults.healed().loss_per_mille);
        try std.testing.expectEqual(0, faults.healed().duplicate_per_mille);
    }
}
