//! Decides the answers to DHCP packets of ports 67 and 4011 and applies them to boots. Packets come
//! from the sockets of `Io`; answers, leases and boots go back to it. Invariant: a lease is kept
//! before the answer that promises it goes out.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const admission = @import("admission.zig");
const device_address = @import("device_address.zig");

const DhcpService = core.dhcp.Service;
const assert = std.debug.assert;

/// A packet as it arrived.
pub const Arrival = struct {
    source: base.Endpoint,
    port: @FieldType(DhcpService.Arrival, "port"),
    /// Index of the edge's address that it came to.
    link: u8 = 0,
    bytes: []const u8,
    /// Microseconds; never after the loop's time.
    at_us: u64,
};

pub fn Dhcp(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);

        service: DhcpService,
        boots: *Boots,
        reply: DhcpService.ReplyBuffer = undefined,

        pub fn receive(port: *Self, packet: *const Arrival, now_us: u64) void {
            assert(packet.link < port.service.options.links.len);
            const bytes = packet.bytes;
            const arrival: DhcpService.Arrival =
                .{ .source = packet.source, .port = packet.port, .link = packet.link };
            var ref: ?Boots.Ref = null;
            var client: ?core.boot.Client = null;
            const step = switch (port.service.receive(now_us, arrival, bytes, &port.reply)) {
                .network_boot => |*request| answer: {
                    const network = port.service.options.networks[request.network].subnet.ip;
                    const verdict =
                        admission.judge(port.boots, now_us, request, network, bytes.len);
                    if (verdict == .silence) return;
                    if (!port.boots.mayBegin(now_us, request.client.mac, senderOf(packet))) return;
                    ref = port.boots.forDhcp(
                        packet.at_us,
                        &request.client,
                        request.packet.xid,
                        bytes.len,
                    );
                    client = request.client;
                    if (ref) |known| if (admission.isAddressed(request)) port.boots.take(known);
                    const target = port.targetOf(ref, &request.client);
                    break :answer port.service.answer(now_us, request, target, &port.reply);
                },
                else => |other| other,
            };
            port.keepLeases(now_us);
            switch (step) {
                .ignored => |reason| switch (reason) {
                    .dhcp_no_boot_program => port.noProgram(ref, client, now_us),
                    .dhcp_no_free_address => port.noAddress(ref, now_us),
                    else => {},
                },
                .reply => |*reply| port.sendReply(&arrival, reply, ref, client, now_us),
                .learned => |learned| port.boots.learnAddress(learned.mac, learned.ip),
                .recorded => {},
                .network_boot => unreachable,
            }
        }

        /// Returns the address of a request that came from one machine. A device without an address
        /// sends from none, and a relay agent speaks for many devices.
        fn senderOf(packet: *const Arrival) ?base.Ip4 {
            const ip = packet.source.ip;
            return if (ip.isUnicast() and packet.source.port != wire.dhcp.server_port) ip else null;
        }

        fn targetOf(
            port: *Self,
            ref: ?Boots.Ref,
            client: *const core.boot.Client,
        ) DhcpService.BootTarget {
            const boot = port.boots.get(ref orelse return .ignore) orelse return .ignore;
            assert(boot.identity.handle != 0);
            // A failed boot gets no more answers: its device would repeat the failure for ever.
            if (boot.isOver()) switch (boot.outcome.?) {
                .failed, .superseded => return .ignore,
                .ready, .silent, .local_disk => {},
            };
            const set = port.boots.io.bootFiles().setFor(boot, client.arch);
            return .{ .boot = .{
                .handle = .{ .value = boot.identity.handle },
                .programs = if (set) |known| known.first else .{},
                .ipxe_takes_program = port.ipxeTakesProgram(boot, client.arch),
            } };
        }

        /// iPXE in a card's ROM runs scripts itself, unless the device was given other programs on
        /// purpose. iPXE that such a program started gets its script.
        fn ipxeTakesProgram(
            port: *Self,
            boot: *const core.boot.Boot,
            arch: wire.dhcp.ClientArch,
        ) bool {
            if (boot.assignment.program_set.size == 0 or boot.record(.nbp) != null) return false;
            const set = port.boots.io.bootFiles().setFor(boot, arch) orelse return true;
            const file = set.find(set.first.of(arch) orelse return false) orelse return false;
            return file.kind != .ipxe;
        }

        fn sendReply(
            port: *Self,
            arrival: *const DhcpService.Arrival,
            reply: *const DhcpService.Reply,
            ref: ?Boots.Ref,
            client: ?core.boot.Client,
            now_us: u64,
        ) void {
            assert(reply.payload.len > 0);
            assert(arrival.link < port.service.options.links.len);
            if (ref) |known| {
                if (reply.ip) |ip| if (ip.isUnicast()) {
                    if (port.boots.get(known)) |boot|
                        if (!boot.stream_was_open)
                            device_address.learnByDhcp(port.boots, boot, ip);
                };
                // The request arrived earlier; milliseconds on a busy machine.
                const sent_us = port.boots.io.now();
                port.boots.apply(
                    known,
                    sent_us,
                    .{ .dhcp_answer = .{ .size = @intCast(reply.payload.len) } },
                );
                port.boots.onDhcpAnswer(known, sent_us, reply.server_ip, reply.payload);
                if (reply.names_boot_file)
                    port.setProgram(known, &client.?)
                else if (reply.message_type != .nak) port.noProgram(known, client, now_us);
            }
            port.probe(arrival, reply);
            port.boots.io.send(switch (arrival.port) {
                .dhcp => .{ .dhcp = arrival.link },
                .pxe => .{ .pxe = arrival.link },
            }, reply.destination, reply.payload);
        }

        /// Asks whether another machine has the address that is offered. Nobody waits for the
        /// answer: a client takes longer to accept the offer, and gets NAK if the address is in
        /// use. A relay agent's network is out of reach.
        fn probe(
            port: *Self,
            arrival: *const DhcpService.Arrival,
            reply: *const DhcpService.Reply,
        ) void {
            if (reply.message_type != .offer or arrival.port != .dhcp) return;
            if (arrival.source.port == wire.dhcp.server_port) return;
            const ip = reply.ip orelse return;
            if (port.service.isOffered(port.boots.io.now(), ip))
                port.boots.io.probeAddress(arrival.link, ip);
        }

        /// A machine of an attached network answered for an address.
        pub fn heardHolder(port: *Self, ip: base.Ip4, holder: base.Mac, now_us: u64) void {
            if (!port.service.findInUse(now_us, ip, holder)) return;
            port.boots.io.log(
                "{f} is in use by {f}: nobody gets it for ten minutes.",
                .{ ip, holder },
            );
            port.keepLeases(now_us);
        }

        /// Records the first program that the device is told to load, not what iPXE is told later.
        fn setProgram(port: *Self, ref: Boots.Ref, client: *const core.boot.Client) void {
            const boot = port.boots.get(ref) orelse return;
            if (boot.facts.program != null) return;
            if (client.loader == .ipxe and !port.ipxeTakesProgram(boot, client.arch)) return;
            const set = port.boots.io.bootFiles().setFor(boot, client.arch) orelse return;
            const file = set.first.of(client.arch) orelse return;
            assert(file.len > 0);
            boot.facts.program = .{ .set = .init(set.name), .file = .init(file) };
        }

        /// There is nothing to load: the chosen set is not here, or has no program for the
        /// architecture.
        fn noProgram(port: *Self, ref: ?Boots.Ref, client: ?core.boot.Client, now_us: u64) void {
            const known = ref orelse return;
            const boot = port.boots.get(known) orelse return;
            assert(boot.identity.handle != 0);
            const arch = (client orelse return).arch;
            const chosen = &boot.assignment.program_set;
            var buffer: [128]u8 = undefined;
            var writer: std.Io.Writer = .fixed(&buffer);
            // Text that is too long is cut.
            if (port.boots.io.bootFiles().setFor(boot, arch)) |set| {
                writer.print("{s} has no program for {s}", .{
                    set.name, core.boot.Client.archText(arch),
                }) catch {};
            } else if (chosen.size > 0) {
                writer.print("this edge has no set {s}", .{chosen.slice()}) catch {};
            } else writer.writeAll("this edge has no boot programs") catch {};
            const is_missing =
                chosen.size > 0 and port.boots.io.bootFiles().findSet(chosen.slice()) == null;
            port.boots.apply(known, now_us, .{ .suspected = .{
                .cause = if (is_missing) .nbp_not_found else .nbp_architecture_mismatch,
                .text = .init(writer.buffered()),
            } });
        }

        /// Keeps leases before the answer is sent, so that a promise survives a crash.
        fn keepLeases(port: *Self, now_us: u64) void {
            while (port.service.takeChange(now_us)) |record| port.boots.io.keepLease(&record);
        }

        fn noAddress(port: *Self, ref: ?Boots.Ref, now_us: u64) void {
            const known = ref orelse return;
            port.boots.apply(known, now_us, .{
                .suspected = .{ .cause = .address_pool_exhausted },
            });
        }
    };
}
