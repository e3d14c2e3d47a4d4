//! Applies the stream's packets to boots (packages/proto/STREAM.md): admission with a version and a
//! write cache; what a device reads, writes and reports. Packets come from the socket of `Io`,
//! which also reads and sends the disk bytes of a READ, because that may wait for a disk.
//! Invariant: without a valid proof no layer is created and no boot changes.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const candidates = @import("candidates.zig");
const wire = @import("wire").stream;
const failover_module = @import("failover.zig");
const io_module = @import("io.zig");
const mutants = @import("mutants.zig");
const device_keys = @import("device_keys.zig");
const write_caches = @import("write_caches.zig");
const SessionBoots = @import("session_boots.zig").SessionBoots;
const StoreErrors = @import("store_errors.zig");
const assert = std.debug.assert;

const StreamServer = core.stream.Server;

/// 20 bytes of IP, 8 of UDP.
const overhead_size = 28;

/// A datagram as it arrived.
pub const Datagram = struct {
    from: base.Endpoint,
    bytes: []const u8,
    /// Microseconds; after the time of the loop's turn for a packet that came during the turn.
    at_us: u64,
};

const held_max = 64;

/// The size of a request, and when it arrived.
pub const Arrival = struct { size: usize, at_us: u64 };

/// Why a READ has no bytes: `Lost` and `Stopped` are states of the device's layer.
pub const ReadError = error{ Lost, Stopped, StoreError };

pub fn Stream(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);
        const failover = failover_module.Failover(Io);

        server: StreamServer,
        boots: *Boots,
        session_boots: SessionBoots,
        large: StreamServer.LargeBuffer = undefined,
        reply: StreamServer.ReplyBuffer = undefined,
        store_errors: StoreErrors = .{},
        /// HELLOs that wait until a version is open.
        held: base.BoundedArray(write_caches.WaitingHello, held_max) = .empty,
        started_us: ?u64 = null,

        pub fn init(
            gpa: std.mem.Allocator,
            server: StreamServer,
            boots: *Boots,
        ) error{OutOfMemory}!Self {
            assert(server.sessions.len > 0);
            return .{
                .server = server,
                .boots = boots,
                .session_boots = try .init(gpa, server.sessions.len),
            };
        }

        pub fn deinit(port: *Self, gpa: std.mem.Allocator) void {
            port.session_boots.deinit(gpa);
            port.server.deinit(gpa);
            port.* = undefined;
        }

        /// Prefetches the state of the next packet's device while the packet before is served.
        pub fn expect(port: *const Self, from: base.Endpoint) void {
            port.session_boots.prefetch(&port.server, &port.boots.table, from);
        }

        /// Returns the boot of a READ.
        pub fn bootOf(port: *Self, read: *const StreamServer.ReadRequest) ?Boots.Ref {
            return port.session_boots.find(&port.boots.table, read);
        }

        /// A thread has ended a work for a layer.
        pub fn endWork(port: *Self, work: *write_caches.LayerWork, now_us: u64) void {
            switch (work.kind) {
                .open, .close => {
                    const caches = &port.boots.caches;
                    defer caches.clearFailure();
                    const hello = caches.endWork(work.layer) orelse return;
                    // Its cookie was valid when it arrived.
                    const arrival: Arrival = .{ .size = hello.size, .at_us = now_us };
                    port.admitClaim(&hello.claim, arrival, now_us);
                },
                .write => while (port.boots.caches.endOrders(work.layer)) |ended|
                    port.answerOrder(work.layer, ended.ref, ended.outcome),
                .sync => port.endSync(work.layer),
            }
        }

        /// Answers the writes that waited for a sync.
        fn endSync(port: *Self, layer: *write_caches.Layer) void {
            assert(layer.is_syncing);
            assert(layer.syncing_count <= layer.waiting_count);
            const caches = &port.boots.caches;
            const code = caches.endSync(layer);
            if (code != .done)
                port.boots.onWriteCache(layer.boot_id, port.boots.io.now(), layer.held());
            for (layer.waiting[0..layer.syncing_count]) |ref| port.finishWrite(ref, code);
            caches.release(layer);
        }

        /// Runs once a second.
        pub fn tick(port: *Self, now_us: u64) void {
            const boots = port.boots;
            const io, const caches = .{ boots.io, &boots.caches };
            const started_us = port.started_us orelse now_us;
            port.started_us = started_us;
            assert(now_us >= started_us);
            port.server.expire(now_us);
            port.store_errors.tick(now_us);
            boots.io.setUnreadable(port.store_errors.places.count > 0);
            boots.holdings.setUnreadable(&port.store_errors);
            assert(port.server.session_count <= port.server.sessions.len);
            io.onSessions(&port.server);
            failover.forgetUnconfirmed(boots, now_us);
            if (io.heldSubject()) |subject| if (subject == .device)
                io.answerHold(
                    subject,
                    if (boots.policy.ownsWritesOf(subject.device)) .waiting else .held,
                );
            caches.tick(now_us, &boots.table);
            caches.closeSilent(&port.server, now_us);
            caches.tendSnapshot();
            if (io.heldSubject() == null) caches.held_version = null;
            // After a start, running devices have to be heard first.
            if (now_us - started_us < write_caches.heard_us) return;
            io.setWritten(&caches.writtenVersions(&port.server, now_us));
            const subject = io.heldSubject() orelse return;
            if (subject == .version)
                io.answerHold(subject, caches.holdVersion(subject.version, &port.server, now_us));
        }

        fn finishWrite(port: *Self, ref: StreamServer.WriteRef, code: ?wire.WriteCode) void {
            const outgoing = port.server.finishWrite(ref, code, &port.reply) orelse return;
            assert(outgoing.packet.len > 0);
            port.boots.io.send(.stream, outgoing.to, outgoing.packet);
        }

        fn takeOrder(port: *Self, ref: StreamServer.WriteRef, order: write_caches.Order) void {
            const layers = &port.boots.caches;
            const layer = layers.find(ref.boot_id) orelse return port.finishWrite(ref, .cache_lost);
            assert(!layer.is_over);
            port.answerOrder(layer, ref, layers.takeOrder(layer, ref, order));
        }

        fn answerOrder(
            port: *Self,
            layer: *write_caches.Layer,
            ref: StreamServer.WriteRef,
            outcome: write_caches.WriteOutcome,
        ) void {
            switch (outcome) {
                .ended => |code| {
                    if (code != .done)
                        port.boots.onWriteCache(ref.boot_id, port.boots.io.now(), layer.held());
                    port.finishWrite(ref, code);
                },
                .waits => {},
                .later => port.finishWrite(ref, null),
            }
        }

        /// Handles a datagram; it counts for its boot at the time of its arrival.
        pub fn receive(port: *Self, datagram: *const Datagram, now_us: u64) void {
            const step = port.server.receive(now_us, datagram.from, datagram.bytes, &port.reply);
            port.handle(&step, datagram, now_us);
        }

        /// Handles what the server made of a datagram.
        pub fn handle(
            port: *Self,
            step: *const StreamServer.Step,
            datagram: *const Datagram,
            now_us: u64,
        ) void {
            const io = port.boots.io;
            const from, const at_us = .{ datagram.from, datagram.at_us };
            const sender: ?Boots.Ref = switch (step.*) {
                .read => |*read| port.bootOf(read),
                .ready => |*ready| port.boots.table.findById(ready.boot_id),
                .report => |*report| port.boots.table.findById(report.boot_id),
                .ignored, .taken, .reply, .admit, .probe, .used, .write, .control => null,
                .present, .lost, .fetched, .account, .machine, .network => null,
            };
            if (sender) |ref| failover.confirm(port.boots, &port.server, ref, at_us);
            switch (step.*) {
                .ignored, .taken, .present => {},
                .lost => |*lost| port.takeLost(lost, from, at_us),
                .reply => |packet| io.send(.stream, from, packet),
                .admit => |*claim| port.admit(claim, datagram, now_us),
                .read => |*read| port.takeRead(read, sender, .{
                    .size = datagram.bytes.len,
                    .at_us = at_us,
                }),
                .probe => |probe| if (!mutants.has(.probe_behind_disk)) {
                    const packet = port.server.answerProbe(probe, &port.large) orelse return;
                    io.send(.stream, from, packet);
                },
                .used => |*used| port.boots.onUsed(used),
                .fetched => |*fetched| port.boots.onFetched(fetched, at_us),
                .machine => |*said| port.boots.onMachine(said),
                .network => |*said| port.boots.onNetwork(said),
                .write => |*write| port.takeOrder(write.ref, .{
                    .write = .{ .offset = write.offset, .bytes = write.bytes },
                }),
                .control => |*control| port.takeOrder(control.ref, switch (control.operation) {
                    .flush => .flush,
                    .discard => .{
                        .discard = .{ .offset = control.offset, .length = control.length },
                    },
                }),
                .ready => |*ready| {
                    assert(ready.reply.len > 0);
                    port.becomeReady(ready, at_us);
                    io.send(.stream, from, ready.reply);
                },
                .report => |*report| port.takeReport(report, datagram),
                .account => |*account| port.boots.takeAccount(account, from),
            }
        }

        fn takeReport(
            port: *Self,
            report: *const StreamServer.DeviceReport,
            datagram: *const Datagram,
        ) void {
            const at_us = datagram.at_us;
            var said = report.*;
            if (port.layerOf(report.boot_id)) |layer| {
                const limit_bytes = layer.inner.head.limit_bytes;
                // With memory on the device first, report both together.
                const is_shared = layer.class == .device_ram_overflow;
                const size = if (is_shared) said.report.write_cache_size else 0;
                const in_memory = if (is_shared) said.report.write_cache_used else 0;
                said.report.write_cache_size = limit_bytes +| size;
                // A closed layer is full, even if space for a block is left.
                const used = if (layer.is_closed) limit_bytes else layer.inner.usedBytes();
                said.report.write_cache_used = @min(used, limit_bytes) +| in_memory;
            }
            assert(said.report.write_cache_used <= said.report.write_cache_size);
            const ack = port.boots.takeReport(at_us, &said);
            if (port.layerOf(report.boot_id)) |layer|
                port.boots.onWriteCache(report.boot_id, at_us, layer.held())
            else
                port.boots.onLocalDisk(report.boot_id, at_us);
            const answer = if (port.wantsHello(report))
                port.server.requestHello(report, datagram.bytes, &port.reply)
            else
                port.server.acknowledgeReport(report, ack, &port.reply);
            if (answer) |packet| port.sendOrder(ack.order, datagram.from, packet);
        }

        /// A restarted edge must not give an order to the boot that the order has caused.
        fn sendOrder(port: *Self, order: wire.Order, to: base.Endpoint, packet: []const u8) void {
            assert(packet.len > 0);
            const io = port.boots.io;
            if (order == .none) io.send(.stream, to, packet) else io.sendAfterOrders(to, packet);
        }

        /// A device whose session is lost for good can still be told to restart.
        fn takeLost(
            port: *Self,
            lost: *const StreamServer.LostReport,
            from: base.Endpoint,
            at_us: u64,
        ) void {
            assert(from.port != 0);
            const order = port.boots.takeLost(at_us, lost);
            const packet = port.server.answerLost(lost, order, &port.reply);
            port.sendOrder(order.order, from, packet);
        }

        /// The device retransmits its report after HELLO: neither the report nor a waiting order is
        /// lost.
        fn wantsHello(port: *Self, report: *const StreamServer.DeviceReport) bool {
            const session = port.server.findById(report.session_id) orelse return false;
            assert(session.boot_id.eql(report.boot_id));
            return failover.isOutdated(port.boots, session);
        }

        pub fn admit(
            port: *Self,
            claim: *const StreamServer.Claim,
            datagram: *const Datagram,
            now_us: u64,
        ) void {
            assert(claim.from.eql(datagram.from));
            port.admitClaim(
                claim,
                .{ .size = datagram.bytes.len, .at_us = datagram.at_us },
                now_us,
            );
        }

        fn admitClaim(
            port: *Self,
            given: *const StreamServer.Claim,
            arrival: Arrival,
            now_us: u64,
        ) void {
            var verified = given.*;
            const claim = &verified;
            var why: Why = .{};
            const is_moving = claim.hello.kind == .ticket;
            const known = if (is_moving) null else port.boots.table.findById(claim.boot_id);
            const grant = if (is_moving)
                failover.grantOf(port.boots, &port.server, claim)
            else switch (port.grantOf(known, claim, &why)) {
                .grant => |grant| grant,
                // The device repeats its HELLO meanwhile: the latest is answered. A token stays
                // with the nonce that showed it first.
                .waits => |layer| {
                    if (layer.hello) |*first| if (isOfAnotherNonce(claim, &first.claim)) return;
                    layer.hello = .{ .claim = claim.*, .size = arrival.size };
                    return;
                },
                .waits_for_version => return port.hold(claim, arrival.size),
            };
            if (mutants.has(.token_twice) and claim.hello.kind == .token)
                port.server.forget(claim.boot_id);
            if (mutants.has(.first_version_stays)) {
                const session = port.server.sessionOf(claim.boot_id);
                if (session != null and StreamServer.isOutrun(session.?, claim)) return;
            }
            const admission = port.server.admit(now_us, claim.*, grant, &port.reply);
            if (mutants.has(.wrong_proof_ends_session) and admission.outcome == .token_refused)
                port.server.forget(claim.boot_id);
            // The shard must have the session before the device's first READ.
            port.boots.io.onSessions(&port.server);
            // A fail-over is reported only once it is confirmed.
            const is_kept = if (known) |ref| port.onAdmission(
                ref,
                .{ .claim = claim, .admission = &admission, .why = why },
                arrival,
            ) else true;
            if (!is_kept) return port.takeBack(known.?);
            if (!mutants.has(.large_welcome_left_out)) {
                if (port.server.showSize(&admission, &port.large)) |packet|
                    port.sendAnswer(claim, &admission, packet);
            }
            if (admission.reply) |packet| port.sendAnswer(claim, &admission, packet);
            if (mutants.has(.counter_restarts) and admission.outcome == .repeated)
                port.server.sessionOf(claim.boot_id).?.counter.last = 0;
        }

        /// Until a version is open. A device whose HELLO finds no place repeats it.
        fn hold(port: *Self, claim: *const StreamServer.Claim, size: usize) void {
            const fresh: write_caches.WaitingHello = .{ .claim = claim.*, .size = size };
            for (port.held.slice()) |*first| if (first.claim.boot_id.eql(claim.boot_id)) {
                if (!isOfAnotherNonce(claim, &first.claim)) first.* = fresh;
                return;
            };
            if (!port.held.isFull()) port.held.appendAssumeCapacity(fresh);
        }

        /// A version has been opened, or could not.
        pub fn onVersionOpened(port: *Self, now_us: u64) void {
            const held = port.held;
            port.held.clear();
            for (held.constSlice()) |*hello| port.admitClaim(
                &hello.claim,
                .{ .size = hello.size, .at_us = now_us },
                now_us,
            );
        }

        fn isOfAnotherNonce(
            claim: *const StreamServer.Claim,
            first: *const StreamServer.Claim,
        ) bool {
            // The device has begun another boot, which waits for the same layer.
            if (!claim.boot_id.eql(first.boot_id)) return false;
            if (claim.hello.kind != .token or first.hello.kind != .token) return false;
            return !std.mem.eql(u8, &claim.hello.client_nonce, &first.hello.client_nonce);
        }

        /// The journal did not take that the token is used: the device repeats its HELLO.
        fn takeBack(port: *Self, ref: Boots.Ref) void {
            const boot = port.boots.get(ref).?;
            assert(boot.touched);
            assert(boot.token_nonce != null);
            boot.token_nonce = null;
            port.server.forget(boot.identity.id);
            assert(port.server.sessionOf(boot.identity.id) == null);
        }

        /// WELCOME is a promise: a process that is killed has the boot when it starts again, and
        /// for a device whose writes survive a power failure of this machine, its boot does, too.
        fn sendAnswer(
            port: *Self,
            claim: *const StreamServer.Claim,
            admission: *const StreamServer.Admission,
            packet: []const u8,
        ) void {
            assert(packet.len > 0);
            assert(claim.from.port != 0);
            const io = port.boots.io;
            const waits = switch (admission.outcome) {
                .opened, .resumed => true,
                // A device that has sent a packet of its session has had WELCOME.
                .repeated => !port.server.sessionOf(claim.boot_id).?.taken.is_used,
                else => false,
            };
            if (!waits) return io.send(.stream, claim.from, packet);
            const is_durable = if (port.boots.caches.find(claim.boot_id)) |layer|
                layer.binding.class.isDurable()
            else
                false;
            const after: io_module.Kept =
                if (is_durable and !mutants.has(.welcome_before_sync)) .synced else .written;
            io.sendAfterJournal(after, .stream, claim.from, packet);
        }

        pub fn layerOf(port: *Self, boot_id: base.Uuid) ?*write_caches.Layer {
            const caches = &port.boots.caches;
            if (mutants.has(.another_device_read)) for (caches.layers[0..caches.top]) |slot| {
                if (slot) |layer| if (layer.isOpen()) return layer;
            };
            return caches.find(boot_id);
        }

        /// Details of a refusal for the boot; null: the cause of the refusal code.
        const Why = struct {
            cause: ?core.boot.phase.Cause = null,
            text: base.UntrustedText = .empty,
        };

        const GrantAnswer = union(enum) {
            grant: StreamServer.Grant,
            /// Until a thread has opened or closed this layer.
            waits: *write_caches.Layer,
            waits_for_version,

            const unknown: GrantAnswer = .{ .grant = .unknown };

            fn refused(code: wire.RefuseCode) GrantAnswer {
                return .{ .grant = .{ .no_cache = code } };
            }
        };

        fn grantOf(
            port: *Self,
            ref: ?Boots.Ref,
            claim: *StreamServer.Claim,
            why: *Why,
        ) GrantAnswer {
            const boot = port.boots.get(ref orelse return .unknown) orelse return .unknown;
            if (boot.hasSuccessor()) return .unknown;
            if (failover_module.isUnconfirmed(boot)) return .unknown;
            const owner_blocker = port.boots.writeOwnerBlocker(boot);
            if (owner_blocker) |blocker| why.* = .{ .cause = blocker.cause, .text = blocker.text };
            if (port.boots.awaitsVersion(boot)) return .waits_for_version;
            var version = port.boots.versionOf(boot) orelse
                return .{ .grant = .version_missing };
            if (mutants.has(.version_follows_policy)) version = port.boots.io.findVersion(
                port.boots.policy.source.standalone.assignment.version_id,
            ).?;
            assert(version.disk.size() > 0);
            var known: StreamServer.Grant.Boot = .{
                .token = boot.identity.token,
                .token_nonce = if (mutants.has(.token_twice)) null else boot.token_nonce,
                .version_id = version.id,
                .disk_size = version.disk.size(),
                .profile_size = port.boots.profiles.sizeFor(boot),
            };
            // Without a valid proof no layer is created.
            if (!port.server.proofHolds(claim, &known)) return .{ .grant = .{ .boot = known } };
            const opens_private = port.boots.opensPrivate(boot);
            const verdict = device_keys.judge(port.boots, boot, claim, opens_private);
            if (!verdict.opens or mutants.has(.key_before_proof))
                device_keys.record(port.boots, boot, &verdict);
            if (!verdict.opens) return .{ .grant = .identity_refused };
            if (claim.hello.kind == .token and boot.token_nonce == null)
                if (port.waitForOthers(ref.?)) |grant| return .{ .grant = grant };
            // Not before: another machine of this MAC address has proved nothing while one runs.
            device_keys.record(port.boots, boot, &verdict);
            // A layer that is open here began here: its device continues.
            if (owner_blocker != null and port.layerOf(boot.identity.id) == null)
                return .refused(.cache_failed);
            why.* = .{};
            if (boot.assignment.writes and version.layer_above == null) {
                why.* = .{ .text = .init("the version is sealed: start the device again") };
                return .refused(.cache_failed);
            }
            const wanted =
                port.boots.writeCacheOf(boot) orelse return .refused(.cache_failed);
            const caches = &port.boots.caches;
            if (!caches.isAvailable()) {
                if (wanted.class.isAtTheEdge()) return .refused(.cache_failed);
                known.failover = failover.failoverOf(port.boots, &port.server, boot, &known);
                return .{ .grant = .{ .boot = known } };
            }
            const below: write_caches.Below =
                .{ .source = version.disk.source(), .root = version.disk.root() };
            switch (caches.grant(boot, below, wanted, claim.hello.kind)) {
                .none => {},
                .cache => |cache| known.write_cache = cache,
                .waits => |layer| return .{ .waits = layer },
                .refused => |refusal| {
                    why.* = .{ .text = refusal.text };
                    return .refused(refusal.code);
                },
            }
            known.failover = failover.failoverOf(port.boots, &port.server, boot, &known);
            return .{ .grant = .{ .boot = known } };
        }

        /// The device has proved itself in a boot. Another machine with its MAC address may still
        /// run in another one: that one ends only when it does not answer. Null: there is none, or
        /// none any more.
        fn waitForOthers(port: *Self, ref: Boots.Ref) ?StreamServer.Grant {
            const boots = port.boots;
            const boot = boots.get(ref).?;
            const now_us = boots.io.now();
            var others = boots.table.iterateOf(boot.identity.mac);
            while (others.next()) |other_ref| {
                const other = boots.get(other_ref).?;
                if (other_ref.index == ref.index or !other.isRunning()) continue;
                if (mutants.has(.ask_nobody)) continue;
                const session = port.server.sessionOf(other.identity.id) orelse {
                    // It was lost here, as by a restart: a device that runs brings it back.
                    if (!candidates.isHeard(other, now_us)) continue;
                    other.onAwaited(now_us);
                    return .{ .no_cache = .busy };
                };
                switch (port.server.askWhetherThere(session, now_us, &port.reply)) {
                    .gone => {},
                    .unknown => |question| {
                        if (question) |packet| boots.io.send(.stream, session.from, packet);
                        return .waits;
                    },
                    .there => |there| {
                        if (there.news) port.onTwoMachines(ref, other);
                        return .{ .no_cache = .busy };
                    },
                }
            }
            port.endOthers(ref, now_us);
            return null;
        }

        /// Ends the other boots of a device that has proved itself in this one.
        fn endOthers(port: *Self, ref: Boots.Ref, now_us: u64) void {
            const boots = port.boots;
            var others = boots.table.iterateOf(boots.get(ref).?.identity.mac);
            while (others.next()) |other| if (other.index != ref.index)
                port.server.forget(boots.get(other).?.identity.id);
            candidates.endOthers(boots, now_us, ref);
            assert(boots.get(ref) != null);
        }

        fn onTwoMachines(port: *Self, ref: Boots.Ref, running: *const core.boot.Boot) void {
            const boots = port.boots;
            const boot = boots.get(ref).?;
            assert(!boot.identity.id.eql(running.identity.id));
            assert(boot.identity.mac.eql(running.identity.mac));
            boots.ignored.add(.stream_mac_in_use);
            boots.io.log("{f}: two machines have this MAC address: one runs at {f}, and another " ++
                "one starts; its boot waits until the first is off", .{
                boot.identity.mac, running.facts.ip orelse base.Ip4.zero,
            });
            var buffer: [base.UntrustedText.size_max]u8 = undefined;
            const text = std.mem.print(&buffer, "the other machine runs at {f}", .{
                running.facts.ip orelse base.Ip4.zero,
            }) catch unreachable;
            boots.apply(ref, boots.io.now(), .{
                .suspected = .{ .cause = .mac_in_use, .text = .init(text) },
            });
            // A suspicion alone is not reported at once.
            boot.changed = true;
            boots.settle(boot);
        }

        const AdmissionRecord = struct {
            claim: *const StreamServer.Claim,
            admission: *const StreamServer.Admission,
            why: Why,
        };

        /// Returns false if the journal has no place for a session that opened.
        fn onAdmission(
            port: *Self,
            ref: Boots.Ref,
            asked: AdmissionRecord,
            arrival: Arrival,
        ) bool {
            const boots, const at_us = .{ port.boots, arrival.at_us };
            const claim, const admission = .{ asked.claim, asked.admission };
            const boot = boots.get(ref) orelse return true;
            var is_kept = true;
            assert(boot.identity.id.eql(claim.boot_id));
            boot.onPacket(at_us, .from_device, .{ .name = .stream_hello });
            if (admission.reply != null)
                boot.onPacket(at_us, .from_edge, .{ .name = .stream_answer });
            switch (admission.outcome) {
                .opened, .resumed => {
                    if (admission.outcome == .opened) {
                        boot.token_nonce = claim.hello.client_nonce;
                        boots.beginProfile(boot);
                    }
                    boots.learnSession(ref, claim.from.ip);
                    const session = port.server.sessionOf(claim.boot_id) orelse return true;
                    if (admission.outcome == .resumed and session.write_cache.class != .device_ram)
                        core.boot.failover.onDeviceReturn(boot, at_us);
                    boots.apply(ref, at_us, .{ .stream_open = .{
                        .resumed = admission.outcome == .resumed,
                        .mtu = @min(session.packet_size_max, wire.packet_size_ethernet) +
                            overhead_size,
                        .cipher = session.cipher(),
                    } });
                    boots.journalNow(boot);
                    is_kept = !boot.touched or admission.outcome == .resumed;
                    if (mutants.has(.boot_on_resumption) and admission.outcome == .resumed)
                        _ = boots.begin(at_us, boot.identity.mac) catch null;
                },
                .token_refused => suspect(boots, ref, arrival, claim, .token_refused),
                .identity_refused => suspect(boots, ref, arrival, claim, .identity_refused),
                .version_missing => boots.apply(ref, at_us, .{ .failed = .{
                    .cause = asked.why.cause orelse .version_missing,
                    .text = asked.why.text,
                } }),
                .no_cache => |code| if (asked.why.cause orelse causeOf(code)) |cause|
                    boots.apply(
                        ref,
                        at_us,
                        .{ .failed = .{ .cause = cause, .text = asked.why.text } },
                    ),
                .no_cipher => boots.apply(ref, at_us, .{ .failed = .{
                    .cause = .stream_unreachable,
                    .text = .init(
                        "no cipher in common with the edge; clear text needs its --clear",
                    ),
                } }),
                .repeated, .busy, .waits, .stale => {},
            }
            const answered: u64 = if (admission.reply) |packet| packet.len else 0;
            boots.apply(ref, at_us, .{ .stream_traffic = .{
                .bytes_in = arrival.size,
                .packets_in = 1,
                .bytes_out = answered,
                .packets_out = @intFromBool(answered > 0),
            } });
            return is_kept;
        }

        /// Other machines may have sent the HELLO as well: only the device's own explains its boot.
        fn suspect(
            boots: *Boots,
            ref: Boots.Ref,
            arrival: Arrival,
            claim: *const StreamServer.Claim,
            cause: core.boot.phase.Cause,
        ) void {
            const boot = boots.get(ref).?;
            assert(boot.identity.mac.isDevice());
            assert(cause == .token_refused or cause == .identity_refused);
            if (boot.stream_was_open or !boots.isAt(boot, claim.from.ip)) return;
            const text: base.UntrustedText =
                if (cause == .identity_refused) .init(device_keys.refusalOf(boot)) else .empty;
            boots.apply(ref, arrival.at_us, .{ .suspected = .{ .cause = cause, .text = text } });
        }

        /// Returns null if the device retries, here or at its own edge.
        fn causeOf(code: wire.RefuseCode) ?core.boot.phase.Cause {
            return switch (code) {
                .cache_lost => .write_cache_lost,
                .cache_version => .write_cache_of_another_version,
                .cache_failed => .write_cache_unusable,
                .cache_elsewhere => null,
                .busy => null,
                .token_refused, .version_missing, .no_cipher, .identity_refused => unreachable,
            };
        }

        fn takeRead(
            port: *Self,
            read: *const StreamServer.ReadRequest,
            boot: ?Boots.Ref,
            arrival: Arrival,
        ) void {
            assert(read.length > 0);
            assert(arrival.size > 0);
            const ref = boot orelse {
                // Its slot was given to another boot: the device has to send HELLO again.
                port.server.forget(read.boot_id);
                return;
            };
            if (mutants.has(.deaf_to_reads) and read.kind != .profile and read.request_id == 1)
                return;
            if (read.kind == .profile) {
                const of = port.boots.get(ref) orelse return;
                const document = port.boots.profiles.documentFrom(of, read.offset);
                return port.boots.io.sendProfile(read, document);
            }
            // Nothing of the first READ was sent yet: a retransmission does not indicate loss.
            if (port.boots.io.isReading(read)) return port.onUnanswered(read, arrival);
            port.onReadArrived(ref, read, arrival);
            port.boots.io.read(read, arrival);
        }

        /// Applies a READ of a session that a shard serves.
        pub fn onShardRead(
            port: *Self,
            read: *const StreamServer.ReadRequest,
            ref: Boots.Ref,
            arrival: Arrival,
        ) void {
            assert(read.length > 0);
            port.server.onRead(read, arrival.at_us);
            failover.confirm(port.boots, &port.server, ref, arrival.at_us);
            port.onReadArrived(ref, read, arrival);
        }

        fn onReadArrived(
            port: *Self,
            ref: Boots.Ref,
            read: *const StreamServer.ReadRequest,
            arrival: Arrival,
        ) void {
            assert(read.length > 0);
            port.boots.onRead(ref, read);
            port.boots.apply(ref, arrival.at_us, .{ .stream_read = .{
                .size = read.length,
                .attempt = @intFromBool(read.repeated and !mutants.has(.count_repeats)),
                .missing_fragments = if (read.repeated) read.packets_out else 0,
                .mtu = read.fragment_size + read.overhead + overhead_size,
            } });
            port.boots.note(ref, arrival.at_us, .from_device, .{
                .name = .stream_read,
                .number = read.offset,
            });
        }

        /// Counts a READ whose bytes are all sent.
        pub fn onAnswered(
            port: *Self,
            read: *const StreamServer.ReadRequest,
            arrival: Arrival,
            now_us: u64,
            measured: core.boot.ReadTimes.ReadSample,
        ) void {
            assert(read.packets_out > 0);
            const ref = port.bootOf(read) orelse return;
            port.countTraffic(ref, read, arrival, now_us);
            port.countTimes(ref, read, arrival, measured);
        }

        pub fn countTraffic(
            port: *Self,
            ref: Boots.Ref,
            read: *const StreamServer.ReadRequest,
            arrival: Arrival,
            at_us: u64,
        ) void {
            assert(arrival.size > 0);
            port.boots.apply(ref, at_us, .{ .stream_traffic = .{
                .bytes_in = arrival.size,
                .packets_in = 1,
                .bytes_out = read.wireBytes(),
                .packets_out = read.packets_out,
            } });
            port.boots.note(ref, at_us, .from_edge, .{
                .name = .stream_bytes,
                .number = read.offset,
            });
        }

        pub fn countTimes(
            port: *Self,
            ref: Boots.Ref,
            read: *const StreamServer.ReadRequest,
            arrival: Arrival,
            measured: core.boot.ReadTimes.ReadSample,
        ) void {
            assert(read.length > 0);
            const boot = port.boots.get(ref) orelse return;
            if (boot.isOver()) return;
            const sent_at_us = arrival.at_us +| measured.storage_us +| measured.send_us;
            boot.read_times.onSent(.{
                .request_id = read.request_id,
                .arrived_at_us = arrival.at_us,
                .at_us = sent_at_us,
                .is_repeated = read.repeated,
            });
            // A retransmitted READ is small, and was counted the first time.
            if (read.repeated) return;
            port.boots.onReadEnd(ref, sent_at_us);
            boot.read_times.onRead(read.length, measured);
            port.boots.reads.add(boot.identity.id, &boot.read_log_slot, &.{
                .at_us = arrival.at_us -| boot.started_us,
                .offset = read.offset,
                .length = read.length,
                .storage_us = measured.storage_us,
                .is_cold = measured.is_cold,
                .is_ahead = read.kind == .ahead,
            });
        }

        /// Counts a READ without an answer; the device retransmits it.
        pub fn onUnanswered(
            port: *Self,
            read: *const StreamServer.ReadRequest,
            arrival: Arrival,
        ) void {
            assert(arrival.size > 0);
            const ref = port.bootOf(read) orelse return;
            if (!read.repeated) port.boots.onReadEnd(ref, arrival.at_us);
            port.boots.apply(ref, arrival.at_us, .{ .stream_traffic = .{
                .bytes_in = arrival.size,
                .packets_in = 1,
                .bytes_out = 0,
                .packets_out = 0,
            } });
        }

        /// Refuses a READ whose bytes are not available.
        pub fn refuseRead(
            port: *Self,
            read: *const StreamServer.ReadRequest,
            why: ReadError,
            at_us: u64,
        ) void {
            const session = port.server.findById(read.session_id) orelse return;
            assert(session.boot_id.eql(read.boot_id));
            if (!read.repeated) if (port.bootOf(read)) |ref| port.boots.onReadEnd(ref, at_us);
            const code: wire.ReadErrorCode = switch (why) {
                error.Lost => .cache_lost,
                error.Stopped => .stopped,
                error.StoreError => .store_error,
            };
            if (code == .store_error) port.onStoreError(read, at_us) else if (port.layerOf(
                read.boot_id,
            )) |layer| port.boots.onWriteCache(read.boot_id, at_us, layer.held());
            const packet = port.server.readError(read, code, &port.reply) orelse return;
            port.boots.io.send(.stream, session.from, packet);
        }

        pub fn onStoreError(port: *Self, read: *const StreamServer.ReadRequest, at_us: u64) void {
            port.noteStoreError(read, at_us);
            const ref = port.boots.table.findById(read.boot_id) orelse return;
            port.boots.note(ref, at_us, .from_edge, .{ .name = .stream_store_error });
            port.boots.apply(ref, at_us, .store_error);
        }

        /// An alarm at once, which names the place.
        fn noteStoreError(port: *Self, read: *const StreamServer.ReadRequest, at_us: u64) void {
            assert(read.length > 0);
            const io = port.boots.io;
            const is_new = port.store_errors.note(at_us, .{
                .version_id = read.version_id,
                .offset = read.offset,
                .length = read.length,
                .since_unix_ms = io.unixMs(),
                .last_us = at_us,
            });
            if (is_new) io.log("version {f} cannot be read at byte {d} ({d} bytes): " ++
                "the block is damaged, or the store's disk fails. Check it with " ++
                "bootfarm-edge vdisk verify", .{
                read.version_id, read.offset, read.length,
            });
        }

        fn becomeReady(port: *Self, ready: *const StreamServer.ReadyReport, at_us: u64) void {
            const ref = port.boots.table.findById(ready.boot_id) orelse return;
            assert(port.boots.get(ref).?.identity.id.eql(ready.boot_id));
            port.boots.note(ref, at_us, .from_device, .{ .name = .stream_ready });
            port.boots.note(ref, at_us, .from_edge, .{ .name = .stream_ready_ack });
            if (ready.outcome == .ready) port.boots.profiles.finish(ready.boot_id);
            port.boots.apply(ref, at_us, switch (ready.outcome) {
                .ready => .{ .ready = .stream },
                .failed => blk: {
                    const failure =
                        core.boot.cause.failureOf(ready.code.slice(), ready.sentence.slice());
                    // Applies to running devices, too.
                    if (failure.cause == .write_cache_lost) port.boots.onLocalDiskLost(ref, at_us);
                    break :blk .{ .failed = .{ .cause = failure.cause, .text = failure.text } };
                },
            });
            if (!mutants.has(.ready_twice) or !ready.repeated) return;
            const boot = port.boots.get(ref) orelse return;
            boot.changed = true;
            boot.live_changes.outcome = true;
            port.boots.settle(boot);
        }
    };
}
