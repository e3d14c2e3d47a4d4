//! DHCP on the network: datagrams of port 67 and 4011 to the service, its answers back, and what
//! both mean for boots.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const Boots = @import("boots.zig").Boots;
const UdpSocket = @import("udp_socket.zig").UdpSocket;

const DhcpService = core.DhcpService;

pub const DhcpPort = struct {
    service: DhcpService,
    boots: *Boots,
    /// What devices may load first.
    programs: core.DhcpService.Programs,
    reply: DhcpService.ReplyBuffer = undefined,

    pub const Port = @FieldType(DhcpService.Arrival, "port");

    /// Everything that waits at one of the two sockets, at most one batch.
    pub fn receive(port: *DhcpPort, socket: *UdpSocket, which: Port, now_us: u64) void {
        const count = socket.receive();
        for (0..count) |index| {
            const datagram = socket.datagram(index);
            const arrival: DhcpService.Arrival = .{ .source = datagram.from, .port = which };
            port.handle(socket, arrival, datagram.bytes, now_us);
        }
    }

    fn handle(
        port: *DhcpPort,
        socket: *UdpSocket,
        arrival: DhcpService.Arrival,
        bytes: []const u8,
        now_us: u64,
    ) void {
        var ref: ?Boots.Ref = null;
        const step = switch (port.service.receive(now_us, arrival, bytes, &port.reply)) {
            .network_boot => |*request| answer: {
                ref = port.boots.forDhcp(now_us, &request.client, request.packet.xid, bytes.len);
                break :answer port.service.answer(now_us, request, port.targetOf(ref), &port.reply);
            },
            else => |other| other,
        };
        switch (step) {
            .ignored => |reason| if (reason == .dhcp_no_boot_program) port.noProgram(ref, now_us),
            .reply => |*reply| port.sendReply(socket, reply, ref, now_us),
            .learned => |learned| port.boots.learnAddress(learned.mac, learned.ip),
            .noted => {},
            .network_boot => unreachable,
        }
    }

    fn targetOf(port: *DhcpPort, ref: ?Boots.Ref) DhcpService.BootTarget {
        const boot = port.boots.get(ref orelse return .ignore) orelse return .ignore;
        // A boot that has failed gets nothing more: its device would only repeat the failure
        // without an end.
        if (boot.isOver()) switch (boot.outcome.?) {
            .failed, .superseded => return .ignore,
            .ready, .silent, .local_disk => {},
        };
        return .{ .boot = .{
            .handle = .{ .value = boot.identity.handle },
            .programs = port.programs,
        } };
    }

    fn sendReply(
        port: *DhcpPort,
        socket: *UdpSocket,
        reply: *const DhcpService.Reply,
        ref: ?Boots.Ref,
        now_us: u64,
    ) void {
        if (ref) |known| {
            if (reply.ip) |ip| if (ip.isUnicast()) {
                if (port.boots.get(known)) |boot| boot.facts.ip = ip;
            };
            port.boots.apply(
                known,
                now_us,
                .{ .dhcp_answer = .{ .size = @intCast(reply.payload.len) } },
            );
            port.boots.noteDhcpAnswer(known, now_us, port.service.options.server_ip, reply.payload);
            if (!reply.names_boot_file and reply.message_type != .nak) port.noProgram(known, now_us);
        }
        socket.send(reply.destination, reply.payload);
    }

    fn noProgram(port: *DhcpPort, ref: ?Boots.Ref, now_us: u64) void {
        const known = ref orelse return;
        port.boots.apply(known, now_us, .{ .suspected = .{ .cause = .nbp_architecture_mismatch } });
    }
};
