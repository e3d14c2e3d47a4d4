//! The other edges of the site on the network (packages/proto/PEERS.md): passes their messages to
//! the table of peers, sends its messages to them, and applies what both mean for boots.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const log = @import("../log.zig");
const Boots = @import("../edge_io.zig").Agent.Boots;
const UdpSocket = @import("udp_socket.zig");

pub const PeerPort = @This();

table: *core.site.PeerTable,
boots: *Boots,
/// The edges that were alive when that was last logged, by their index in the site.
logged_alive: [core.site.Edges.edges_max + 1]bool = @splat(false),
buffer: [wire.peer.packet_size_max]u8 = undefined,

/// What is not sent in one turn of the loop is sent in the next.
const messages_per_turn_max = 64;
/// Offers withdrawn in one second.
const lost_per_tick_max = 64;

/// Receives what waits at the socket, at most one batch.
pub fn receive(port: *PeerPort, socket: *UdpSocket, now_us: u64) void {
    const count = socket.receive();
    for (0..count) |index| {
        const datagram = socket.datagram(index);
        switch (port.table.receive(now_us, datagram.from, datagram.bytes)) {
            .ignored, .nothing => {},
            .claim => |claim| port.act(now_us, claim),
        }
    }
    port.logChanges(now_us);
}

/// Sends what is due to each other edge whose address is known.
pub fn flush(port: *PeerPort, socket: *UdpSocket, now_us: u64) void {
    for (0..messages_per_turn_max) |_| {
        const message = port.table.next(now_us, &port.buffer) orelse return;
        const site = &port.table.site.?;
        for (site.edges.constSlice(), 0..) |*edge, index| {
            if (index == site.own_index) continue;
            socket.send(edge.endpoint orelse continue, message);
        }
    }
}

/// Runs once a second.
pub fn tick(port: *PeerPort, now_us: u64) void {
    port.table.setBooting(now_us, port.boots.table.active_count);
    port.logChanges(now_us);
    for (0..lost_per_tick_max) |_| {
        const lost = port.table.nextWithdrawnOffer(now_us) orelse return;
        const ref = port.boots.table.findById(lost.boot) orelse return;
        port.boots.withdraw(ref, lost.to);
    }
}

/// A new state lists the site's edges again.
pub fn setSite(port: *PeerPort, now_us: u64, site: ?core.site.Edges) void {
    port.table.setSite(now_us, site);
    for (&port.logged_alive, 0..) |*told, index|
        told.* = site != null and index < site.?.edges.count and
            port.table.isAlive(now_us, @intCast(index));
}

fn logChanges(port: *PeerPort, now_us: u64) void {
    const site = if (port.table.site) |*site| site else return;
    for (site.edges.constSlice(), 0..) |*edge, index| {
        if (index == site.own_index) continue;
        const is_alive = port.table.isAlive(now_us, @intCast(index));
        if (is_alive == port.logged_alive[index]) continue;
        port.logged_alive[index] = is_alive;
        if (is_alive)
            log.info(
                "Edge {f} of this site is heard: each device is answered by one edge alone.",
                .{edge.id},
            )
        else
            log.info(
                "Edge {f} of this site is no longer heard: its devices are answered here.",
                .{edge.id},
            );
    }
}

fn act(port: *PeerPort, now_us: u64, claim: core.site.PeerTable.Claim) void {
    const ref = port.boots.table.findByMac(claim.mac) orelse return;
    switch (port.table.consequence(now_us, port.boots.get(ref).?, claim)) {
        .keep => {},
        .withdraw => port.boots.withdraw(ref, claim.edge),
        .supersede => port.boots.endEarlier(now_us, claim.mac),
    }
}
