//! The TFTP port of the simulated edge: datagrams to the real server, made-up file blocks back, and what both mean for
//! boots.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").tftp;
const Boots = @import("boots.zig");
const Fabric = @import("fabric.zig");
const Endpoint = base.Endpoint;
const TftpServer = core.tftp.Server;

pub const EdgeTftp = @This();

pub const sessions_max = 64;
pub const requests_max = 64;

server: TftpServer,
boots: *Boots,
fabric: *Fabric,
own: Endpoint,
/// Which transfer belongs to which boot, by the peer's endpoint; 0: free.
peers: [sessions_max]u48 = @splat(0),
refs: [sessions_max]Boots.Ref = undefined,
reply: TftpServer.ReplyBuffer = undefined,
block: [wire.data_header_size + wire.blksize_max]u8 = undefined,

pub fn receive(port: *EdgeTftp, now_us: u64, from: Endpoint, bytes: []const u8) void {
    const step = port.server.receive(now_us, from, bytes, &port.reply);
    if (step.ignored == null) port.countFor(now_us, from, .{ .bytes_in = bytes.len, .packets_in = 1 });
    port.act(now_us, &step);
    const count = port.server.sessionCount();
    if (count > sessions_max) port.fabric.ledger.violate(.tables_bounded, "{d} TFTP transfers", .{count});
    const waiting = port.server.requestCount();
    if (waiting > requests_max) port.fabric.ledger.violate(.tables_bounded, "{d} TFTP requests", .{waiting});
}

/// Sends again what was not acknowledged in time.
pub fn tick(port: *EdgeTftp, now_us: u64) void {
    for (0..sessions_max + requests_max) |_| {
        const step = port.server.tick(now_us) orelse return;
        port.act(now_us, &step);
    }
    if (port.server.tick(now_us) != null)
        port.fabric.ledger.violate(.no_busy_waiting, "the TFTP server's timers have no end", .{});
}

fn act(port: *EdgeTftp, now_us: u64, step: *const TftpServer.Step) void {
    for (step.events.constSlice()) |*event| port.tell(now_us, event);
    switch (step.send) {
        .nothing => {},
        .packet => |packet| {
            port.countFor(now_us, packet.to, .{ .bytes_out = packet.bytes.len, .packets_out = 1 });
            port.fabric.sendToDevices(port.own, packet.to, packet.bytes, 0);
        },
        .blocks => |blocks| port.sendBlocks(now_us, blocks),
    }
}

fn sendBlocks(port: *EdgeTftp, now_us: u64, blocks: TftpServer.Blocks) void {
    var traffic: core.boot.phase.Traffic = .{};
    var iterator = blocks.iterate();
    while (iterator.next()) |block| {
        const size = wire.data_header_size + @as(usize, block.size);
        @memcpy(port.block[0..wire.data_header_size], &block.header);
        @memset(port.block[wire.data_header_size..size], @truncate(block.offset >> 9));
        port.fabric.sendToDevices(port.own, blocks.to, port.block[0..size], 0);
        traffic.bytes_out += size;
        traffic.packets_out += 1;
    }
    port.countFor(now_us, blocks.to, traffic);
}

fn tell(port: *EdgeTftp, now_us: u64, event: *const TftpServer.Event) void {
    const boots = port.boots;
    switch (event.*) {
        .requested => |*transfer| {
            const ref = boots.forPath(transfer.handle, transfer.peer.ip) orelse return;
            boots.apply(ref, now_us, .nbp_begin);
        },
        .started => |*transfer| {
            const ref = boots.forPath(transfer.handle, transfer.peer.ip) orelse return;
            port.remember(transfer.peer, ref);
            boots.apply(ref, now_us, .nbp_begin);
        },
        .size_queried => {},
        .unanswered => |*unanswered| {
            const ref = boots.forPath(unanswered.handle, unanswered.peer.ip) orelse return;
            switch (unanswered.why) {
                .peer_error, .timeout, .evicted => boots.apply(ref, now_us, .{ .suspected = .{ .cause = .tftp_timeout } }),
                .superseded, .aborted => {},
            }
        },
        .finished => |*finished| {
            const ref = port.forget(finished.transfer.peer) orelse return;
            boots.apply(ref, now_us, .{ .nbp_traffic = .{ .retries = finished.retries } });
            boots.apply(ref, now_us, .nbp_end);
        },
        .failed => |*failed| {
            const ref = port.forget(failed.transfer.peer) orelse return;
            boots.apply(ref, now_us, .{ .nbp_traffic = .{ .retries = failed.retries } });
            switch (failed.why) {
                .peer_error => |peer_error| boots.apply(ref, now_us, .{ .suspected = .{
                    .cause = .tftp_refused,
                    .text = peer_error.text,
                } }),
                .timeout, .evicted => boots.apply(ref, now_us, .{ .suspected = .{ .cause = .tftp_timeout } }),
                .superseded, .aborted => {},
            }
        },
        .refused => |*refused| {
            if (refused.why != .not_found or refused.handle == null) return;
            const ref = boots.forPath(refused.handle, .zero) orelse return;
            boots.apply(ref, now_us, .{ .suspected = .{ .cause = .nbp_not_found, .text = refused.name } });
        },
    }
}

fn countFor(port: *EdgeTftp, now_us: u64, peer: Endpoint, traffic: core.boot.phase.Traffic) void {
    const index = std.mem.findScalar(u48, &port.peers, peer.toInt()) orelse return;
    port.boots.apply(port.refs[index], now_us, .{ .nbp_traffic = traffic });
}

fn remember(port: *EdgeTftp, peer: Endpoint, ref: Boots.Ref) void {
    const index = std.mem.findScalar(u48, &port.peers, peer.toInt()) orelse
        std.mem.findScalar(u48, &port.peers, 0) orelse return;
    port.peers[index] = peer.toInt();
    port.refs[index] = ref;
}

fn forget(port: *EdgeTftp, peer: Endpoint) ?Boots.Ref {
    const index = std.mem.findScalar(u48, &port.peers, peer.toInt()) orelse return null;
    port.peers[index] = 0;
    return port.refs[index];
}
