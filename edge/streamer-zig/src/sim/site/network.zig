//! The network of the simulated site: its limits over `kit/network.zig`.

const EventQueue = @import("event_queue.zig");
const Invariants = @import("invariants.zig");
const addresses = @import("addresses.zig");
const kit = @import("../kit/network.zig");

pub const start_us = kit.start_us;
/// UDP payload at an MTU of 1500: 20 bytes are IP, 8 UDP.
pub const payload_size_max = 1472;

pub const Network = kit.Network(EventQueue.Event, Invariants, .{
    .links = 64,
    .edges = addresses.edges_max,
    .payload_size = payload_size_max,
    .events = 32 * 1024,
    .packets = 16 * 1024,
    .sniffed = 16,
});
