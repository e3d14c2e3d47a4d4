//! The stream on the network: datagrams to the stream server, disk bytes back, and what both mean
//! for boots.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const Boots = @import("../boots/boots.zig").Boots;
const VersionDisk = @import("version_disk.zig").VersionDisk;
const shard_messages = @import("shard_messages.zig");
const sys = @import("../sys.zig");
const LayerHold = @import("layer_hold.zig").LayerHold;
const stream_failover = @import("failover.zig");
const stream_reads = @import("reads.zig");
const stream_sending = @import("sending.zig");
const SessionBoots = @import("../boots/session_boots.zig").SessionBoots;
const StreamShards = @import("shards.zig").StreamShards;
const udp_socket = @import("../net/udp_socket.zig");
const write_layers = @import("write_layers.zig");
const assert = std.debug.assert;

const StreamServer = core.stream.Server;
const UdpSocket = udp_socket.UdpSocket;
const Arrival = @import("read_queue.zig").Arrival;
const StreamReads = stream_reads.StreamReads;

pub const StreamPort = struct {
    server: StreamServer,
    boots: *Boots,
    reads: StreamReads,
    session_boots: SessionBoots,
    /// Packets that go out together.
    sealed: []u8,
    large: StreamServer.LargeBuffer = undefined,
    reply: StreamServer.ReplyBuffer = undefined,
    store_errors: u64 = 0,
    /// Of disks, and how often they were read, since the start.
    sent_bytes: u64 = 0,
    reads_count: u64 = 0,
    /// Null where no device's writes can be kept.
    layers: ?*write_layers.WriteLayers = null,
    /// Null where nobody works for the store.
    hold: ?*LayerHold = null,
    /// Null where this loop serves all devices itself.
    shards: ?*StreamShards = null,
    started_us: ?u64 = null,

    pub const Options = StreamReads.Options;

    /// 20 bytes of IP, 8 of UDP.
    const overhead_size = 28;

    pub fn init(
        gpa: std.mem.Allocator,
        server: StreamServer,
        boots: *Boots,
        options: Options,
    ) StreamReads.InitError!StreamPort {
        var reads_options = options;
        reads_options.queue.flows = @intCast(server.sessions.len);
        var reads: StreamReads = try .init(gpa, reads_options);
        errdefer reads.deinit(gpa);
        var session_boots: SessionBoots = try .init(gpa, server.sessions.len);
        errdefer session_boots.deinit(gpa);
        const sealed = try gpa.alloc(u8, stream_sending.sealed_size);
        return .{ .server = server, .boots = boots, .reads = reads, .session_boots = session_boots, .sealed = sealed };
    }

    /// The threads that read disks: until `deinit`, or until the process ends.
    pub fn start(port: *StreamPort) std.Thread.SpawnError!void {
        try port.reads.workers.start();
        if (port.shards) |shards| try shards.start();
    }

    /// Shards end; all that they have counted is.
    pub fn stopShards(port: *StreamPort, socket: *UdpSocket) void {
        const shards = port.shards orelse return;
        shards.stop();
        port.drainShards(socket, sys.monotonicUs());
    }

    /// What shards have done, and what came to them and is this loop's.
    pub fn drainShards(port: *StreamPort, socket: *UdpSocket, now_us: u64) void {
        const shards = port.shards orelse return;
        shards.clearWake();
        for (shards.shards) |shard| {
            while (shard.events.next()) |event| : (shard.events.done()) port.takeReadEvent(event);
            while (shard.forwarded.next()) |forwarded| : (shard.forwarded.done())
                port.handle(socket, &.{
                    .from = forwarded.from,
                    .bytes = forwarded.bytes[0..forwarded.size],
                    .at_us = forwarded.at_us,
                }, now_us);
        }
        shards.sync(&port.server, port.boots);
    }

    pub fn deinit(port: *StreamPort, gpa: std.mem.Allocator) void {
        port.reads.deinit(gpa);
        port.session_boots.deinit(gpa);
        port.server.deinit(gpa);
        gpa.free(port.sealed);
        port.* = undefined;
    }

    pub fn receive(port: *StreamPort, socket: *UdpSocket, now_us: u64) void {
        const count = socket.receive();
        // READs came before what their devices say after them.
        port.drainShards(socket, now_us);
        for (0..count) |index| {
            if (index == 0) port.expect(socket.sender(0));
            if (index + 1 < count) port.expect(socket.sender(index + 1));
            const datagram = socket.datagram(index);
            port.handle(socket, &datagram, now_us);
        }
        if (port.layers) |layers| layers.beginSyncs();
    }

    /// A device's packet is next: what is known of it is fetched while the one before is served.
    fn expect(port: *const StreamPort, from: base.Endpoint) void {
        port.session_boots.prefetch(&port.server, &port.boots.table, from);
    }

    /// The boot that a READ is of.
    fn bootOf(port: *StreamPort, read: *const StreamServer.ReadRequest) ?Boots.Ref {
        return port.session_boots.find(&port.boots.table, read);
    }

    /// Syncs have ended: who waited for them is told, and those who came meanwhile get the next one.
    pub fn endSyncs(port: *StreamPort, socket: *UdpSocket) void {
        const layers = port.layers orelse return;
        while (layers.takeEnded()) |ended| {
            const layer = ended.layer;
            if (ended.code != .done) port.boots.noteWriteCache(layer.boot_id, sys.monotonicUs(), layer.held());
            for (layer.waiting[0..layer.syncing_count]) |ref| port.finishWrite(socket, ref, ended.code);
            layers.release(layer);
        }
        layers.beginSyncs();
    }

    /// Once a second.
    pub fn tick(port: *StreamPort, now_us: u64) void {
        const started_us = port.started_us orelse now_us;
        port.started_us = started_us;
        port.server.expire(now_us);
        if (port.shards) |shards| shards.sync(&port.server, port.boots);
        stream_failover.forgetUnconfirmed(port.boots, now_us);
        if (port.hold) |hold| if (hold.asked()) |subject| if (subject == .device)
            hold.tell(subject, if (port.boots.policy.ownsWritesOf(subject.device)) .waiting else .held);
        const layers = port.layers orelse return;
        layers.tick(now_us, &port.boots.table);
        layers.closeSilent(&port.server, now_us);
        const hold = port.hold orelse return;
        if (hold.asked() == null) layers.held_version = null;
        // After a start, devices that are there have to be heard first.
        if (now_us - started_us < write_layers.heard_us) return;
        hold.setWritten(&layers.writtenVersions(&port.server, now_us));
        const subject = hold.asked() orelse return;
        if (subject == .version) hold.tell(subject, layers.holdVersion(subject.version, &port.server, now_us));
    }

    fn finishWrite(port: *StreamPort, socket: *UdpSocket, ref: StreamServer.WriteRef, code: ?wire.WriteCode) void {
        const outgoing = port.server.finishWrite(ref, code, &port.reply) orelse return;
        socket.send(outgoing.to, outgoing.packet);
    }

    fn carryOut(port: *StreamPort, socket: *UdpSocket, ref: StreamServer.WriteRef, order: write_layers.WriteLayers.Order) void {
        const layers = port.layers orelse return port.finishWrite(socket, ref, .cache_lost);
        const layer = layers.find(ref.boot_id) orelse return port.finishWrite(socket, ref, .cache_lost);
        switch (layers.carryOut(layer, ref, order)) {
            .ended => |code| {
                if (code != .done) port.boots.noteWriteCache(ref.boot_id, sys.monotonicUs(), layer.held());
                port.finishWrite(socket, ref, code);
            },
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
        const step = port.server.receive(now_us, from, bytes, &port.reply);
        const speaks: ?Boots.Ref = switch (step) {
            .read => |*read| port.bootOf(read),
            .ready => |*ready| port.boots.table.findById(ready.boot_id),
            .report => |*report| port.boots.table.findById(report.boot_id),
            .ignored, .taken, .reply, .admit, .probe, .used, .write, .control => null,
        };
        if (speaks) |ref| stream_failover.confirm(port.boots, &port.server, ref, at_us);
        switch (step) {
            .ignored, .taken => {},
            .reply => |packet| socket.send(from, packet),
            .admit => |*claim| port.admit(socket, claim, datagram, now_us),
            .read => |*read| port.takeRead(socket, read, speaks, .{ .size = bytes.len, .at_us = at_us }),
            .probe => |probe| if (port.server.answerProbe(probe, &port.large)) |packet| socket.send(from, packet),
            .used => |*used| port.boots.noteUsed(used),
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
                    // Of a device that has memory for it first, both together.
                    const is_shared = layer.class == .device_ram_overflow;
                    const size, const in_memory = if (is_shared) .{ said.report.write_cache_size, said.report.write_cache_used } else .{ 0, 0 };
                    said.report.write_cache_size = layer.inner.head.limit_bytes +| size;
                    // One that takes nothing more is full, though a block's room may be left.
                    const used = if (layer.is_closed) layer.inner.head.limit_bytes else layer.inner.usedBytes();
                    said.report.write_cache_used = @min(used, layer.inner.head.limit_bytes) +| in_memory;
                }
                const ack = port.boots.takeReport(at_us, &said);
                if (port.layerOf(report.boot_id)) |layer|
                    port.boots.noteWriteCache(report.boot_id, at_us, layer.held())
                else
                    port.boots.noteLocalDisk(report.boot_id, at_us);
                const answer = if (port.wantsHello(report))
                    port.server.requestHello(report, bytes, &port.reply)
                else
                    port.server.acknowledgeReport(report, ack, &port.reply);
                if (answer) |packet| socket.send(from, packet);
            },
        }
    }

    /// Its report is said again behind the hello: nothing of it is lost, nor an order that waits for the device.
    fn wantsHello(port: *StreamPort, report: *const StreamServer.DeviceReport) bool {
        const session = port.server.findById(report.session_id) orelse return false;
        return stream_failover.isOutdated(port.boots, session);
    }

    fn admit(
        port: *StreamPort,
        socket: *UdpSocket,
        claim: *const StreamServer.Claim,
        datagram: *const udp_socket.Datagram,
        now_us: u64,
    ) void {
        var why: Why = .{};
        const is_moving = claim.hello.kind == .ticket;
        const known = if (is_moving) null else port.boots.table.findById(claim.boot_id);
        const grant = if (is_moving) stream_failover.grantOf(port.boots, &port.server, claim) else port.grantOf(known, claim, &why);
        const admission = port.server.admit(now_us, claim.*, grant, &port.reply);
        // Its shard has the session when the device's first READ comes.
        if (port.shards) |shards| shards.sync(&port.server, port.boots);
        // Of one that comes from another edge nothing is told before it is sure that it does.
        if (known) |ref| port.noteAdmission(ref, .{ .claim = claim, .admission = &admission, .why = why }, datagram);
        if (port.server.showSize(&admission, &port.large)) |packet| socket.send(claim.from, packet);
        if (admission.reply) |packet| socket.send(claim.from, packet);
    }

    pub fn diskOf(port: *StreamPort, version_id: base.Uuid) ?*VersionDisk {
        const version = port.boots.versions.find(version_id) orelse return null;
        return &version.disk;
    }

    pub fn layerOf(port: *StreamPort, boot_id: base.Uuid) ?*write_layers.Layer {
        const layers = port.layers orelse return null;
        return layers.find(boot_id);
    }

    /// What a boot is told beside that it is refused; null: what the refusal stands for.
    const Why = struct { cause: ?core.boot.phase.Cause = null, text: base.UntrustedText = .empty };

    fn grantOf(port: *StreamPort, ref: ?Boots.Ref, claim: *const StreamServer.Claim, why: *Why) StreamServer.Grant {
        const boot = port.boots.get(ref orelse return .unknown) orelse return .unknown;
        if (boot.outcome) |outcome| if (outcome == .superseded) return .unknown;
        if (stream_failover.isUnconfirmed(boot)) return .unknown;
        const owner_blocker = port.boots.writeOwnerBlocker(boot);
        if (owner_blocker) |blocker| why.* = .{ .cause = blocker.cause, .text = blocker.text };
        const version = port.boots.versionOf(boot) orelse return .version_missing;
        var known: StreamServer.Grant.Boot = .{
            .token = boot.identity.token,
            .token_nonce = boot.token_nonce,
            .version_id = version.id,
            .disk_size = version.disk.size(),
            .profile_size = if (port.boots.profiles) |profiles| profiles.sizeFor(boot) else 0,
        };
        // Who is nobody gets no layer made.
        if (!port.server.proofHolds(claim, &known)) return .{ .boot = known };
        // What is open here was begun here: a device that writes it goes on.
        if (owner_blocker != null and port.layerOf(boot.identity.id) == null) return .{ .no_cache = .cache_failed };
        why.* = .{};
        if (boot.assignment.writes and version.layer_above == null) {
            why.* = .{ .text = .init("the version is sealed: start the device again") };
            return .{ .no_cache = .cache_failed };
        }
        const wanted = port.boots.writeCacheOf(boot) orelse return .{ .no_cache = .cache_failed };
        const layers = port.layers orelse {
            if (wanted.class.isAtTheEdge()) return .{ .no_cache = .cache_failed };
            known.failover = stream_failover.failoverOf(port.boots, &port.server, boot, &known);
            return .{ .boot = known };
        };
        const below: write_layers.Below = .{ .source = version.disk.source(), .root = version.disk.root() };
        switch (layers.grant(boot, below, wanted, claim.hello.kind)) {
            .none => {},
            .cache => |cache| known.write_cache = cache,
            .refused => |refusal| {
                why.* = .{ .text = refusal.text };
                return .{ .no_cache = refusal.code };
            },
        }
        known.failover = stream_failover.failoverOf(port.boots, &port.server, boot, &known);
        return .{ .boot = known };
    }

    const Asked = struct {
        claim: *const StreamServer.Claim,
        admission: *const StreamServer.Admission,
        why: Why,
    };

    fn noteAdmission(
        port: *StreamPort,
        ref: Boots.Ref,
        asked: Asked,
        datagram: *const udp_socket.Datagram,
    ) void {
        const boots, const at_us = .{ port.boots, datagram.at_us };
        const claim, const admission = .{ asked.claim, asked.admission };
        const boot = boots.get(ref) orelse return;
        boot.onPacket(at_us, .from_device, .{ .name = .stream_hello });
        if (admission.reply != null) boot.onPacket(at_us, .from_edge, .{ .name = .stream_answer });
        switch (admission.outcome) {
            .opened, .resumed => {
                if (admission.outcome == .opened) {
                    boot.token_nonce = claim.hello.client_nonce;
                    boots.beginProfile(boot);
                }
                boots.learnPeer(ref, claim.from.ip);
                const session = port.server.sessionOf(claim.boot_id) orelse return;
                if (admission.outcome == .resumed and session.write_cache.class != .device_ram)
                    core.boot.failover.onDeviceReturn(boot, at_us);
                boots.apply(ref, at_us, .{ .stream_open = .{
                    .resumed = admission.outcome == .resumed,
                    .mtu = @min(session.packet_size_max, wire.packet_size_ethernet) + overhead_size,
                    .cipher = session.cipher(),
                } });
                boots.journalNow(boot);
            },
            .token_refused => if (isOfDevice(boot, claim.from.ip) and !boot.stream_was_open)
                boots.apply(ref, at_us, .{ .suspected = .{ .cause = .token_refused } }),
            .version_missing => boots.apply(
                ref,
                at_us,
                .{ .failed = .{ .cause = asked.why.cause orelse .version_missing, .text = asked.why.text } },
            ),
            .no_cache => |code| if (asked.why.cause orelse causeOf(code)) |cause|
                boots.apply(ref, at_us, .{ .failed = .{ .cause = cause, .text = asked.why.text } }),
            .no_cipher => boots.apply(ref, at_us, .{ .failed = .{
                .cause = .stream_unreachable,
                .text = .init("no cipher in common with the edge; clear text needs its --clear"),
            } }),
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

    /// Null: the device asks again, here or at its own edge.
    fn causeOf(code: wire.RefuseCode) ?core.boot.phase.Cause {
        return switch (code) {
            .cache_lost => .write_cache_lost,
            .cache_version => .write_cache_of_another_version,
            .cache_failed => .write_cache_unusable,
            .cache_elsewhere => null,
            .busy => null,
            .token_refused, .version_missing, .no_cipher => unreachable,
        };
    }

    /// A stranger who knows the boot's id must not be able to make it look failed.
    fn isOfDevice(boot: *const core.boot.Boot, ip: base.Ip4) bool {
        const known = boot.facts.ip orelse return false;
        return known.eql(ip);
    }

    fn takeRead(port: *StreamPort, socket: *UdpSocket, read: *const StreamServer.ReadRequest, boot: ?Boots.Ref, arrival: Arrival) void {
        const ref = boot orelse {
            // Its place was given to another boot: the device has to say hello again.
            port.server.forget(read.boot_id);
            return;
        };
        if (read.kind == .profile) return port.answerProfile(socket, read, ref);
        // Nothing of the first one was sent yet: that this one came says nothing of the way to the device.
        if (port.reads.isWaiting(read)) return port.noteUnanswered(read, arrival);
        port.noteCame(ref, read, arrival);
        port.reads.take(port, socket, read, arrival);
    }

    fn noteCame(port: *StreamPort, ref: Boots.Ref, read: *const StreamServer.ReadRequest, arrival: Arrival) void {
        port.boots.noteRead(ref, read);
        port.boots.apply(ref, arrival.at_us, .{ .stream_read = .{
            .size = read.length,
            .attempt = @intFromBool(read.repeated),
            .missing_fragments = if (read.repeated) read.packets_out else 0,
            .mtu = read.fragment_size + read.overhead + overhead_size,
        } });
        port.boots.note(ref, arrival.at_us, .from_device, .{ .name = .stream_read, .number = read.offset });
    }

    /// What a shard has done with a READ.
    fn takeReadEvent(port: *StreamPort, note: *const shard_messages.ReadEvent) void {
        const read = &note.read;
        const ref = port.bootOf(read) orelse return port.server.forget(read.boot_id);
        switch (note.what) {
            .came => {
                port.server.onRead(read, note.arrival.at_us);
                stream_failover.confirm(port.boots, &port.server, ref, note.arrival.at_us);
                port.noteCame(ref, read, note.arrival);
            },
            .unanswered => port.noteUnanswered(read, note.arrival),
            .sending => |at_us| port.noteTraffic(ref, read, note.arrival, at_us),
            .answered => |measured| port.noteTimes(ref, read, measured),
            .store_error => |at_us| port.noteStoreError(read, at_us),
        }
    }

    /// It is small and asked for once a boot: nothing of the boot's counts is about it.
    fn answerProfile(port: *StreamPort, socket: *UdpSocket, read: *const StreamServer.ReadRequest, ref: Boots.Ref) void {
        const profiles = port.boots.profiles orelse return;
        const boot = port.boots.get(ref) orelse return;
        const bytes = port.reads.buffer[0..read.length];
        profiles.copyFor(boot, bytes, read.offset);
        _ = port.sendRead(socket, read, bytes, 0);
    }

    pub fn sendRead(port: *StreamPort, socket: *UdpSocket, read: *const StreamServer.ReadRequest, bytes: []const u8, sent: u16) stream_sending.Sent {
        return stream_sending.sendRead(&port.server, port.sealed, socket, read, .{ .bytes = bytes, .sent = sent });
    }

    /// Counted when it is over.
    pub fn noteSending(_: *StreamPort, _: *const StreamServer.ReadRequest, _: Arrival) void {}

    /// All of a READ's bytes are on their way.
    pub fn noteAnswered(
        port: *StreamPort,
        read: *const StreamServer.ReadRequest,
        arrival: Arrival,
        now_us: u64,
        measured: core.boot.ReadTimes.ReadSample,
    ) void {
        port.sent_bytes += read.bytes_out;
        port.reads_count += 1;
        const ref = port.bootOf(read) orelse return;
        port.noteTraffic(ref, read, arrival, now_us);
        port.noteTimes(ref, read, measured);
    }

    fn noteTraffic(port: *StreamPort, ref: Boots.Ref, read: *const StreamServer.ReadRequest, arrival: Arrival, at_us: u64) void {
        port.boots.apply(ref, at_us, .{ .stream_traffic = .{
            .bytes_in = arrival.size,
            .packets_in = 1,
            .bytes_out = read.wireBytes(),
            .packets_out = read.packets_out,
        } });
        port.boots.note(ref, at_us, .from_edge, .{ .name = .stream_bytes, .number = read.offset });
    }

    fn noteTimes(port: *StreamPort, ref: Boots.Ref, read: *const StreamServer.ReadRequest, measured: core.boot.ReadTimes.ReadSample) void {
        // A repeated one asks for little, and was counted the first time.
        const boot = port.boots.get(ref) orelse return;
        if (!read.repeated and !boot.isOver()) boot.read_times.onRead(read.length, measured);
    }

    /// A READ gets no answer; the device asks again.
    pub fn noteUnanswered(port: *StreamPort, read: *const StreamServer.ReadRequest, arrival: Arrival) void {
        const ref = port.bootOf(read) orelse return;
        port.boots.apply(ref, arrival.at_us, .{ .stream_traffic = .{
            .bytes_in = arrival.size,
            .packets_in = 1,
            .bytes_out = 0,
            .packets_out = 0,
        } });
    }

    /// Its bytes cannot be had.
    pub fn refuseRead(
        port: *StreamPort,
        socket: *UdpSocket,
        read: *const StreamServer.ReadRequest,
        why: stream_reads.Error,
        at_us: u64,
    ) void {
        const session = port.server.findById(read.session_id) orelse return;
        const code: wire.ReadErrorCode = switch (why) {
            error.Lost => .cache_lost,
            error.Stopped => .stopped,
            error.StoreError => .store_error,
        };
        if (code == .store_error) port.noteStoreError(read, at_us) else if (port.layerOf(read.boot_id)) |layer| port.boots.noteWriteCache(read.boot_id, at_us, layer.held());
        const packet = port.server.readError(read, code, &port.reply) orelse return;
        socket.send(session.from, packet);
    }

    fn noteStoreError(port: *StreamPort, read: *const StreamServer.ReadRequest, at_us: u64) void {
        port.store_errors += 1;
        const ref = port.boots.table.findById(read.boot_id) orelse return;
        port.boots.note(ref, at_us, .from_edge, .{ .name = .stream_store_error });
        port.boots.apply(ref, at_us, .store_error);
    }

    fn becomeReady(port: *StreamPort, ready: *const StreamServer.ReadyReport, at_us: u64) void {
        const ref = port.boots.table.findById(ready.boot_id) orelse return;
        port.boots.note(ref, at_us, .from_device, .{ .name = .stream_ready });
        port.boots.note(ref, at_us, .from_edge, .{ .name = .stream_ready_ack });
        if (ready.outcome == .ready) if (port.boots.profiles) |profiles| profiles.finish(ready.boot_id);
        port.boots.apply(ref, at_us, switch (ready.outcome) {
            .ready => .{ .ready = .stream },
            .failed => blk: {
                const failure = core.boot.cause.failureOf(ready.code.slice(), ready.sentence.slice());
                // Of one that is up, too.
                if (failure.cause == .write_cache_lost) port.boots.noteLostLocalDisk(ref, at_us);
                break :blk .{ .failed = .{ .cause = failure.cause, .text = failure.text } };
            },
        });
    }
};
