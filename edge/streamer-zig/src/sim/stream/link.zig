//! What the stream's proof knows of the protocol, with the ends of the stream in the processes of edge and device (`edge_side.zig`,
//! `device_side.zig`) and most of the bugs that are planted there. Whoever changes the protocol changes these files.

const std = @import("std");
const core = @import("core");
const wire = @import("wire").stream;
const content = @import("content.zig");
const Plant = @import("plants.zig").Plant;
const assert = std.debug.assert;

pub const EdgeSide = @import("edge_side.zig").EdgeSide;
pub const DeviceSide = @import("device_side.zig").DeviceSide;
pub const Server = core.stream.Server;
pub const Client = core.stream.Client;
pub const Class = wire.WriteCacheClass;
pub const WriteCode = wire.WriteCode;
pub const WriteRef = Server.WriteRef;
pub const Report = wire.Report;
pub const HelloKind = wire.HelloKind;
pub const sector_size = wire.sector_size;
pub const read_size_max = Client.read_size_max;
pub const write_size_max = wire.writes.write_size_max;
pub const packet_size_min = wire.packet_size_min;
pub const packet_size_ethernet = wire.packet_size_ethernet;
pub const session_spare_us = Server.session_spare_us;
pub const packet_size_max = wire.packet_size_max;
/// Longest time between what ends and a device's next word about it.
pub const silence_us_max = Client.silence_us_max;

/// Bugs that sealed packets hide: where they are planted, all is in clear text.
pub fn ciphersFor(plant: Plant) ?wire.Ciphers {
    return switch (plant) {
        .source_unchecked, .late_write_carried_out => .{ .clear = true },
        else => null,
    };
}

/// Whether a flipped bit of this packet is found by the stream itself; else the receiver's UDP checksum finds it.
pub fn findsFlips(plant: Plant, packet: []const u8) bool {
    if (ciphersFor(plant) != null or packet.len < wire.header_size) return false;
    return switch (std.enums.fromInt(wire.Type, packet[1]) orelse return false) {
        // Of what a session begins and ends with.
        .hello, .cookie, .refuse, .welcome, .no_session => false,
        else => true,
    };
}

comptime {
    assert(sector_size == content.sector_size);
}
