//! The simulations: the product's agent, core and store over a simulated network, clock and disk. One
//! thread, one seed; the same seed gives the same run. Must never import `host`.

pub const Attack = @import("site/attack.zig").Attack;
pub const World = @import("site/world.zig");
pub const Invariants = @import("site/invariants.zig");
pub const Reports = @import("site/reports.zig");
pub const Schedules = @import("site/schedules.zig");
pub const Mutant = @import("site/mutants.zig").Mutant;

test {
    _ = @import("kit/cookie_account.zig");
    _ = @import("site/attacker.zig");
    _ = @import("site/device_keys.zig");
    _ = @import("site/disk.zig");
    _ = @import("kit/faults.zig");
    _ = @import("kit/network.zig");
    _ = @import("kit/trace_hash.zig");
    _ = @import("kit/packet_pool.zig");
    _ = @import("kit/arguments.zig");
    _ = @import("kit/runner.zig");
    _ = @import("site/scenario.zig");
    _ = @import("stream/content.zig");
    _ = @import("stream/nonces.zig");
    _ = @import("kit/pcap.zig");
    _ = @import("stream/sectors.zig");
    _ = @import("stream/world_test.zig");
    _ = @import("kit/timed_queue.zig");
    _ = @import("site/version_copies.zig");
    _ = @import("site/world_test.zig");
    _ = Invariants;
    _ = Reports;
    _ = Schedules;
    _ = @import("kit/sim_files.zig");
    _ = @import("kit/signature_memory.zig");
    _ = @import("store/model.zig");
    _ = @import("store/model_test.zig");
    _ = @import("kit/region.zig");
    _ = @import("store/mutants.zig");
    _ = @import("store/sequences.zig");
    _ = @import("store/repair_faults.zig");
    _ = @import("store/held_copies.zig");
    _ = @import("store/single_faults.zig");
    _ = @import("store/stamps.zig");
    _ = @import("store/write_layer_model.zig");
    _ = @import("site/mutants.zig");
    _ = @import("transfer/world.zig");
}
