//! Fail-over of a boot to another edge (packages/proto/STREAM.md, "Fail-over"): writes a boot into
//! a ticket, and restores it from the ticket at the other edge. Pure.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const Boot = @import("boot.zig");
const boot_phase = @import("phase.zig");
const boot_report = @import("report.zig");
const stream_ticket = @import("../stream/ticket.zig");
const Ticket = stream.ticket.Ticket;
const assert = std.debug.assert;

comptime {
    assert(stream.ticket.phases_count == boot_phase.Phase.count);
}

/// How a boot came to this edge.
pub const BootFailover = struct {
    /// How often the boot has failed over, this time included: 1 at the second edge.
    number: u16,
    from_edge: base.Uuid,
    /// Since the boot's start.
    at_us: u64,
    /// The device has sent something in its session here. Until then it may still choose another
    /// edge.
    is_confirmed: bool = false,

    pub const unconfirmed_us_max = 30 * std.time.us_per_s;

    /// Revisions of its reports start here: above all that earlier edges have used.
    pub fn revisionBase(failover: *const BootFailover) u64 {
        return @as(u64, failover.number) << 32;
    }
};

pub const TicketContext = struct {
    now_us: u64,
    now_unix_ms: u64,
    own_edge: base.Uuid,
    resume_secret: [32]u8,
    lifetime_s: u32 = stream_ticket.lifetime_s,
    /// Bytes.
    disk_size: u64,
    write_cache: stream.WriteCacheClass,
};

pub fn ticketOf(boot: *const Boot, context: *const TicketContext) Ticket {
    const assignment = &boot.assignment;
    var ticket: Ticket = .{
        .boot_id = boot.identity.id.bytes,
        .version_id = assignment.version_id.bytes,
        .vdisk_id = (assignment.vdisk_id orelse base.Uuid.zero).bytes,
        .device_id = (assignment.device_id orelse base.Uuid.zero).bytes,
        .edge_id = context.own_edge.bytes,
        .resume_secret = context.resume_secret,
        .mac = boot.identity.mac,
        .write_cache = context.write_cache,
        .flags = .{
            .managed = assignment.managed,
            .simulated = boot.isSimulated(),
            .local_disk = assignment.local_disk != null,
            .read_only_when_full = if (assignment.local_disk) |disk|
                disk.full == .read_only
            else
                false,
        },
        .hand_overs = if (boot.failover) |failover| failover.number else 0,
        .started_unix_ms = boot.started_unix_ms,
        .elapsed_us = context.now_us -| boot.started_us,
        .expires_unix_ms = context.now_unix_ms + @as(u64, context.lifetime_s) * std.time.ms_per_s,
        .disk_size = context.disk_size,
    };
    for (&boot.phases, &ticket.phases, 0..) |*slot, *phase, index| {
        const record = if (slot.*) |*found| found else continue;
        const end_us = record.end_us orelse
            switch (@as(boot_phase.Phase, @fromBackingInt(@as(u8, @intCast(index))))) {
                // The session that obtains the ticket ends these phases, at the device's last
                // progress.
                .nbp, .loader, .stage1 => record.lastAdvanceUs(),
                .firmware, .dhcp, .breather, .stage2, .ready => null,
            };
        phase.* = .{
            .start_us = fitted(record.start_us),
            .end_us = if (end_us) |ended_us| fitted(ended_us) else null,
        };
    }
    return ticket;
}

fn fitted(us: u64) u48 {
    return @intCast(@min(us, std.math.maxInt(u48) - 1));
}

pub const Arrival = struct {
    now_us: u64,
    /// Since the device received the ticket.
    age_us: u64,
    handle: u64,
    /// Random: no HELLO is proven by it here.
    token: [16]u8,
};

/// Restores the boot at this edge. It is not reported before it is confirmed.
pub fn bootFromTicket(ticket: *const Ticket, arrival: Arrival) Boot {
    const elapsed_us = ticket.elapsed_us +| arrival.age_us;
    const started_us = arrival.now_us -| elapsed_us;
    var boot: Boot = .init(.{
        .id = .fromBytes(ticket.boot_id),
        .mac = ticket.mac,
        .handle = arrival.handle,
        .token = arrival.token,
    }, .{
        .version_id = .fromBytes(ticket.version_id),
        .vdisk_id = idOf(ticket.vdisk_id),
        .device_id = idOf(ticket.device_id),
        .managed = ticket.flags.managed,
        .local_disk = if (ticket.flags.local_disk)
            .{ .full = if (ticket.flags.read_only_when_full) .read_only else .stop }
        else
            null,
    }, started_us, ticket.started_unix_ms);
    if (ticket.flags.simulated) boot.facts.user_class = .init(Boot.simulator_user_class);
    for (&boot.phases, &ticket.phases, 0..) |*slot, *ticket_phase, index| {
        const phase = ticket_phase.* orelse continue;
        const kind: boot_phase.Phase = @fromBackingInt(@as(u8, @intCast(index)));
        slot.* = .init(phase.start_us, if (kind == .breather) .inferred else .observed);
        if (phase.end_us) |end_us| slot.*.?.end_us = end_us;
        slot.*.?.last_us = phase.end_us orelse phase.start_us;
    }
    boot.is_taken = true;
    // A ticket always comes from a session, in which nothing is left to choose.
    boot.apply(started_us +| ticket.elapsed_us, .{
        .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .clear },
    });
    boot.facts.mtu = null;
    boot.facts.cipher = null;
    boot.last_us = arrival.now_us - started_us;
    boot.failover = .{
        .number = ticket.hand_overs +| 1,
        .from_edge = .fromBytes(ticket.edge_id),
        .at_us = boot.last_us,
    };
    boot.revision = boot.failover.?.revisionBase();
    boot.changed = false;
    boot.touched = false;
    return boot;
}

/// A device whose writes are kept here has come back, possibly in a boot that is over: whoever
/// waits for its return needs a report.
pub fn onDeviceReturn(boot: *Boot, at_us: u64) void {
    boot.resumed_us = at_us -| boot.started_us;
    boot.changed = true;
    boot.touched = true;
}

fn idOf(bytes: [16]u8) ?base.Uuid {
    return if (std.mem.allEqual(u8, &bytes, 0)) null else .fromBytes(bytes);
}

const testing = std.testing;

test "a boot keeps its times across fail-over and gets newer revisions" {
    var boot: Boot = .init(.{
        .id = .fromRandom(@splat(1)),
        .mac = .{ .bytes = .{ 2, 0, 0, 0, 0, 7 } },
        .handle = 9,
        .token = @splat(3),
    }, .{
        .version_id = .fromRandom(@splat(2)),
        .device_id = .fromRandom(@splat(4)),
        .managed = true,
    }, 1_000_000, 1_795_000_000_000);
    boot.apply(1_000_000, .{
        .dhcp_request = .{ .message = .discover, .client = .rom, .xid = 1, .size = 300 },
    });
    boot.apply(2_000_000, .nbp_begin);
    boot.apply(3_000_000, .{ .loader_begin = .script });
    boot.revision = 17;
    const ticket = ticketOf(&boot, &.{
        .now_us = 9_000_000,
        .now_unix_ms = 1_795_000_008_000,
        .own_edge = .fromRandom(@splat(5)),
        .resume_secret = @splat(6),
        .disk_size = 1 << 20,
        .write_cache = .device_ram,
    });
    boot.apply(9_000_000, .{
        .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l },
    });
    const moved = bootFromTicket(
        &ticket,
        .{ .now_us = 500_000_000, .age_us = 4_000_000, .handle = 8, .token = @splat(9) },
    );
    for (boot.phases, moved.phases) |before, after| {
        try testing.expectEqual(before == null, after == null);
        const record = before orelse continue;
        try testing.expectEqual(record.start_us, after.?.start_us);
        try testing.expectEqual(record.end_us, after.?.end_us);
    }
    try testing.expectEqual(12_000_000, moved.failover.?.at_us);
    try testing.expectEqual(500_000_000 - 12_000_000, moved.started_us);
    try testing.expectEqual(1 << 32, moved.revision);
    try testing.expect(!moved.changed);
    try testing.expect(!moved.touched);
    // What is known of the path and of its protection is that of another session.
    try testing.expectEqual(null, moved.facts.cipher);
    try testing.expectEqual(null, moved.facts.mtu);
    try testing.expect(moved.stream_was_open);
    try testing.expect(moved.is_taken);
    try testing.expect(!moved.mayChoose());
    try testing.expect(moved.identity.id.eql(boot.identity.id));
    const again = ticketOf(&moved, &.{
        .now_us = 501_000_000,
        .now_unix_ms = 0,
        .own_edge = .fromRandom(@splat(7)),
        .resume_secret = @splat(6),
        .disk_size = 1 << 20,
        .write_cache = .device_ram,
    });
    try testing.expectEqual(1, again.hand_overs);
    try testing.expectEqual(0, ticket.hand_overs);
    try testing.expectEqual(2, bootFromTicket(
        &again,
        .{ .now_us = 1, .age_us = 0, .handle = 8, .token = @splat(9) },
    ).failover.?.number);
}

test "the return of a device is reported even when its boot is over" {
    var boot: Boot = .init(.{ .id = .fromRandom(@splat(1)), .mac = .{
        .bytes = .{ 2, 0, 0, 0, 0, 7 },
    }, .handle = 9, .token = @splat(3) }, .{
        .version_id = .fromRandom(@splat(2)),
    }, 1_000_000, 1_795_000_000_000);
    boot.apply(2_000_000, .left_to_local_disk);
    boot.changed = false;
    boot.touched = false;
    onDeviceReturn(&boot, 9_000_000);
    try testing.expect(boot.isOver());
    try testing.expect(boot.touched);
    try testing.expect(boot.changed);
    var buffer: [boot_report.size_max]u8 = undefined;
    const json = boot_report.encode(&boot, .{ .revision = 2 }, &buffer);
    try testing.expect(std.mem.find(u8, json, "\"resumedUs\":8000000,") != null);
}

test "a ticket carries what the next edge must not guess" {
    var boot: Boot = .init(.{
        .id = .fromRandom(@splat(1)),
        .mac = .{ .bytes = .{ 2, 0, 0, 0, 0, 7 } },
        .handle = 9,
        .token = @splat(3),
    }, .{ .version_id = .fromRandom(@splat(2)) }, 1_000_000, 1_795_000_000_000);
    const context: TicketContext = .{
        .now_us = 9_000_000,
        .now_unix_ms = 1_795_000_008_000,
        .own_edge = .fromRandom(@splat(5)),
        .resume_secret = @splat(6),
        .disk_size = 1 << 20,
        .write_cache = .device_ram,
    };
    const arrival: Arrival = .{ .now_us = 9_000_000, .age_us = 0, .handle = 8, .token = @splat(9) };
    const plain = ticketOf(&boot, &context);
    try testing.expectEqual(@as(@TypeOf(plain.flags), .{}), plain.flags);
    try testing.expectEqual(8_000_000, plain.elapsed_us);
    const back = bootFromTicket(&plain, arrival);
    try testing.expect(!back.isSimulated());
    try testing.expectEqual(null, back.assignment.local_disk);
    try testing.expectEqual(null, back.assignment.vdisk_id);
    try testing.expectEqual(null, back.assignment.device_id);
    boot.facts.user_class = .init(Boot.simulator_user_class);
    boot.assignment.managed = true;
    boot.assignment.vdisk_id = .fromRandom(@splat(4));
    for ([_]@FieldType(@TypeOf(boot.assignment.local_disk.?), "full"){ .stop, .read_only }) |full| {
        boot.assignment.local_disk = .{ .full = full };
        const moved = bootFromTicket(&ticketOf(&boot, &context), arrival);
        try testing.expect(moved.isSimulated());
        try testing.expect(moved.assignment.managed);
        try testing.expect(moved.assignment.vdisk_id.?.eql(boot.assignment.vdisk_id.?));
        try testing.expectEqual(full, moved.assignment.local_disk.?.full);
    }
}

test "a ticket has the phases' times, and ends those that its session ends" {
    var boot: Boot = .init(.{
        .id = .fromRandom(@splat(1)),
        .mac = .{ .bytes = .{ 2, 0, 0, 0, 0, 7 } },
        .handle = 9,
        .token = @splat(3),
    }, .{ .version_id = .fromRandom(@splat(2)) }, 1_000_000, 1_795_000_000_000);
    for (&boot.phases, 1..) |*slot, number| {
        slot.* = .init(number * 100, .observed);
        slot.*.?.advance(number * 100 + 7);
        slot.*.?.touch(number * 100 + 9);
    }
    // Later than the ticket's numbers reach.
    boot.phases[0].?.end_us = std.math.maxInt(u64);
    const ticket = ticketOf(&boot, &.{
        .now_us = 9_000_000,
        .now_unix_ms = 1_795_000_008_000,
        .own_edge = .fromRandom(@splat(5)),
        .resume_secret = @splat(6),
        .lifetime_s = 90,
        .disk_size = 1 << 20,
        .write_cache = .device_ram,
    });
    try testing.expectEqual(1_795_000_098_000, ticket.expires_unix_ms);
    const ends = [_]?u64{ std.math.maxInt(u48) - 1, null, 307, 407, 507, null, null, null };
    for (ticket.phases, ends, 1..) |phase, end_us, number| {
        try testing.expectEqual(number * 100, phase.?.start_us);
        try testing.expectEqual(end_us, if (phase.?.end_us) |known| @as(u64, known) else null);
    }
    const moved = bootFromTicket(
        &ticket,
        .{ .now_us = 500_000_000, .age_us = 0, .handle = 8, .token = @splat(9) },
    );
    for (moved.phases, ends, 0..) |record, end_us, index| {
        const start_us = (index + 1) * 100;
        const is_breather = index == @backingInt(boot_phase.Phase.breather);
        const source: boot_phase.Source = if (is_breather) .inferred else .observed;
        try testing.expectEqual(source, record.?.source);
        // The session ends the breather.
        if (is_breather) continue;
        try testing.expectEqual(end_us orelse start_us, record.?.last_us);
    }
}
