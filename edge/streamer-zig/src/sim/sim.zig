//! Module `sim`: the fake world. Real core machines over a fake network, disk and clock, from one seed; it never imports
//! host.

pub const World = @import("world.zig");
pub const Plant = @import("plant.zig").Plant;

test {
    _ = World;
    _ = @import("network.zig");
}
