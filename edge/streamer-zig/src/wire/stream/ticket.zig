//! The fail-over ticket (packages/proto/STREAM.md, "Fail-over") that a device shows to another edge
//! of its site: the form in which edges seal and open it, and its place in WELCOME and HELLO. The
//! device itself cannot read it.

const std = @import("std");
const base = @import("base");
const stream = @import("stream.zig");
const assert = std.debug.assert;
const ParseError = stream.ParseError;

/// Devices cannot tell the formats apart. Edges of this release open both.
pub const Format = enum(u8) {
    v1 = 1,
    /// With the device's address in 16 bytes, and whether it has proved its key.
    v2 = 2,

    pub fn saltSize(format: Format) usize {
        return switch (format) {
            .v1 => 24,
            .v2 => 16,
        };
    }

    pub fn bodySize(format: Format) usize {
        return sealed_size - stream.tag_size - format.saltSize();
    }
};

pub const salt_size_max = 24;
pub const body_size_max = 264;
pub const sealed_size = 296;
pub const Sealed = [sealed_size]u8;
pub const edges_max = 8;
/// The phases of boot-phases.json, in their order.
pub const phases_count = 8;

/// Follows the other fields of WELCOME if there is another edge.
pub const failover_size = 8 + edges_max * endpoint_size + sealed_size;
/// In version 3 the edges follow the ticket, and no place is left for those that are not named.
pub const failover_size_v3_fixed = 8 + sealed_size;
/// Follows the other fields of HELLO if a ticket is shown.
pub const shown_size = 8 + sealed_size;
const endpoint_size = 6;
pub const endpoint_size_v3 = 18;

/// Where a device may fail over, and with which ticket.
pub const Failover = struct {
    /// Lifetime of the ticket; not 0.
    lifetime_s: u32,
    /// In the order in which they are to be tried; at least one. `parse` skips those that have no
    /// IPv4 address.
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
    /// Of the device, at the edge that sealed it, as IPv6 writes it; zeros: unknown. Format 2.
    device_address: [16]u8 = @splat(0),
};

pub const Flags = packed struct(u8) {
    /// The ids of vDisk and device are those of a desired state.
    managed: bool = false,
    simulated: bool = false,
    /// Writes that do not fit the device's memory go to its local disk.
    local_disk: bool = false,
    /// With a full local disk the device continues to read and cannot write; otherwise it stops.
    read_only_when_full: bool = false,
    /// The device has signed a HELLO of this boot with its known key. Format 2.
    signed: bool = false,
    reserved: u3 = 0,
};

/// What both formats begin with.
const Head = extern struct {
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
    /// Format 1: zeros.
    disk_sectors: [6]u8,
    started_unix_ms: [8]u8,
    elapsed_us: [8]u8,
    expires_unix_ms: [8]u8,
};

const Phases = [phases_count][12]u8;

const BodyLayoutV1 = extern struct { head: Head, disk_size: [8]u8, phases: Phases };

const BodyLayoutV2 = extern struct { head: Head, device_address: [16]u8, phases: Phases };

comptime {
    assert(@sizeOf(BodyLayoutV1) == Format.bodySize(.v1) and @alignOf(BodyLayoutV1) == 1);
    assert(@sizeOf(BodyLayoutV2) == Format.bodySize(.v2) and @alignOf(BodyLayoutV2) == 1);
    assert(body_size_max == Format.bodySize(.v2) and salt_size_max == Format.saltSize(.v1));
}

const never = std.math.maxInt(u48);

/// `bytes` has exactly the size of a body of this format.
pub fn parseBody(format: Format, bytes: []const u8) ParseError!Ticket {
    assert(bytes.len == format.bodySize());
    var ticket = try parseHead(@ptrCast(bytes[0..@sizeOf(Head)]));
    const phases = switch (format) {
        .v1 => blk: {
            const layout: *const BodyLayoutV1 = @ptrCast(bytes[0..@sizeOf(BodyLayoutV1)]);
            if (ticket.flags.signed or ticket.disk_size != 0) return error.ReservedNotZero;
            ticket.disk_size = stream.int(u64, &layout.disk_size);
            break :blk &layout.phases;
        },
        .v2 => blk: {
            const layout: *const BodyLayoutV2 = @ptrCast(bytes[0..@sizeOf(BodyLayoutV2)]);
            ticket.device_address = layout.device_address;
            break :blk &layout.phases;
        },
    };
    if (ticket.disk_size == 0 or ticket.disk_size % stream.sector_size != 0) return error.BadValue;
    for (phases, &ticket.phases) |*said, *phase| {
        const start_us = stream.int(u48, said[0..6]);
        const end_us = stream.int(u48, said[6..12]);
        if (end_us < start_us) return error.BadValue;
        if (start_us != never)
            phase.* = .{ .start_us = start_us, .end_us = if (end_us == never) null else end_us };
    }
    return ticket;
}

fn parseHead(head: *const Head) ParseError!Ticket {
    const flags: Flags = @bitCast(head.flags);
    if (flags.reserved != 0) return error.ReservedNotZero;
    const ticket: Ticket = .{
        .boot_id = head.boot_id,
        .version_id = head.version_id,
        .vdisk_id = head.vdisk_id,
        .device_id = head.device_id,
        .edge_id = head.edge_id,
        .resume_secret = head.resume_secret,
        .mac = .{ .bytes = head.mac },
        .write_cache = std.enums.fromInt(stream.WriteCacheClass, head.write_cache) orelse
            return error.BadValue,
        .flags = flags,
        .hand_overs = stream.int(u16, &head.hand_overs),
        .started_unix_ms = stream.int(u64, &head.started_unix_ms),
        .elapsed_us = stream.int(u64, &head.elapsed_us),
        .expires_unix_ms = stream.int(u64, &head.expires_unix_ms),
        .disk_size = @as(u64, stream.int(u48, &head.disk_sectors)) * stream.sector_size,
    };
    if (!ticket.mac.isDevice()) return error.BadValue;
    return ticket;
}

/// `out` has exactly the size of a body of this format. Format 1 leaves out what it has no place
/// for.
pub fn emitBody(format: Format, ticket: *const Ticket, out: []u8) void {
    assert(out.len == format.bodySize());
    assert(ticket.disk_size % stream.sector_size == 0);
    const head: *Head = @ptrCast(out[0..@sizeOf(Head)]);
    emitHead(ticket, head);
    const phases = switch (format) {
        .v1 => blk: {
            const layout: *BodyLayoutV1 = @ptrCast(out[0..@sizeOf(BodyLayoutV1)]);
            var flags = ticket.flags;
            flags.signed = false;
            head.flags = @bitCast(flags);
            head.disk_sectors = @splat(0);
            std.mem.writeInt(u64, &layout.disk_size, ticket.disk_size, .big);
            break :blk &layout.phases;
        },
        .v2 => blk: {
            const layout: *BodyLayoutV2 = @ptrCast(out[0..@sizeOf(BodyLayoutV2)]);
            const sectors: u48 = @intCast(ticket.disk_size / stream.sector_size);
            std.mem.writeInt(u48, &head.disk_sectors, sectors, .big);
            layout.device_address = ticket.device_address;
            break :blk &layout.phases;
        },
    };
    for (phases, &ticket.phases) |*said, *place| {
        const start_us, const end_us = if (place.*) |phase| .{ phase.start_us, phase.end_us orelse
            never } else .{ never, never };
        std.mem.writeInt(u48, said[0..6], start_us, .big);
        std.mem.writeInt(u48, said[6..12], end_us, .big);
    }
}

fn emitHead(ticket: *const Ticket, head: *Head) void {
    head.boot_id = ticket.boot_id;
    head.version_id = ticket.version_id;
    head.vdisk_id = ticket.vdisk_id;
    head.device_id = ticket.device_id;
    head.edge_id = ticket.edge_id;
    head.resume_secret = ticket.resume_secret;
    head.mac = ticket.mac.bytes;
    head.write_cache = @backingInt(ticket.write_cache);
    head.flags = @bitCast(ticket.flags);
    std.mem.writeInt(u16, &head.hand_overs, ticket.hand_overs, .big);
    std.mem.writeInt(u64, &head.started_unix_ms, ticket.started_unix_ms, .big);
    std.mem.writeInt(u64, &head.elapsed_us, ticket.elapsed_us, .big);
    std.mem.writeInt(u64, &head.expires_unix_ms, ticket.expires_unix_ms, .big);
}

/// Of a WELCOME's tail: the list, or null if no edge of it can be reached, and its size in bytes.
pub const ParsedFailover = struct { failover: ?Failover, size: usize };

/// Parses the fields behind those of WELCOME; zeros may follow them.
pub fn parseFailover(version: stream.Version, bytes: []const u8) ParseError!ParsedFailover {
    const size_min: usize = switch (version) {
        .v2 => failover_size,
        .v3 => failover_size_v3_fixed + endpoint_size_v3,
    };
    if (bytes.len < size_min or bytes[4] == 0) {
        try stream.expectZero(bytes);
        return .{ .failover = null, .size = 0 };
    }
    try stream.expectZero(bytes[5..8]);
    const count = bytes[4];
    if (count > edges_max) return error.BadValue;
    const lifetime_s = stream.int(u32, bytes[0..4]);
    if (lifetime_s == 0) return error.BadValue;
    const size: usize = switch (version) {
        .v2 => failover_size,
        .v3 => failover_size_v3_fixed + @as(usize, count) * endpoint_size_v3,
    };
    if (bytes.len < size) return error.WrongSize;
    try stream.expectZero(bytes[size..]);
    const ticket_at: usize = if (version == .v2) failover_size - sealed_size else 8;
    var failover: Failover = .{
        .lifetime_s = lifetime_s,
        .edges = .empty,
        .ticket = bytes[ticket_at..][0..sealed_size].*,
    };
    switch (version) {
        .v2 => try parseEndpoints(bytes[8..ticket_at], count, &failover),
        .v3 => try parseAddresses(bytes[failover_size_v3_fixed..size], &failover),
    }
    const is_empty = failover.edges.count == 0;
    return .{ .failover = if (is_empty) null else failover, .size = size };
}

fn parseEndpoints(bytes: []const u8, count: u8, failover: *Failover) ParseError!void {
    for (0..edges_max) |index| {
        const said = bytes[index * endpoint_size ..][0..endpoint_size];
        if (index >= count) {
            try stream.expectZero(said);
            continue;
        }
        const edge: base.Endpoint =
            .{ .ip = .{ .bytes = said[0..4].* }, .port = stream.int(u16, said[4..6]) };
        if (edge.port == 0 or edge.ip.eql(.zero)) return error.BadValue;
        failover.edges.appendAssumeCapacity(edge);
    }
}

fn parseAddresses(bytes: []const u8, failover: *Failover) ParseError!void {
    var rest = bytes;
    while (rest.len > 0) : (rest = rest[endpoint_size_v3..]) {
        const address = rest[0..16].*;
        const edge_port = stream.int(u16, rest[16..18]);
        if (edge_port == 0 or std.mem.allEqual(u8, &address, 0)) return error.BadValue;
        const ip = ipOf(address) orelse continue;
        if (ip.eql(.zero)) return error.BadValue;
        failover.edges.appendAssumeCapacity(.{ .ip = ip, .port = edge_port });
    }
}

/// IPv4-mapped (RFC 4291, section 2.5.5.2).
const mapped_prefix: [12]u8 = @as([10]u8, @splat(0)) ++ [_]u8{ 0xff, 0xff };

/// Returns the address in the 16 bytes of version 3.
pub fn addressOf(ip: base.Ip4) [16]u8 {
    return mapped_prefix ++ ip.bytes;
}

/// Returns null if it is no IPv4 address.
fn ipOf(address: [16]u8) ?base.Ip4 {
    if (!std.mem.eql(u8, address[0..12], &mapped_prefix)) return null;
    return .{ .bytes = address[12..16].* };
}

pub fn failoverSizeOf(version: stream.Version, failover: *const Failover) u16 {
    return switch (version) {
        .v2 => failover_size,
        .v3 => failover_size_v3_fixed + @as(u16, @intCast(failover.edges.count)) * endpoint_size_v3,
    };
}

/// Writes the fields to the front of `out` and returns them.
pub fn emitFailover(version: stream.Version, failover: *const Failover, out: []u8) []u8 {
    assert(failover.edges.count > 0);
    assert(failover.lifetime_s > 0);
    const size = failoverSizeOf(version, failover);
    @memset(out[0..size], 0);
    std.mem.writeInt(u32, out[0..4], failover.lifetime_s, .big);
    out[4] = @intCast(failover.edges.count);
    const ticket_at: usize = if (version == .v2) failover_size - sealed_size else 8;
    out[ticket_at..][0..sealed_size].* = failover.ticket;
    for (failover.edges.constSlice(), 0..) |edge, index| switch (version) {
        .v2 => {
            const said = out[8 + index * endpoint_size ..][0..endpoint_size];
            said[0..4].* = edge.ip.bytes;
            std.mem.writeInt(u16, said[4..6], edge.port, .big);
        },
        .v3 => {
            const at = failover_size_v3_fixed + index * endpoint_size_v3;
            const said = out[at..][0..endpoint_size_v3];
            said[0..16].* = addressOf(edge.ip);
            std.mem.writeInt(u16, said[16..18], edge.port, .big);
        },
    };
    return out[0..size];
}

pub fn parseShown(bytes: *const [shown_size]u8) Shown {
    return .{ .age_us = stream.int(u64, bytes[0..8]), .ticket = bytes[8..].* };
}

pub fn emitShown(shown: *const Shown, out: *[shown_size]u8) void {
    std.mem.writeInt(u64, out[0..8], shown.age_us, .big);
    out[8..].* = shown.ticket;
}
