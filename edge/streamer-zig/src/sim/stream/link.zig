//! What the stream's simulation takes from the protocol. Only this file, `device_side.zig` and
//! `edge_mutants.zig` know the format of packets; a change of the protocol changes them.

const std = @import("std");
const core = @import("core");
const wire = @import("wire").stream;
const content = @import("content.zig");
const Mutant = @import("mutants.zig").Mutant;
const assert = std.debug.assert;

pub const Server = core.stream.Server;
pub const Client = core.stream.Client;
pub const Version = wire.Version;
pub const Class = wire.WriteCacheClass;
pub const WriteCode = wire.WriteCode;
pub const sector_size = wire.sector_size;
pub const read_size_max = Client.read_size_max;
pub const write_size_max = wire.writes.write_size_max;
pub const packet_size_min = wire.packet_size_min;
pub const packet_size_ethernet = wire.packet_size_ethernet;
pub const session_spare_us = Server.session_spare_us;
pub const packet_size_max = wire.packet_size_max;
/// Bytes of a sealed DATA packet that are not payload.
pub const packet_overhead = wire.header_size + wire.tag_size;
/// Longest time between an event and a device's next packet about it.
pub const silence_us_max = Client.silence_us_max;

/// Returns clear text for mutants that sealed packets would hide; null: every cipher.
pub fn ciphersFor(mutant: Mutant) ?wire.Ciphers {
    return switch (mutant) {
        .source_unchecked, .late_write_carried_out => .{ .clear = true },
        else => null,
    };
}

/// Returns whether the stream itself detects a flipped bit of this packet; otherwise the receiver's
/// UDP checksum does.
pub fn detectsFlips(mutant: Mutant, packet: []const u8) bool {
    if (ciphersFor(mutant) != null or packet.len < wire.header_size) return false;
    return switch (std.enums.fromInt(wire.Type, packet[1]) orelse return false) {
        // Packets that begin or end a session.
        .hello, .cookie, .refuse, .welcome, .no_session => false,
        else => true,
    };
}

/// Of packed answers, as HELLO names them.
pub const codecs = core.stream.Client.codecs;

/// Returns whether this is a fragment of a packed answer.
pub fn isPacked(packet: []const u8) bool {
    if (packet.len < wire.header_size or packet[1] != @backingInt(wire.Type.data)) return false;
    return packet[0] & 0x0f != 0;
}

/// Returns whether this packet belongs to a session.
pub fn isOfSession(packet: []const u8) bool {
    return switch (std.enums.fromInt(wire.Type, packet[1]) orelse return false) {
        .hello, .cookie, .refuse, .no_session, .lost, .lost_ack => false,
        else => true,
    };
}

comptime {
    assert(sector_size == content.sector_size);
}
