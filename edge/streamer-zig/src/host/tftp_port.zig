//! TFTP on the network: datagrams to the server, file blocks back, and what both mean for boots.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").tftp;
const Boots = @import("boots.zig").Boots;
const Published = @import("published.zig").Published;
const UdpSocket = @import("udp_socket.zig").UdpSocket;
const assert = std.debug.assert;

const TftpServer = core.TftpServer;

pub const TftpPort = struct {
    server: TftpServer,
    boots: *Boots,
    published: *Published,
    /// Which transfer belongs to which boot, by the peer's endpoint; 0: free.
    peers: []u48,
    owners: []Owner,
    reply: TftpServer.ReplyBuffer = undefined,
    /// The datagram that is being answered.
    said: []const u8 = &.{},
    block: [wire.data_header_size + wire.blksize_max]u8 = undefined,

    /// The boot that a transfer belongs to, and what it brings.
    const Owner = struct {
        ref: Boots.Ref,
        what: Published.What,
        /// What the peer said again that it had said before.
        repeated_acks: u16 = 0,
        /// How often its first blocks went out.
        first_sends: u16 = 0,
    };

    /// A peer that repeats itself while its first large blocks are sent over and over hears small
    /// packets only.
    const first_sends_suspicious = 4;
    const repeated_acks_suspicious = 2;

    pub fn init(
        gpa: std.mem.Allocator,
        server: TftpServer,
        boots: *Boots,
        published: *Published,
    ) error{OutOfMemory}!TftpPort {
        const peers = try gpa.alloc(u48, server.sessions.len);
        errdefer gpa.free(peers);
        const owners = try gpa.alloc(Owner, server.sessions.len);
        @memset(peers, 0);
        return .{
            .server = server,
            .boots = boots,
            .published = published,
            .peers = peers,
            .owners = owners,
        };
    }

    pub fn deinit(port: *TftpPort, gpa: std.mem.Allocator) void {
        port.server.deinit(gpa);
        gpa.free(port.peers);
        gpa.free(port.owners);
        port.* = undefined;
    }

    pub fn receive(port: *TftpPort, socket: *UdpSocket, now_us: u64) void {
        const count = socket.receive();
        for (0..count) |index| {
            const datagram = socket.datagram(index);
            const step = port.server.receive(now_us, datagram.from, datagram.bytes, &port.reply);
            if (step.ignored == null) {
                port.countFor(
                    datagram.from,
                    datagram.at_us,
                    .{ .bytes_in = datagram.bytes.len, .packets_in = 1 },
                );
                port.note(datagram.from, .from_device, datagram.bytes, datagram.at_us);
            } else if (step.ignored == .tftp_stale_ack) port.noteRepeatedAck(datagram.from);
            port.said = datagram.bytes;
            port.act(socket, &step, now_us, datagram.at_us);
        }
    }

    /// Sends again what was not acknowledged in time.
    pub fn tick(port: *TftpPort, socket: *UdpSocket, now_us: u64) void {
        // Each step moves one deadline, so a turn cannot need more steps than there are transfers.
        for (0..port.server.sessions.len) |_| {
            const step = port.server.tick(now_us) orelse return;
            port.act(socket, &step, now_us, now_us);
        }
    }

    /// `at_us`: when the packet arrived that the step is of.
    fn act(
        port: *TftpPort,
        socket: *UdpSocket,
        step: *const TftpServer.Step,
        now_us: u64,
        at_us: u64,
    ) void {
        // What has ended goes first, so that a peer's new transfer finds its place free.
        for (step.events.constSlice()) |*event| port.tell(event, at_us);
        switch (step.send) {
            .nothing => {},
            .packet => |packet| {
                port.countFor(
                    packet.to,
                    now_us,
                    .{ .bytes_out = packet.bytes.len, .packets_out = 1 },
                );
                port.note(packet.to, .from_edge, packet.bytes, now_us);
                socket.send(packet.to, packet.bytes);
            },
            .blocks => |blocks| port.sendBlocks(socket, blocks, now_us),
        }
        for (step.released.constSlice()) |source| port.published.close(source);
    }

    fn sendBlocks(
        port: *TftpPort,
        socket: *UdpSocket,
        blocks: TftpServer.Blocks,
        now_us: u64,
    ) void {
        const memory = port.published.memory(blocks.source);
        var traffic: core.boot_phase.Traffic = .{};
        var iterator = blocks.iterate();
        while (iterator.next()) |block| {
            const size = wire.data_header_size + @as(usize, block.size);
            @memcpy(port.block[0..wire.data_header_size], &block.header);
            const content = port.block[wire.data_header_size..size];
            if (memory) |bytes|
                @memcpy(content, bytes[@intCast(block.offset)..][0..block.size])
            else
                port.published.read(blocks.source, content, block.offset) catch {
                    const step = port.server.abort(blocks.to, &port.reply);
                    return port.act(socket, &step, now_us, now_us);
                };
            socket.send(blocks.to, port.block[0..size]);
            traffic.bytes_out += size;
            traffic.packets_out += 1;
        }
        port.countFor(blocks.to, now_us, traffic);
        const owner = port.ownerOf(blocks.to) orelse return;
        const last = blocks.first + blocks.count - 1;
        port.boots.note(owner.ref, now_us, .from_edge, .{ .name = .tftp_data, .number = last });
        if (blocks.first == 1) port.noteFirstBlocks(owner, blocks.blksize, now_us);
    }

    /// What was suspected while the transfer went on says more.
    fn suspectTimeout(port: *TftpPort, ref: Boots.Ref, now_us: u64) void {
        const boot = port.boots.get(ref) orelse return;
        if (boot.suspicion) |earlier| if (earlier.cause == .path_mtu_black_hole) return;
        port.boots.apply(ref, now_us, .{ .suspected = .{ .cause = .tftp_timeout } });
    }

    fn noteRepeatedAck(port: *TftpPort, peer: base.Endpoint) void {
        const owner = port.ownerOf(peer) orelse return;
        owner.repeated_acks +|= 1;
    }

    fn noteFirstBlocks(port: *TftpPort, owner: *Owner, blksize: u16, now_us: u64) void {
        owner.first_sends +|= 1;
        if (blksize <= wire.blksize_default) return;
        if (owner.first_sends < first_sends_suspicious or owner.repeated_acks < repeated_acks_suspicious) return;
        var buffer: [base.UntrustedText.size_max]u8 = undefined;
        const text = std.mem.print(&buffer, "TFTP blocks of {d} bytes are not acknowledged", .{blksize}) catch unreachable;
        port.boots.apply(owner.ref, now_us, .{
            .suspected = .{ .cause = .path_mtu_black_hole, .text = .init(text) },
        });
    }

    /// Of the ERROR that is being answered.
    fn errorText(port: *const TftpPort) base.UntrustedText {
        const packet = wire.parse(port.said) catch return .empty;
        return if (packet == .err) .init(packet.err.text) else .empty;
    }

    fn ownerOf(port: *TftpPort, peer: base.Endpoint) ?*Owner {
        const index = std.mem.findScalar(u48, port.peers, peer.toInt()) orelse return null;
        return &port.owners[index];
    }

    /// Names a packet of a transfer, without looking into it further than its first four bytes.
    fn note(
        port: *TftpPort,
        peer: base.Endpoint,
        direction: core.boot_packets.Direction,
        bytes: []const u8,
        now_us: u64,
    ) void {
        const ref = port.refOf(peer) orelse return;
        if (core.boot_packets.ofTftp(bytes)) |packet| port.boots.note(ref, now_us, direction, packet);
    }

    fn refOf(port: *const TftpPort, peer: base.Endpoint) ?Boots.Ref {
        const index = std.mem.findScalar(u48, port.peers, peer.toInt()) orelse return null;
        return port.owners[index].ref;
    }

    fn tell(port: *TftpPort, event: *const TftpServer.Event, now_us: u64) void {
        switch (event.*) {
            .began => |*transfer| {
                const ref = port.boots.forPath(transfer.handle, transfer.peer.ip) orelse return;
                const owner: Owner = .{ .ref = ref, .what = port.published.what(transfer.file.source) };
                port.remember(transfer.peer, owner);
                port.boots.learnPeer(ref, transfer.peer.ip);
                port.boots.apply(ref, now_us, switch (owner.what) {
                    .boot_program => .nbp_begin,
                    else => |what| .{ .loader_begin = loaderFile(what) },
                });
                port.boots.note(ref, now_us, .from_device, .{ .name = .tftp_read_request });
            },
            .size_asked => |*transfer| {
                const owner = port.forget(transfer.peer) orelse return;
                // OVMF says so when it only wanted the size, and asks again.
                port.boots.apply(owner.ref, now_us, .{
                    .suspected = .{ .cause = .tftp_option_refused, .text = port.errorText() },
                });
            },
            .finished => |*finished| {
                const owner = port.forget(finished.transfer.peer) orelse return;
                port.apply(owner, .{ .retries = finished.retries }, now_us);
                port.boots.apply(owner.ref, now_us, switch (owner.what) {
                    .boot_program => .nbp_end,
                    else => |what| .{ .loader_end = loaderFile(what) },
                });
            },
            .failed => |*failed| {
                const owner = port.forget(failed.transfer.peer) orelse return;
                port.apply(owner, .{ .retries = failed.retries }, now_us);
                switch (failed.why) {
                    .peer_error => |peer_error| port.boots.apply(owner.ref, now_us, .{
                        .suspected = .{ .cause = .tftp_refused, .text = peer_error.text },
                    }),
                    .timeout, .evicted => port.suspectTimeout(owner.ref, now_us),
                    .superseded, .aborted => {},
                }
            },
            .refused => |*refused| port.tellRefused(refused, now_us),
        }
    }

    fn loaderFile(what: Published.What) core.boot.LoaderFile {
        return switch (what) {
            .boot_program => unreachable,
            .configuration => .script,
            .kernel => .kernel,
            .initrd => .initrd,
        };
    }

    fn apply(
        port: *TftpPort,
        owner: Owner,
        traffic: core.boot_phase.Traffic,
        now_us: u64,
    ) void {
        port.boots.apply(owner.ref, now_us, switch (owner.what) {
            .boot_program => .{ .nbp_traffic = traffic },
            else => .{ .loader_traffic = traffic },
        });
    }

    /// Loaders probe for files that need not exist; only a program that this edge named itself is
    /// missed. The probes of some show that they run.
    fn tellRefused(port: *TftpPort, refused: *const @FieldType(TftpServer.Event, "refused"), now_us: u64) void {
        if (refused.why != .not_found) return;
        const name = refused.name.slice();
        const is_loaders = core.grub_config.isProbe(name) or core.pxelinux_config.isProbe(name);
        if (refused.handle == null and !is_loaders) return;
        const ref = port.boots.forPath(refused.handle, refused.peer.ip) orelse return;
        port.boots.note(ref, now_us, .from_device, .{ .name = .tftp_read_request });
        port.boots.note(ref, now_us, .from_edge, .{
            .name = .tftp_error,
            .number = @backingInt(wire.ErrorCode.file_not_found),
        });
        if (is_loaders) return port.boots.apply(ref, now_us, .{ .loader_begin = .other });
        const boot = port.boots.get(ref) orelse return;
        if (boot.facts.program) |*program| if (!program.file.eql(&refused.name)) return;
        port.boots.apply(
            ref,
            now_us,
            .{ .suspected = .{ .cause = .nbp_not_found, .text = refused.name } },
        );
    }

    fn countFor(
        port: *TftpPort,
        peer: base.Endpoint,
        now_us: u64,
        traffic: core.boot_phase.Traffic,
    ) void {
        const index = std.mem.findScalar(u48, port.peers, peer.toInt()) orelse return;
        port.apply(port.owners[index], traffic, now_us);
    }

    fn remember(port: *TftpPort, peer: base.Endpoint, owner: Owner) void {
        const index = std.mem.findScalar(u48, port.peers, peer.toInt()) orelse
            std.mem.findScalar(u48, port.peers, 0) orelse return;
        port.peers[index] = peer.toInt();
        port.owners[index] = owner;
    }

    fn forget(port: *TftpPort, peer: base.Endpoint) ?Owner {
        const index = std.mem.findScalar(u48, port.peers, peer.toInt()) orelse return null;
        port.peers[index] = 0;
        return port.owners[index];
    }
};
