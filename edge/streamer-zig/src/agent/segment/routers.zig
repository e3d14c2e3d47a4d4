//! Router discovery on the segments of an edge: recognizes devices that wait for an IPv6 router,
//! and answers them where that is safe (core/site/router_discovery.zig). Called by the sockets of
//! the segments; anybody there can send what it takes, so that it changes nothing but what a boot's
//! report says. Invariant: it answers no more often than it is asked.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const candidates = @import("../candidates.zig");
const mutants = @import("../mutants.zig");
const router_discovery = wire.router_discovery;
const assert = std.debug.assert;

const RouterDiscovery = core.site.RouterDiscovery;

pub fn Routers(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("../boots.zig").Boots(Io);

        boots: *Boots,
        segments: base.BoundedArray(RouterDiscovery, core.dhcp.network.links_max) = .empty,

        /// Adds a segment, of which there are at most as many as links.
        pub fn add(routers: *Self, mode: RouterDiscovery.Mode) u8 {
            const index = routers.segments.count;
            routers.segments.appendAssumeCapacity(.{ .mode = mode });
            assert(routers.segments.count == index + 1);
            return @intCast(index);
        }

        pub fn receive(
            routers: *Self,
            now_us: u64,
            segment: u8,
            packet: router_discovery.Packet,
        ) void {
            assert(segment < routers.segments.count);
            const discovery = &routers.segments.slice()[segment];
            switch (router_discovery.parse(packet.bytes, packet.hop_limit) orelse return) {
                .advertisement => |heard| discovery.onAdvertisement(now_us, heard),
                .solicitation => routers.onSolicitation(now_us, segment, packet.from),
            }
        }

        /// Runs once a second.
        pub fn tick(routers: *Self, now_us: u64) void {
            const io = routers.boots.io;
            for (routers.segments.slice(), 0..) |*discovery, segment| {
                if (discovery.tick(now_us)) {
                    const question = router_discovery.solicitation();
                    const to = router_discovery.all_routers;
                    io.sendRouterMessage(@intCast(segment), to, &question);
                }
                if (discovery.mode != .booting) continue;
                if (discovery.news(now_us)) |has_router| if (has_router) io.log(
                    "There is an IPv6 router on segment {d}: devices learn of it by themselves.",
                    .{segment},
                ) else io.log(
                    "No IPv6 router on segment {d}: devices that wait for one are told so.",
                    .{segment},
                );
            }
        }

        /// The loader of a device makes its address of its MAC address, which names its boot. An
        /// answer goes to that address: nobody gets it in the device's place.
        fn onSolicitation(
            routers: *Self,
            now_us: u64,
            segment: u8,
            from: router_discovery.Address,
        ) void {
            const boots = routers.boots;
            const boot = if (router_discovery.macOf(from)) |mac| bootOf(boots, mac) else null;
            if (boot) |found| {
                const at_us = now_us -| found.started_us;
                if (!found.router_wait.mayAnswer(at_us)) return found.onSolicitation(now_us, false);
            }
            const discovery = &routers.segments.slice()[segment];
            const destination = discovery.answer(now_us, .{
                .address = from,
                .is_booting = boot != null or mutants.has(.advertise_to_strangers),
            });
            if (boot) |found| found.onSolicitation(now_us, destination != null);
            const message = router_discovery.advertisement();
            boots.io.sendRouterMessage(segment, switch (destination orelse return) {
                .sender => from,
                .all_nodes => router_discovery.all_nodes,
            }, &message);
        }

        /// Returns the device's boot in which no operating system can have sent the solicitation.
        fn bootOf(boots: *Boots, mac: base.Mac) ?*core.boot.Boot {
            const boot = boots.table.get(candidates.inLoader(boots, mac) orelse return null).?;
            assert(boot.identity.mac.eql(mac));
            return if (boot.isInLoader()) boot else null;
        }
    };
}
