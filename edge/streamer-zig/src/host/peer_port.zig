//! The other edges of the site on the network (packages/proto/PEERS.md): their messages to the table of
//! peers, its messages to them, and what both mean for boots.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const Boots = @import("boots.zig").Boots;
const UdpSocket = @import("udp_socket.zig").UdpSocket;

pub const PeerPort = struct {
    table: *core.PeerTable,
    boots: *Boots,
    buffer: [wire.peer.packet_size_max]u8 = undefined,

    /// What does not go out in one turn of the loop goes in the next.
    const messages_per_turn_max = 64;
    /// Offers taken back in one second.
    const lost_per_tick_max = 64;

    /// Everything that waits at the socket, at most one batch.
    pub fn receive(port: *PeerPort, socket: *UdpSocket, now_us: u64) void {
        const count = socket.receive();
        for (0..count) |index| {
            const datagram = socket.datagram(index);
            switch (port.table.receive(now_us, datagram.from, datagram.bytes)) {
                .ignored, .nothing => {},
                .claim => |claim| port.act(now_us, claim),
            }
        }
    }

    /// Sends what is due, to each other edge whose address is known.
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

    /// Once a second.
    pub fn tick(port: *PeerPort, now_us: u64) void {
        port.table.setBooting(now_us, port.boots.table.active_count);
        for (0..lost_per_tick_max) |_| {
            const lost = port.table.nextLost(now_us) orelse return;
            const ref = port.boots.table.findById(lost.boot) orelse return;
            port.boots.withdraw(ref, lost.to);
        }
    }

    fn act(port: *PeerPort, now_us: u64, claim: core.PeerTable.Claim) void {
        const ref = port.boots.table.findByMac(claim.mac) orelse return;
        switch (port.table.consequence(now_us, port.boots.get(ref).?, claim)) {
            .keep => {},
            .withdraw => port.boots.withdraw(ref, claim.edge),
            .supersede => port.boots.endEarlier(now_us, claim.mac),
        }
    }
};
