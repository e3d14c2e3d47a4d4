//! What a device sends besides its reads (packages/proto/STREAM.md): USED, writes, READY, REPORT,
//! FETCH_TIMES, MACHINE, NETWORK and PROBE, each when due.

const std = @import("std");
const wire = @import("wire").stream;
const StreamClient = @import("client.zig");
const assert = std.debug.assert;

pub fn transmitUsed(client: *StreamClient, out: *[wire.request_size_max]u8) ?[]const u8 {
    assert(client.state == .established);
    const body: wire.Body = .{ .used = .{ .units = client.used.take() orelse return null } };
    return wire.emit(
        .{
            .version = client.session.?.version,
            .session_id = client.session.?.id,
            .request_id = client.takeRequestId(),
            .body = body,
        },
        out,
    );
}

pub fn transmitReady(
    client: *StreamClient,
    now_us: u64,
    out: *[wire.request_size_max]u8,
) ?[]const u8 {
    assert(client.state == .established);
    const ready = &(client.ready orelse return null);
    // With READY the edge has everything of the boot.
    if (transmitUsed(client, out)) |packet| return packet;
    if (emitFetchTimes(client, out)) |packet| return packet;
    if (emitNetwork(client, out)) |packet| return packet;
    return ready.transmit(now_us, &client.session.?, out);
}

pub fn transmitReport(
    client: *StreamClient,
    now_us: u64,
    out: *[wire.request_size_max]u8,
) ?[]const u8 {
    assert(client.state == .established);
    const due_at_us = client.report_state.dueAt() orelse return null;
    // A REPORT may begin another part of the boot at the edge: these reads are of the one before.
    if (now_us >= due_at_us) {
        if (emitFetchTimes(client, out)) |packet| return packet;
        if (emitMachine(client, out)) |packet| return packet;
        if (emitNetwork(client, out)) |packet| return packet;
    }
    const body = client.report_state.transmit(now_us, client.request_id_next) orelse return null;
    const session_id = client.session.?.id;
    const request_id = client.report_state.request_id;
    if (request_id == client.request_id_next) _ = client.takeRequestId();
    return wire.emit(
        .{
            .version = client.session.?.version,
            .session_id = session_id,
            .request_id = request_id,
            .body = .{ .report = body },
        },
        out,
    );
}

pub fn transmitFetchTimes(
    client: *StreamClient,
    out: *[wire.request_size_max]u8,
) ?[]const u8 {
    if (!client.fetched.isDue(client.request_id_next)) return null;
    return emitFetchTimes(client, out);
}

/// Tells the edge about all reads that it does not know, however few they are.
fn emitFetchTimes(client: *StreamClient, out: *[wire.request_size_max]u8) ?[]const u8 {
    assert(client.state == .established);
    const session = &client.session.?;
    const times = client.fetched.take() orelse return null;
    assert(times.reads.count() > 0);
    // Its edge may be one of the release before since the reads ended.
    if (session.version == .v2) return null;
    return wire.emit(.{
        .version = session.version,
        .session_id = session.id,
        .request_id = client.takeRequestId(),
        .body = .{ .fetch_times = times },
    }, out);
}

pub fn transmitAccount(
    client: *StreamClient,
    now_us: u64,
    out: *[wire.request_size_max]u8,
) ?[]const u8 {
    assert(client.state == .established);
    const session = &client.session.?;
    if (session.version == .v2) return null;
    const part = client.account.transmit(now_us) orelse return null;
    assert(part.bytes.len > 0);
    return wire.emit(.{
        .version = session.version,
        .session_id = session.id,
        .request_id = client.account.request_id,
        .body = .{ .account = part },
    }, out);
}

/// MACHINE is not acknowledged: it goes before as many REPORTs, of which some arrive.
const machine_sends_max = 3;

fn emitMachine(client: *StreamClient, out: *[wire.request_size_max]u8) ?[]const u8 {
    assert(client.machine_sent <= machine_sends_max);
    const session = &client.session.?;
    const machine = client.identity.machine orelse return null;
    if (client.machine_sent == machine_sends_max or session.version == .v2) return null;
    // This REPORT is still due.
    if (client.report_state.has_machine) return null;
    client.report_state.has_machine = true;
    client.machine_sent += 1;
    return wire.emit(.{
        .version = session.version,
        .session_id = session.id,
        .request_id = client.takeRequestId(),
        .body = .{ .machine = machine },
    }, out);
}

fn emitNetwork(client: *StreamClient, out: *[wire.request_size_max]u8) ?[]const u8 {
    const session = &client.session.?;
    if (session.version == .v2) return null;
    const network = client.network.take(client.networkView() orelse return null) orelse
        return null;
    return wire.emit(.{
        .version = session.version,
        .session_id = session.id,
        .request_id = client.takeRequestId(),
        .body = .{ .network = network },
    }, out);
}

pub fn transmitProbe(
    client: *StreamClient,
    now_us: u64,
    out: *[wire.request_size_max]u8,
) ?[]const u8 {
    assert(client.state == .established);
    const request_id = client.request_id_next;
    const size = client.path.takeProbe(now_us) orelse blk: {
        // Probes whether the edge is alive: it answers everything at once except requests to its
        // disk.
        const is_mtu_probe = client.writes.takeProbe(now_us, request_id);
        const is_liveness_probe = client.hasInFlight() and
            client.failover.takeProbe(now_us, client.heardAt(), client.rtt.rto_us);
        const is_probe = is_mtu_probe or is_liveness_probe or
            client.network.takeProbe(now_us, request_id, client.options.rtt_probe_us);
        if (!is_probe) return null;
        break :blk wire.packet_size_min;
    };
    _ = client.takeRequestId();
    return wire.emit(.{
        .version = client.session.?.version,
        .session_id = client.session.?.id,
        .request_id = request_id,
        .body = .{ .probe = .{ .size = size } },
    }, out);
}

/// The edge asks whether this device is still there.
pub fn transmitPresence(client: *StreamClient, out: *[wire.request_size_max]u8) ?[]const u8 {
    assert(client.state == .established);
    const request_id = client.keepalive_id orelse return null;
    client.keepalive_id = null;
    return wire.emit(.{
        .version = client.session.?.version,
        .session_id = client.session.?.id,
        .request_id = request_id,
        .body = .keepalive_ack,
    }, out);
}

pub fn transmitWrite(
    client: *StreamClient,
    now_us: u64,
    out: *[wire.request_size_max]u8,
) ?[]const u8 {
    assert(client.state == .established);
    const was_waiting = client.hasInFlight();
    const packet =
        client.writes.transmit(now_us, &client.session.?, client.fragmentSize(), out) orelse
        return null;
    if (!was_waiting) client.waiting_since_us = now_us;
    return packet;
}
