//! The faults of a network link, drawn from the seed; `healed` is those of a quiet LAN.

const std = @import("std");
const base = @import("base");

pub const Faults = struct {
    loss_per_mille: u32 = 0,
    duplicate_per_mille: u32 = 0,
    /// A bit is flipped; the receiver's UDP checksum detects it, and the packet is dropped.
    corrupt_per_mille: u32 = 0,
    /// Delayed by up to `hold_us`, so that others overtake it.
    reorder_per_mille: u32 = 0,
    hold_us: u64 = 0,
    /// Packets that another device receives too, as after an address has passed to it.
    stray_per_mille: u32 = 0,
    delay_us: u64 = 100,
    jitter_us: u64 = 0,
    /// Rate of the link, in each direction.
    bits_per_us: u64 = 1000,
    /// A switch drops packets that would wait longer.
    queue_us_max: u64 = 20_000,

    /// One link in three is quiet, one is bad, one is very bad.
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

    /// Returns whether every packet arrives once, in order.
    pub fn isQuiet(faults: *const Faults) bool {
        return faults.loss_per_mille == 0 and faults.duplicate_per_mille == 0 and
            faults.corrupt_per_mille == 0 and faults.reorder_per_mille == 0 and
            faults.jitter_us == 0;
    }

    /// Returns the same link without faults.
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
