//! TFTP on the network: datagrams to the server, file blocks back, and what both mean for boots.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").tftp;
const Boots = @import("boots.zig").Boots;
const BootFiles = @import("boot_files.zig").BootFiles;
const UdpSocket = @import("udp_socket.zig").UdpSocket;
const assert = std.debug.assert;

const TftpServer = core.TftpServer;

pub const TftpPort = struct {
    server: TftpServer,
    boots: *Boots,
    files: *const BootFiles,
    /// Which transfer belongs to which boot, by the peer's endpoint; 0: free.
    peers: []u48,
    refs: []Boots.Ref,
    reply: TftpServer.ReplyBuffer = undefined,
    block: [wire.data_header_size + wire.blksize_max]u8 = undefined,

    pub fn init(
        gpa: std.mem.Allocator,
        server: TftpServer,
        boots: *Boots,
        files: *const BootFiles,
    ) error{OutOfMemory}!TftpPort {
        const peers = try gpa.alloc(u48, server.sessions.len);
        errdefer gpa.free(peers);
        const refs = try gpa.alloc(Boots.Ref, server.sessions.len);
        @memset(peers, 0);
        return .{ .server = server, .boots = boots, .files = files, .peers = peers, .refs = refs };
    }

    pub fn deinit(port: *TftpPort, gpa: std.mem.Allocator) void {
        port.server.deinit(gpa);
        gpa.free(port.peers);
        gpa.free(port.refs);
        port.* = undefined;
    }

    pub fn receive(port: *TftpPort, socket: *UdpSocket, now_us: u64) void {
        const count = socket.receive();
        for (0..count) |index| {
            const datagram = socket.datagram(index);
            const step = port.server.receive(now_us, datagram.from, datagram.bytes, &port.reply);
            if (step.ignored == null)
                port.countFor(
                    datagram.from,
                    now_us,
                    .{ .bytes_in = datagram.bytes.len, .packets_in = 1 },
                );
            port.act(socket, &step, now_us);
        }
    }

    /// Sends again what was not acknowledged in time.
    pub fn tick(port: *TftpPort, socket: *UdpSocket, now_us: u64) void {
        // Each step moves one deadline, so a turn cannot need more steps than there are transfers.
        for (0..port.server.sessions.len) |_| {
            const step = port.server.tick(now_us) orelse return;
            port.act(socket, &step, now_us);
        }
    }

    fn act(port: *TftpPort, socket: *UdpSocket, step: *const TftpServer.Step, now_us: u64) void {
        // What has ended goes first, so that a peer's new transfer finds its place free.
        for (step.events.constSlice()) |*event| port.tell(event, now_us);
        switch (step.send) {
            .nothing => {},
            .packet => |packet| {
                port.countFor(
                    packet.to,
                    now_us,
                    .{ .bytes_out = packet.bytes.len, .packets_out = 1 },
                );
                socket.send(packet.to, packet.bytes);
            },
            .blocks => |blocks| port.sendBlocks(socket, blocks, now_us),
        }
    }

    fn sendBlocks(
        port: *TftpPort,
        socket: *UdpSocket,
        blocks: TftpServer.Blocks,
        now_us: u64,
    ) void {
        const bytes = port.files.contents.items[blocks.file_id];
        var traffic: core.boot_phase.Traffic = .{};
        var iterator = blocks.iterate();
        while (iterator.next()) |block| {
            const size = wire.data_header_size + @as(usize, block.size);
            @memcpy(port.block[0..wire.data_header_size], &block.header);
            @memcpy(
                port.block[wire.data_header_size..size],
                bytes[@intCast(block.offset)..][0..block.size],
            );
            socket.send(blocks.to, port.block[0..size]);
            traffic.bytes_out += size;
            traffic.packets_out += 1;
        }
        port.countFor(blocks.to, now_us, traffic);
    }

    fn tell(port: *TftpPort, event: *const TftpServer.Event, now_us: u64) void {
        switch (event.*) {
            .began => |*transfer| {
                const ref = port.boots.forPath(transfer.handle, transfer.peer.ip) orelse return;
                port.remember(transfer.peer, ref);
                port.boots.learnPeer(ref, transfer.peer.ip);
                port.boots.apply(ref, now_us, .nbp_begin);
            },
            .size_asked => |*transfer| _ = port.forget(transfer.peer),
            .finished => |*finished| {
                const ref = port.forget(finished.transfer.peer) orelse return;
                port.boots.apply(ref, now_us, .{ .nbp_traffic = .{ .retries = finished.retries } });
                port.boots.apply(ref, now_us, .nbp_end);
            },
            .failed => |*failed| {
                const ref = port.forget(failed.transfer.peer) orelse return;
                port.boots.apply(ref, now_us, .{ .nbp_traffic = .{ .retries = failed.retries } });
                switch (failed.why) {
                    .peer_error => |peer_error| port.boots.apply(ref, now_us, .{ .suspected = .{
                        .cause = .tftp_refused,
                        .text = peer_error.text,
                    } }),
                    .timeout, .evicted => port.boots.apply(
                        ref,
                        now_us,
                        .{ .suspected = .{ .cause = .tftp_timeout } },
                    ),
                    .superseded, .aborted => {},
                }
            },
            .refused => |*refused| port.tellRefused(
                refused.handle,
                &refused.name,
                refused.why,
                now_us,
            ),
        }
    }

    /// Loaders probe for files that need not exist; only a program that this edge named itself is
    /// missed.
    fn tellRefused(
        port: *TftpPort,
        handle: ?core.BootHandle,
        name: *const base.UntrustedText,
        why: TftpServer.Refusal,
        now_us: u64,
    ) void {
        if (why != .not_found) return;
        const ref = port.boots.forPath(handle orelse return, .zero) orelse return;
        port.boots.apply(
            ref,
            now_us,
            .{ .suspected = .{ .cause = .nbp_not_found, .text = name.* } },
        );
    }

    fn countFor(
        port: *TftpPort,
        peer: base.Endpoint,
        now_us: u64,
        traffic: core.boot_phase.Traffic,
    ) void {
        const index = std.mem.findScalar(u48, port.peers, peer.toInt()) orelse return;
        port.boots.apply(port.refs[index], now_us, .{ .nbp_traffic = traffic });
    }

    fn remember(port: *TftpPort, peer: base.Endpoint, ref: Boots.Ref) void {
        const index = std.mem.findScalar(u48, port.peers, peer.toInt()) orelse
            std.mem.findScalar(u48, port.peers, 0) orelse return;
        port.peers[index] = peer.toInt();
        port.refs[index] = ref;
    }

    fn forget(port: *TftpPort, peer: base.Endpoint) ?Boots.Ref {
        const index = std.mem.findScalar(u48, port.peers, peer.toInt()) orelse return null;
        port.peers[index] = 0;
        return port.refs[index];
    }
};
