//! What the messages of the site's other edges mean for the boots of this one
//! (packages/proto/PEERS.md). Messages come from the peer port of `Io` and go back to it; the table
//! of peers (core/site/peer_table.zig) judges them. Invariant: a boot that another edge has taken
//! is not continued here.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

const PeerTable = core.site.PeerTable;

pub fn Peers(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);

        table: *PeerTable,
        boots: *Boots,
        buffer: [wire.peer.packet_size_max]u8 = undefined,

        /// What is not sent in one turn is sent in the next.
        const messages_per_turn_max = 64;
        /// Offers withdrawn in one second.
        const withdrawn_per_tick_max = 64;

        /// Takes a datagram of the peer port.
        pub fn receive(peers: *Self, from: base.Endpoint, bytes: []const u8, now_us: u64) void {
            assert(peers.boots.peers == peers.table);
            switch (peers.table.receive(now_us, from, bytes)) {
                .ignored, .nothing => {},
                .claim => |claim| peers.act(now_us, claim),
            }
        }

        /// Sends what is due to each other edge whose address is known.
        pub fn flush(peers: *Self, now_us: u64) void {
            for (0..messages_per_turn_max) |_| {
                const message = peers.table.next(now_us, &peers.buffer) orelse return;
                assert(message.len > 0);
                const site = &peers.table.site.?;
                assert(site.own_index < site.edges.count);
                for (site.edges.constSlice(), 0..) |*edge, index| {
                    if (index == site.own_index) continue;
                    peers.boots.io.send(.peer, edge.endpoint orelse continue, message);
                }
            }
        }

        /// Runs once a second.
        pub fn tick(peers: *Self, now_us: u64) void {
            peers.table.setBooting(now_us, peers.boots.table.active_count);
            peers.endLeft(now_us);
            for (0..withdrawn_per_tick_max) |_| {
                const offer = peers.table.nextWithdrawnOffer(now_us) orelse return;
                assert(!offer.to.eql(peers.table.site.?.own_id));
                const ref = peers.boots.table.findById(offer.boot) orelse return;
                peers.boots.withdraw(ref, offer.to);
            }
        }

        fn act(peers: *Self, now_us: u64, claim: PeerTable.Claim) void {
            if (mutants.has(.deaf_to_claims)) return;
            var own = peers.boots.table.iterateOf(claim.mac);
            while (own.next()) |ref| {
                const boot = peers.boots.get(ref).?;
                assert(boot.identity.mac.eql(claim.mac));
                const believes = mutants.has(.believe_claims) and claim.stage == .taken;
                if (believes and !claim.boot.eql(boot.identity.id) and boot.isRunning()) {
                    peers.boots.table.remove(ref);
                } else switch (peers.table.consequence(now_us, boot, claim)) {
                    .keep => {},
                    .withdraw => peers.boots.withdraw(ref, claim.edge),
                    .supersede => peers.boots.supersede(now_us, ref),
                }
            }
        }

        /// Ends the boots of devices that have proved themselves at other edges and are silent
        /// here.
        fn endLeft(peers: *Self, now_us: u64) void {
            if (!peers.table.hasOthers() or mutants.has(.deaf_to_claims)) return;
            var iterator = peers.boots.table.iterate();
            while (iterator.next()) |boot| {
                if (boot.isOver() or !peers.table.hasLeft(now_us, boot)) continue;
                peers.boots.supersede(now_us, peers.boots.table.findById(boot.identity.id).?);
            }
        }
    };
}
