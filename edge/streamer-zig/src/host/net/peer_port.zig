//! The other edges of the site on the network (packages/proto/PEERS.md): the socket of their
//! messages, and a log line when one of them appears or is lost. agent/peers.zig decides what the
//! messages mean.

const core = @import("core");
const log = @import("../log.zig");
const Agent = @import("../edge_io.zig").Agent;
const UdpSocket = @import("udp_socket.zig");

pub const PeerPort = @This();

policy: Agent.Peers,
/// The edges that were alive when that was last logged, by their index in the site.
logged_alive: Flags = @splat(false),
/// Those whose holdings were known.
logged_holdings: Flags = @splat(false),

const Flags = [core.site.Edges.edges_max + 1]bool;

/// Receives what waits at the socket, at most one batch.
pub fn receive(port: *PeerPort, socket: *UdpSocket, now_us: u64) void {
    const count = socket.receive();
    for (0..count) |index| {
        const datagram = socket.datagram(index);
        port.policy.receive(datagram.from, datagram.bytes, now_us);
    }
    port.logChanges(now_us);
}

/// Runs once a second.
pub fn tick(port: *PeerPort, now_us: u64) void {
    port.policy.tick(now_us);
    port.logChanges(now_us);
}

/// A new state lists the site's edges again.
pub fn setSite(port: *PeerPort, now_us: u64, site: ?core.site.Edges) void {
    const table = port.policy.table;
    table.setSite(now_us, site);
    for (&port.logged_alive, 0..) |*told, index|
        told.* = site != null and index < site.?.edges.count and
            table.isAlive(now_us, @intCast(index));
    for (&port.logged_holdings, 0..) |*told, index|
        told.* = table.holdings.tells(@intCast(index));
}

fn logChanges(port: *PeerPort, now_us: u64) void {
    const table = port.policy.table;
    const site = if (table.site) |*site| site else return;
    for (site.edges.constSlice(), 0..) |*edge, index| {
        if (index == site.own_index) continue;
        const tells = table.holdings.tells(@intCast(index));
        if (tells and !port.logged_holdings[index])
            log.info(
                "Edge {f} of this site has told which versions it holds: each device is " ++
                    "answered by one that holds its version.",
                .{edge.id},
            );
        port.logged_holdings[index] = tells;
        const is_alive = table.isAlive(now_us, @intCast(index));
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
