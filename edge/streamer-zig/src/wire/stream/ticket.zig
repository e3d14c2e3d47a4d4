//! The fail-over ticket (packages/proto/STREAM.md, "Fail-over") that a device shows to another edge
//! of its site: the form in which edges seal and open it, and its place in WELCOME and HELLO. The
//! device itself cannot read it.

const std = @import("std");
const base = @import("base");
const stream = @import("stream.zig");
const assert = std.debug.assert;
const ParseError = stream.ParseError;

pub const salt_size = 24;
pub const body_size = 256;
pub const sealed_size = salt_size + body_size + stream.tag_size;
pub const Sealed = [sealed_size]u8;
pub const edges_max = 8;
/// The phases of boot-phases.json, in their order.
pub const phases_count = 8;

/// Follows the other fields of WELCOME if there is another edge.
pub const failover_size = 8 + edges_max * endpoint_size + sealed_size;
/// Follows the other fields of HELLO if a ticket is shown.
pub const shown_size = 8 + sealed_size;
const endpoint_size = 6;

/// Where a device may fail over, and with which ticket.
pub const Failover = struct {
    /// Lifetime of the ticket; not 0.
    lifetime_s: u32,
    /// In the order in which they are to be tried; at least one.
    edges: base.BoundedArray(base.Endpoint, edges_max),
    ticket: Sealed,
};

/// A ticket as a HELLO shows it.
pub const Shown = struct {
    /// Time since the WELCOME that contained it, by the device's clock.
    age_us: u64,
    ticket: Sealed,
};

/// µs since the boot's start.
pub const Phase = struct { start_us: u48, end_us: ?u48 = null };

pub const Ticket = struct {
    boot_id: [16]u8,
    version_id: [16]u8,
    /// Zeros: none, or not managed.
    vdisk_id: [16]u8,
    device_id: [16]u8,
    /// The edge that sealed it.
    edge_id: [16]u8,
    /// The secret of the device's proof, from WELCOME.
    resume_secret: [32]u8,
    mac: base.Mac,
    /// Another edge continues the boot only with `device_ram`.
    write_cache: stream.WriteCacheClass,
    flags: Flags,
    /// How often the boot has failed over before.
    hand_overs: u16,
    started_unix_ms: u64,
    /// Time from the boot's start until the ticket was sealed.
    elapsed_us: u64,
    expires_unix_ms: u64,
    /// Bytes.
    disk_size: u64,
    phases: [phases_count]?Phase = @splat(null),
};

pub const Flags = packed struct(u8) {
    /// The ids of vDisk and device are those of a desired state.
    managed: bool = false,
    simulated: bool = false,
    /// Writes that do not fit the device's memory go to its local disk.
    local_disk: bool = false,
    /// With a full local disk the device continues to read and cannot write; otherwise it stops.
    read_only_when_full: bool = false,
    reserved: u4 = 0,
};

const BodyLayout = extern struct {
    boot_id: [16]u8,
    version_id: [16]u8,
    vdisk_id: [16]u8,
    device_id: [16]u8,
    edge_id: [16]u8,
    resume_secret: [32]u8,
    mac: [6]u8,
    write_cache: u8,
    flags: u8,
    hand_overs: [2]u8,
    reserved: [6]u8,
    started_unix_ms: [8]u8,
    elapsed_us: [8]u8,
    expires_unix_ms: [8]u8,
    disk_size: [8]u8,
    phases: [phases_count][12]u8,
};

comptime {
    assert(@sizeOf(BodyLayout) == body_size and @alignOf(BodyLayout) == 1);
}

const never = std.math.maxInt(u48);

pub fn parseBody(bytes: *const [body_size]u8) ParseError!Ticket {
    const layout: *const BodyLayout = @ptrCast(bytes);
    try stream.expectZero(&layout.reserved);
    const flags: Flags = @bitCast(layout.flags);
    if (flags.reserved != 0) return error.ReservedNotZero;
    var ticket: Ticket = .{
        .boot_id = layout.boot_id,
        .version_id = layout.version_id,
        .vdisk_id = layout.vdisk_id,
        .device_id = layout.device_id,
        .edge_id = layout.edge_id,
        .resume_secret = layout.resume_secret,
        .mac = .{ .bytes = layout.mac },
        .write_cache = std.enums.fromInt(stream.WriteCacheClass, layout.write_cache) orelse
            return error.BadValue,
        .flags = flags,
        .hand_overs = stream.int(u16, &layout.hand_overs),
        .started_unix_ms = stream.int(u64, &layout.started_unix_ms),
        .elapsed_us = stream.int(u64, &layout.elapsed_us),
        .expires_unix_ms = stream.int(u64, &layout.expires_unix_ms),
        .disk_size = stream.int(u64, &layout.disk_size),
    };
    if (!ticket.mac.isDevice()) return error.BadValue;
    if (ticket.disk_size == 0 or ticket.disk_size % stream.sector_size != 0) return error.BadValue;
    for (&layout.phases, &ticket.phases) |*said, *phase| {
        const start_us = stream.int(u48, said[0..6]);
        const end_us = stream.int(u48, said[6..12]);
        if (end_us < start_us) return error.BadValue;
        if (start_us != never)
            phase.* = .{ .start_us = start_us, .end_us = if (end_us == never) null else end_us };
    }
    return ticket;
}

pub fn emitBody(ticket: *const Ticket, out: *[body_size]u8) void {
    const layout: *BodyLayout = @ptrCast(out);
    layout.boot_id = ticket.boot_id;
    layout.version_id = ticket.version_id;
    layout.vdisk_id = ticket.vdisk_id;
    layout.device_id = ticket.device_id;
    layout.edge_id = ticket.edge_id;
    layout.resume_secret = ticket.resume_secret;
    layout.mac = ticket.mac.bytes;
    layout.write_cache = @backingInt(ticket.write_cache);
    layout.flags = @bitCast(ticket.flags);
    std.mem.writeInt(u16, &layout.hand_overs, ticket.hand_overs, .big);
    layout.reserved = @splat(0);
    std.mem.writeInt(u64, &layout.started_unix_ms, ticket.started_unix_ms, .big);
    std.mem.writeInt(u64, &layout.elapsed_us, ticket.elapsed_us, .big);
    std.mem.writeInt(u64, &layout.expires_unix_ms, ticket.expires_unix_ms, .big);
    std.mem.writeInt(u64, &layout.disk_size, ticket.disk_size, .big);
    for (&layout.phases, &ticket.phases) |*said, *place| {
        const start_us, const end_us = if (place.*) |phase| .{ phase.start_us, phase.end_us orelse
            never } else .{ never, never };
        std.mem.writeInt(u48, said[0..6], start_us, .big);
        std.mem.writeInt(u48, said[6..12], end_us, .big);
    }
}

/// Parses the fields behind those of WELCOME. Null: all are zeros, and there is no other edge.
pub fn parseFailover(bytes: []const u8) ParseError!?Failover {
    if (bytes.len < failover_size or bytes[4] == 0) {
        try stream.expectZero(bytes);
        return null;
    }
    try stream.expectZero(bytes[5..8]);
    try stream.expectZero(bytes[failover_size..]);
    const count = bytes[4];
    if (count > edges_max) return error.BadValue;
    var failover: Failover = .{
        .lifetime_s = stream.int(u32, bytes[0..4]),
        .edges = .empty,
        .ticket = bytes[failover_size - sealed_size ..][0..sealed_size].*,
    };
    if (failover.lifetime_s == 0) return error.BadValue;
    for (0..edges_max) |index| {
        const said = bytes[8 + index * endpoint_size ..][0..endpoint_size];
        if (index >= count) {
            try stream.expectZero(said);
            continue;
        }
        const edge: base.Endpoint =
            .{ .ip = .{ .bytes = said[0..4].* }, .port = stream.int(u16, said[4..6]) };
        if (edge.port == 0 or edge.ip.eql(.zero)) return error.BadValue;
        failover.edges.appendAssumeCapacity(edge);
    }
    return failover;
}

pub fn emitFailover(failover: *const Failover, out: *[failover_size]u8) void {
    assert(failover.edges.count > 0);
    assert(failover.lifetime_s > 0);
    out.* = @splat(0);
    std.mem.writeInt(u32, out[0..4], failover.lifetime_s, .big);
    out[4] = @intCast(failover.edges.count);
    for (failover.edges.constSlice(), 0..) |edge, index| {
        const said = out[8 + index * endpoint_size ..][0..endpoint_size];
        said[0..4].* = edge.ip.bytes;
        std.mem.writeInt(u16, said[4..6], edge.port, .big);
    }
    out[failover_size - sealed_size ..].* = failover.ticket;
}

pub fn parseShown(bytes: *const [shown_size]u8) Shown {
    return .{ .age_us = stream.int(u64, bytes[0..8]), .ticket = bytes[8..].* };
}

pub fn emitShown(shown: *const Shown, out: *[shown_size]u8) void {
    std.mem.writeInt(u64, out[0..8], shown.age_us, .big);
    out[8..].* = shown.ticket;
}
