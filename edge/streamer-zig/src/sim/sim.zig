//! The fake world: the real machines of `core` over a simulated network, clock and disk. One thread, one seed; the same
//! seed gives the same run. It must never import `host`.

pub const World = @import("world.zig");
pub const Ledger = @import("ledger.zig");
pub const Reports = @import("reports.zig");
pub const Schedules = @import("schedules.zig");
pub const Plant = @import("plant.zig").Plant;

test {
    _ = @import("cookie_account.zig");
    _ = @import("disk.zig");
    _ = @import("fabric.zig");
    _ = @import("faults.zig");
    _ = @import("packet_pool.zig");
    _ = @import("proof_arguments.zig");
    _ = @import("proof_runner.zig");
    _ = @import("scenario.zig");
    _ = @import("stream_content.zig");
    _ = @import("stream_nonces.zig");
    _ = @import("stream_pcap.zig");
    _ = @import("stream_sectors.zig");
    _ = @import("stream_world_test.zig");
    _ = @import("timed_queue.zig");
    _ = @import("trail.zig");
    _ = @import("world_test.zig");
    _ = Ledger;
    _ = Reports;
    _ = Schedules;
    _ = @import("sim_files.zig");
    _ = @import("signature_memory.zig");
    _ = @import("store_model.zig");
    _ = @import("store_model_test.zig");
    _ = @import("region.zig");
    _ = @import("store_plants.zig");
    _ = @import("store_sequences.zig");
    _ = @import("write_layer_test.zig");
    _ = @import("plant.zig");
}
