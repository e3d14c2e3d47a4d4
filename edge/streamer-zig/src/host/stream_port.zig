//! The stream on the network: datagrams to the stream server, disk bytes back, and what both mean
//! for boots.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const Boots = @import("boots.zig").Boots;
const version_table = @import("version_table.zig");
const udp_socket = @import("udp_socket.zig");
const write_layers = @import("write_layers.zig");
const assert = std.debug.assert;

const StreamServer = core.StreamServer;
const UdpSocket = udp_socket.UdpSocket;
const Segment = udp_socket.Segment;

pub const StreamPort = struct {
    server: StreamServer,
    boots: *Boots,
    /// The bytes of one READ.
    buffer: []u8,
    segments: []Segment,
    reply: StreamServer.ReplyBuffer = undefined,
    store_errors: u64 = 0,
    /// Of disks, and how often they were read, since the start.
    sent_bytes: u64 = 0,
    reads: u64 = 0,
    /// Null where no device's writes can be kept.
    layers: ?*write_layers.WriteLayers = null,

    /// 20 bytes of IP, 8 of UDP, 16 of the stream's header.
    const overhead_size = 44;

    pub fn init(
        gpa: std.mem.Allocator,
        server: StreamServer,
        boots: *Boots,
    ) error{OutOfMemory}!StreamPort {
        const buffer = try gpa.alloc(u8, wire.read_size_max);
        errdefer gpa.free(buffer);
        const segments = try gpa.alloc(Segment, wire.fragments_max);
        return .{ .server = server, .boots = boots, .buffer = buffer, .segments = segments };
    }

    pub fn deinit(port: *StreamPort, gpa: std.mem.Allocator) void {
        port.server.deinit(gpa);
        gpa.free(port.buffer);
        gpa.free(port.segments);
        port.* = undefined;
    }

    pub fn receive(port: *StreamPort, socket: *UdpSocket, now_us: u64) void {
        const count = socket.receive();
        for (0..count) |index| {
            const datagram = socket.datagram(index);
            port.handle(socket, &datagram, now_us);
        }
        if (port.layers) |layers| layers.beginSyncs();
    }

    /// Syncs have ended: who waited for them is told, and those who came meanwhile get the next one.
    pub fn endSyncs(port: *StreamPort, socket: *UdpSocket) void {
        const layers = port.layers orelse return;
        while (layers.takeEnded()) |ended| {
            const layer = ended.layer;
            for (layer.waiting[0..layer.syncing_count]) |ref| port.finishWrite(socket, ref, ended.code);
            layers.release(layer);
        }
        layers.beginSyncs();
    }

    fn finishWrite(port: *StreamPort, socket: *UdpSocket, ref: StreamServer.WriteRef, code: ?wire.WriteCode) void {
        const outgoing = port.server.finishWrite(ref, code, &port.reply) orelse return;
        socket.send(outgoing.to, outgoing.packet);
    }

    fn carryOut(port: *StreamPort, socket: *UdpSocket, ref: StreamServer.WriteRef, order: write_layers.WriteLayers.Order) void {
        const layers = port.layers orelse return port.finishWrite(socket, ref, .cache_lost);
        const layer = layers.find(ref.boot_id) orelse return port.finishWrite(socket, ref, .cache_lost);
        switch (layers.carryOut(layer, ref, order)) {
            .ended => |code| port.finishWrite(socket, ref, code),
            .waits => {},
            .later => port.finishWrite(socket, ref, null),
        }
    }

    /// What it means for its boot happened when it arrived.
    fn handle(
        port: *StreamPort,
        socket: *UdpSocket,
        datagram: *const udp_socket.Datagram,
        now_us: u64,
    ) void {
        const from, const bytes, const at_us = .{ datagram.from, datagram.bytes, datagram.at_us };
        switch (port.server.receive(now_us, from, bytes, &port.reply)) {
            .ignored, .taken => {},
            .reply => |packet| socket.send(from, packet),
            .admit => |*claim| port.admit(socket, claim, datagram, now_us),
            .read => |*read| port.answerRead(socket, read, bytes.len, at_us),
            .write => |*write| port.carryOut(socket, write.ref, .{
                .write = .{ .offset = write.offset, .bytes = write.bytes },
            }),
            .control => |*control| port.carryOut(socket, control.ref, switch (control.operation) {
                .flush => .flush,
                .discard => .{ .discard = .{ .offset = control.offset, .length = control.length } },
            }),
            .ready => |*ready| {
                port.becomeReady(ready, at_us);
                socket.send(from, ready.reply);
            },
            .report => |*report| {
                var said = report.*;
                if (port.layerOf(report.boot_id)) |layer| {
                    said.report.write_cache_size = layer.inner.head.limit_bytes;
                    said.report.write_cache_used = @min(layer.inner.usedBytes(), layer.inner.head.limit_bytes);
                }
                const ack = port.boots.takeReport(at_us, &said);
                socket.send(from, port.server.acknowledgeReport(report, ack, &port.reply));
            },
        }
    }

    fn admit(
        port: *StreamPort,
        socket: *UdpSocket,
        claim: *const StreamServer.Claim,
        datagram: *const udp_socket.Datagram,
        now_us: u64,
    ) void {
        const ref = port.boots.table.findById(claim.boot_id);
        const admission = port.server.admit(now_us, claim.*, port.grantOf(ref, claim), &port.reply);
        if (ref) |known| port.noteAdmission(known, claim, &admission, datagram);
        if (admission.reply) |packet| socket.send(claim.from, packet);
    }

    fn layerOf(port: *StreamPort, boot_id: base.Uuid) ?*write_layers.Layer {
        const layers = port.layers orelse return null;
        return layers.find(boot_id);
    }

    fn grantOf(port: *StreamPort, ref: ?Boots.Ref, claim: *const StreamServer.Claim) StreamServer.Grant {
        const boot = port.boots.get(ref orelse return .unknown) orelse return .unknown;
        if (boot.outcome) |outcome| if (outcome == .superseded) return .unknown;
        const version = port.boots.versionOf(boot) orelse return .version_missing;
        var known: StreamServer.Grant.Boot = .{
            .token = boot.identity.token,
            .token_nonce = boot.token_nonce,
            .version_id = version.id,
            .disk_size = version.disk.size(),
        };
        // Who is nobody gets no layer made.
        if (!port.server.proofHolds(claim.*, known)) return .{ .boot = known };
        const wanted = port.boots.writeCacheOf(boot) orelse return .{ .no_cache = .cache_failed };
        const layers = port.layers orelse
            return if (wanted.class == .device_ram) .{ .boot = known } else .{ .no_cache = .cache_failed };
        switch (layers.grant(boot, version.disk.source(), wanted, claim.kind)) {
            .none => {},
            .cache => |cache| known.write_cache = cache,
            .refused => |code| return .{ .no_cache = code },
        }
        return .{ .boot = known };
    }

    fn noteAdmission(
        port: *StreamPort,
        ref: Boots.Ref,
        claim: *const StreamServer.Claim,
        admission: *const StreamServer.Admission,
        datagram: *const udp_socket.Datagram,
    ) void {
        const boots, const at_us = .{ port.boots, datagram.at_us };
        const boot = boots.get(ref) orelse return;
        boot.note(at_us, .from_device, .{ .name = .stream_hello });
        if (admission.reply != null) boot.note(at_us, .from_edge, .{ .name = .stream_answer });
        switch (admission.outcome) {
            .opened, .resumed => {
                if (admission.outcome == .opened) boot.token_nonce = claim.client_nonce;
                boots.learnPeer(ref, claim.from.ip);
                const session = port.server.sessionOf(claim.boot_id) orelse return;
                boots.apply(ref, at_us, .{ .stream_open = .{
                    .resumed = admission.outcome == .resumed,
                    .mtu = session.fragment_size + overhead_size,
                } });
                boots.journalNow(boot);
            },
            .token_refused => if (isOfDevice(boot, claim.from.ip) and !boot.stream_was_open)
                boots.apply(ref, at_us, .{ .suspected = .{ .cause = .token_refused } }),
            .version_missing => boots.apply(
                ref,
                at_us,
                .{ .failed = .{ .cause = .version_missing } },
            ),
            .no_cache => |code| if (causeOf(code)) |cause| boots.apply(ref, at_us, .{ .failed = .{ .cause = cause } }),
            .repeated, .busy, .stale => {},
        }
        const answered: u64 = if (admission.reply) |packet| packet.len else 0;
        boots.apply(ref, at_us, .{ .stream_traffic = .{
            .bytes_in = datagram.bytes.len,
            .packets_in = 1,
            .bytes_out = answered,
            .packets_out = @intFromBool(answered > 0),
        } });
    }

    /// Null: the device asks again.
    fn causeOf(code: wire.RefuseCode) ?core.boot_phase.Cause {
        return switch (code) {
            .cache_lost => .write_cache_lost,
            .cache_version => .write_cache_of_another_version,
            .cache_failed => .write_cache_unusable,
            .busy => null,
            .token_refused, .version_missing, .protocol_version => unreachable,
        };
    }

    /// A stranger who knows the boot's id must not be able to make it look failed.
    fn isOfDevice(boot: *const core.boot.Boot, ip: base.Ip4) bool {
        const known = boot.facts.ip orelse return false;
        return known.eql(ip);
    }

    fn answerRead(
        port: *StreamPort,
        socket: *UdpSocket,
        read: *const StreamServer.ReadRequest,
        size: usize,
        at_us: u64,
    ) void {
        const ref = port.boots.table.findById(read.boot_id) orelse {
            // Its place was given to another boot: the device has to say hello again.
            port.server.forget(read.boot_id);
            return;
        };
        port.boots.apply(ref, at_us, .{ .stream_read = .{
            .size = read.length,
            .attempt = @intFromBool(read.repeated),
            .missing_fragments = if (read.repeated) read.packets_out else 0,
        } });
        port.boots.note(ref, at_us, .from_device, .{ .name = .stream_read, .number = read.offset });
        port.sendFragments(socket, read) catch |err| {
            if (err == error.Lost) return socket.send(read.to, StreamServer.readError(read.*, .cache_lost, &port.reply));
            port.store_errors += 1;
            port.boots.note(ref, at_us, .from_edge, .{ .name = .stream_store_error });
            port.boots.apply(ref, at_us, .store_error);
            socket.send(read.to, StreamServer.readError(read.*, .store_error, &port.reply));
            return;
        };
        port.sent_bytes += read.bytes_out;
        port.reads += 1;
        port.boots.apply(ref, at_us, .{ .stream_traffic = .{
            .bytes_in = size,
            .packets_in = 1,
            .bytes_out = read.bytes_out + @as(u64, read.packets_out) * wire.header_size,
            .packets_out = read.packets_out,
        } });
        port.boots.note(ref, at_us, .from_edge, .{ .name = .stream_bytes, .number = read.offset });
    }

    fn sendFragments(
        port: *StreamPort,
        socket: *UdpSocket,
        read: *const StreamServer.ReadRequest,
    ) error{ StoreError, Lost }!void {
        // What lies below is never served in place of what was written.
        const layer = if (read.write_cache == .device_ram) null else port.layerOf(read.boot_id) orelse return error.Lost;
        const version = port.boots.versions.find(read.version_id) orelse return error.StoreError;
        var count: usize = 0;
        var fragments = read.fragments();
        while (fragments.next()) |fragment| {
            // Bytes lie in the buffer where they lie in the read, so that one that asks for all is
            // read at once.
            const at: usize = @intCast(fragment.offset - read.offset);
            const bytes = port.buffer[at..][0..fragment.length];
            port.segments[count] = .{ .header = fragment.header, .bytes = bytes };
            count += 1;
        }
        assert(count > 0);
        if (read.ranges.count() == 0) {
            try readDisk(layer, version, port.buffer[0..read.length], read.offset);
        } else for (port.segments[0..count]) |segment| {
            const at = @intFromPtr(segment.bytes.ptr) - @intFromPtr(port.buffer.ptr);
            try readDisk(layer, version, port.buffer[at..][0..segment.bytes.len], read.offset + at);
        }
        socket.sendSegments(read.to, port.segments[0..count]);
    }

    fn readDisk(
        layer: ?*write_layers.Layer,
        version: *version_table.Version,
        buffer: []u8,
        offset: u64,
    ) error{ StoreError, Lost }!void {
        const above = layer orelse return version.disk.source().read(buffer, offset) catch error.StoreError;
        return above.inner.read(buffer, offset) catch |err| if (err == error.Lost) error.Lost else error.StoreError;
    }

    fn becomeReady(port: *StreamPort, ready: *const StreamServer.ReadyReport, at_us: u64) void {
        const ref = port.boots.table.findById(ready.boot_id) orelse return;
        port.boots.note(ref, at_us, .from_device, .{ .name = .stream_ready });
        port.boots.note(ref, at_us, .from_edge, .{ .name = .stream_ready_ack });
        port.boots.apply(ref, at_us, switch (ready.outcome) {
            .ready => .{ .ready = .stream },
            .failed => blk: {
                const failure = core.boot_cause.failureOf(ready.code.slice(), ready.sentence.slice());
                break :blk .{ .failed = .{ .cause = failure.cause, .text = failure.text } };
            },
        });
    }
};
