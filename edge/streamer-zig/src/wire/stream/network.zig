//! NETWORK (packages/proto/STREAM.md, "What the network does"): what a device has measured of the
//! path from its edge, and its card's own figures. Part of `stream.zig`, which gives its
//! guarantees. Every value has limits of its own, and those that contradict each other are refused:
//! the edge believes none of it beyond the boot of this device.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

const Cursor = base.Cursor;

const header_size = 16;
const network_size = 104;
/// UDP payload in bytes; the same as in `stream.zig`.
const packet_size_min = 548;
const packet_size_max = 8972;

pub const Duplex = enum(u8) { unknown = 0, half = 1, full = 2 };

/// The card that reaches the edge, as its kernel knows it. Counters start with the kernel.
pub const Card = struct {
    duplex: Duplex = .unknown,
    /// IP packets, in bytes; 0: unknown.
    mtu: u16 = 0,
    /// Mbit/s; 0: unknown.
    link_mbit: u32 = 0,
    carrier_changes: u32 = 0,
    receive_errors: u32 = 0,
    /// Of these, frames with a wrong checksum.
    crc_errors: u32 = 0,
    /// Packets that the card or its driver had no space for.
    receive_drops: u32 = 0,
    send_errors: u32 = 0,
    /// Datagrams of this machine that found a full socket buffer.
    socket_drops: u32 = 0,
};

pub const Network = struct {
    card: Card = .{},
    /// Nothing was in flight when it was sent: the edge may compare its own count.
    is_settled: bool = false,
    /// The boot is over, and its figures change no more.
    is_final: bool = false,
    /// The largest packet that device and edge could use, in bytes of UDP payload.
    size_max: u16 = packet_size_min,
    /// The largest one that passes.
    size: u16 = packet_size_min,
    /// A larger one that was sent `size_lost_count` times and never arrived; both 0: there is none.
    size_lost: u16 = 0,
    size_lost_count: u16 = 0,
    /// Packets of the edge: those that it numbered, and those of them that did not arrive. 0: in
    /// clear text packets have no numbers.
    expected: u32 = 0,
    lost: u32 = 0,
    /// Holes in answers of several packets, their packets, and the longest.
    runs: u32 = 0,
    run_packets: u32 = 0,
    run_max: u16 = 0,
    /// Packets of answers that were requested once: how many, those that a later one overtook, and
    /// by how many places at most.
    ordered: u32 = 0,
    reordered: u32 = 0,
    reorder_max: u16 = 0,
    /// µs from a PROBE to its answer. All are 0 with a count of 0.
    rtt_count: u32 = 0,
    rtt_min_us: u32 = 0,
    rtt_p50_us: u32 = 0,
    rtt_p95_us: u32 = 0,

    pub fn isValid(network: *const Network) bool {
        if (network.size < packet_size_min or network.size > network.size_max) return false;
        if (network.size_max > packet_size_max) return false;
        if ((network.size_lost == 0) != (network.size_lost_count == 0)) return false;
        if (network.size_lost != 0) {
            if (network.size_lost <= network.size) return false;
            if (network.size_lost > network.size_max) return false;
        }
        if (network.lost > network.expected) return false;
        if (network.runs > network.run_packets or network.run_max > network.run_packets)
            return false;
        if (network.reordered > network.ordered) return false;
        if (network.reordered == 0 and network.reorder_max != 0) return false;
        if (network.rtt_min_us > network.rtt_p50_us) return false;
        if (network.rtt_p50_us > network.rtt_p95_us) return false;
        return network.rtt_count > 0 or network.rtt_p95_us == 0;
    }
};

pub const Error = error{ WrongSize, ReservedNotZero, BadValue };

/// In the order of the packet, behind its first four bytes.
const card_fields = .{
    "link_mbit",
    "carrier_changes",
    "receive_errors",
    "crc_errors",
    "receive_drops",
    "send_errors",
    "socket_drops",
};
const sizes = .{ "size_max", "size", "size_lost", "size_lost_count", "run_max", "reorder_max" };
const counts = .{
    "expected",
    "lost",
    "runs",
    "run_packets",
    "ordered",
    "reordered",
    "rtt_count",
    "rtt_min_us",
    "rtt_p50_us",
    "rtt_p95_us",
};

comptime {
    assert(network_size == header_size + 4 + 2 * (1 + sizes.len + 1) + 4 * card_fields.len +
        4 * counts.len);
}

/// `bytes` is the whole packet.
pub fn parse(bytes: []const u8) Error!Network {
    if (bytes.len != network_size) return error.WrongSize;
    var cursor: Cursor = .init(bytes[header_size..]);
    var network: Network = .{};
    const duplex = cursor.int(u8) catch unreachable;
    const is_settled = cursor.int(u8) catch unreachable;
    const is_final = cursor.int(u8) catch unreachable;
    if (cursor.int(u8) catch unreachable != 0) return error.ReservedNotZero;
    if (is_settled > 1 or is_final > 1) return error.BadValue;
    network.card.duplex = std.enums.fromInt(Duplex, duplex) orelse return error.BadValue;
    network.is_settled = is_settled == 1;
    network.is_final = is_final == 1;
    network.card.mtu = cursor.int(u16) catch unreachable;
    inline for (sizes) |name| @field(network, name) = cursor.int(u16) catch unreachable;
    if (cursor.int(u16) catch unreachable != 0) return error.ReservedNotZero;
    inline for (card_fields) |name| @field(network.card, name) = cursor.int(u32) catch unreachable;
    inline for (counts) |name| @field(network, name) = cursor.int(u32) catch unreachable;
    return if (network.isValid()) network else error.BadValue;
}

/// The header is written already.
pub fn emit(network: *const Network, out: []u8) []u8 {
    assert(network.isValid());
    var writer: base.ByteWriter = .init(out[header_size..network_size]);
    writer.int(u8, @backingInt(network.card.duplex)) catch unreachable;
    writer.int(u8, @intFromBool(network.is_settled)) catch unreachable;
    writer.int(u8, @intFromBool(network.is_final)) catch unreachable;
    writer.int(u8, 0) catch unreachable;
    writer.int(u16, network.card.mtu) catch unreachable;
    inline for (sizes) |name| writer.int(u16, @field(network, name)) catch unreachable;
    writer.int(u16, 0) catch unreachable;
    inline for (card_fields) |name| writer.int(u32, @field(network.card, name)) catch unreachable;
    inline for (counts) |name| writer.int(u32, @field(network, name)) catch unreachable;
    return out[0..network_size];
}

const testing = std.testing;

test "figures that contradict each other are none" {
    const fine: Network = .{
        .size_max = 8972,
        .size = 1472,
        .size_lost = 4052,
        .size_lost_count = 3,
        .expected = 9,
        .lost = 9,
        .runs = 1,
        .run_packets = 2,
        .run_max = 2,
        .ordered = 4,
        .reordered = 4,
        .reorder_max = 3,
        .rtt_count = 1,
        .rtt_min_us = 5,
        .rtt_p50_us = 5,
        .rtt_p95_us = 5,
    };
    try testing.expect(fine.isValid());
    try testing.expect((Network{}).isValid());
    inline for (.{
        .{ "size_max", 1471 },
        .{ "size_max", 8973 },
        .{ "size", 547 },
        .{ "size_lost", 0 },
        .{ "size_lost", 1472 },
        .{ "size_lost", 8973 },
        .{ "size_lost_count", 0 },
        .{ "lost", 10 },
        .{ "runs", 3 },
        .{ "run_max", 3 },
        .{ "reordered", 5 },
        .{ "reordered", 0 },
        .{ "rtt_min_us", 6 },
        .{ "rtt_p50_us", 6 },
        .{ "rtt_count", 0 },
    }) |wrong| {
        var network = fine;
        @field(network, wrong[0]) = wrong[1];
        try testing.expect(!network.isValid());
    }
}
