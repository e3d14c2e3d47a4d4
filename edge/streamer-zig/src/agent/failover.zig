//! Fail-over of boots between the edges of a site (packages/proto/STREAM.md, "Fail-over"): issues
//! tickets and admits boots of other edges. Called by `stream.zig`. Invariant: a boot from another
//! edge counts here only after its device has sent more than its HELLO.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const candidates = @import("candidates.zig");
const device_keys = @import("device_keys.zig");
const wire = @import("wire").stream;
const mutants = @import("mutants.zig");
const boot_failover = core.boot.failover;

const Boot = core.boot.Boot;
const StreamServer = core.stream.Server;
const assert = std.debug.assert;

pub fn isUnconfirmed(boot: *const Boot) bool {
    const state = boot.failover orelse return false;
    return !state.is_confirmed;
}

pub fn Failover(comptime Io: type) type {
    return struct {
        const Boots = @import("boots.zig").Boots(Io);

        /// Returns the edges to which a boot may fail over, with its ticket; null: no other edge or
        /// no key.
        pub fn failoverOf(
            boots: *const Boots,
            server: *const StreamServer,
            boot: *const Boot,
            granted: *const StreamServer.Grant.Boot,
        ) ?wire.ticket.Failover {
            const peers = boots.peers;
            const site = if (peers.site) |*site| site else return null;
            const keys = site.ticket_keys.constSlice();
            if (keys.len == 0) return null;
            const now_us = boots.io.now();
            var failover: wire.ticket.Failover = .{
                .lifetime_s = boots.ticket_lifetime_s,
                .edges = listOf(boots, boot, now_us),
                .ticket = undefined,
            };
            if (failover.edges.count == 0) return null;
            var salt: core.stream.ticket.Salt = undefined;
            boots.io.random(&salt);
            const ticket = boot_failover.ticketOf(boot, &.{
                .now_us = now_us,
                .now_unix_ms = boots.io.unixMs(),
                .own_edge = site.own_id,
                .resume_secret = server.resumeSecretOf(boot.identity.id),
                .lifetime_s = boots.ticket_lifetime_s,
                .disk_size = granted.disk_size,
                .write_cache = granted.write_cache.class,
            });
            failover.ticket = core.stream.ticket.seal(
                core.stream.ticket.sealed_format,
                &keys[0],
                salt,
                &ticket,
            );
            return failover;
        }

        fn listOf(boots: *const Boots, boot: *const Boot, now_us: u64) @FieldType(
            wire.ticket.Failover,
            "edges",
        ) {
            var edges: @FieldType(wire.ticket.Failover, "edges") = .empty;
            var asked = boots.askedOf(boot.identity.mac, boots.network);
            asked.version = boot.assignment.version_id;
            boots.peers.listStreams(now_us, asked, &edges);
            return edges;
        }

        /// Returns whether this session's device should send HELLO again to learn newer fail-over
        /// targets.
        pub fn isOutdated(boots: *Boots, session: *const StreamServer.Session) bool {
            // It cannot fail over.
            if (session.write_cache.class != .device_ram) return false;
            const peers = boots.peers;
            const site = if (peers.site) |*site| site else return false;
            const ref = boots.table.findById(session.boot_id) orelse return false;
            const boot = boots.get(ref) orelse return false;
            assert(boot.identity.id.eql(session.boot_id));
            const edges = listOf(boots, boot, boots.io.now());
            return core.stream.ticket.isOutdated(
                if (session.failover) |*given| given else null,
                edges.constSlice(),
                site.ticket_keys.constSlice(),
            );
        }

        /// Decides a HELLO with a ticket. The boot is in the table from now on; it counts once the
        /// device has sent anything more.
        pub fn grantOf(
            boots: *Boots,
            server: *const StreamServer,
            claim: *const StreamServer.Claim,
        ) StreamServer.Grant {
            assert(claim.hello.kind == .ticket);
            const peers = boots.peers;
            const site = if (peers.site) |*site| site else return .unknown;
            const keys = site.ticket_keys.constSlice();
            const judged = core.stream.ticket.judge(keys, &claim.hello, boots.io.unixMs());
            const ticket = switch (judged) {
                .good => |ticket| ticket,
                .elsewhere => |ticket| if (mutants.has(.ticket_of_writes_taken))
                    ticket
                else
                    return sendBack(boots, &ticket, claim),
                .refused => return .unknown,
            };
            const known = boots.table.findById(claim.boot_id);
            if (!isNewest(boots, &ticket, known)) return .unknown;
            var boot = boot_failover.bootFromTicket(&ticket, arrivalOf(boots, &claim.hello));
            if (mutants.has(.failover_to_another_version)) {
                const state = boots.policy.source.state;
                for (state.vdisks[0].versions) |*version| boot.assignment.version_id = version.id;
            }
            // A retransmitted HELLO or the same fail-over: keep what is known of it.
            const repeated = if (known) |ref| boots.table.get(ref).? else null;
            if (repeated) |found| if (!found.identity.mac.eql(ticket.mac)) return .unknown;
            if (repeated) |found| if (found.failover) |earlier|
                if (earlier.number == boot.failover.?.number) {
                    boot = found.*;
                };
            // A ticket has no key: what is known here of the device's key stays.
            boot.device_identity = device_keys.identityOf(&boots.table, ticket.mac);
            if (boots.awaitsVersion(&boot)) return .waits;
            const version = boots.versionOf(&boot) orelse return .version_missing;
            if (boots.writeOwnerBlocker(&boot) != null) return sendBack(boots, &ticket, claim);
            const wanted = boots.writeCacheOf(&boot) orelse return .{ .no_cache = .cache_failed };
            // Its write cache is at the edge that made the ticket; nothing of it is here.
            if (wanted.class.isAtTheEdge() and !mutants.has(.ticket_of_writes_taken))
                return sendBack(boots, &ticket, claim);
            if (version.disk.size() != ticket.disk_size) return .version_missing;
            if (known == null) if (waitForOthers(boots, server, ticket.mac)) |code|
                return .{ .no_cache = code };
            if (known) |ref| boots.table.replace(ref, boot) else _ =
                boots.table.insert(boot, boots.io.now()) catch return .{ .no_cache = .busy };
            assert(boot.failover != null);
            assert(boots.table.findById(boot.identity.id) != null);
            var granted: StreamServer.Grant.Boot = .{
                .token = boot.identity.token,
                .token_nonce = null,
                .version_id = version.id,
                .disk_size = version.disk.size(),
                .profile_size = boots.profiles.sizeFor(&boot),
                .ticket_secret = ticket.resume_secret,
            };
            granted.failover = failoverOf(boots, server, &boot, &granted);
            return .{ .boot = granted };
        }

        /// The device waits for the edge that made its ticket. This is the only report of it while
        /// that edge is down.
        fn sendBack(
            boots: *Boots,
            ticket: *const wire.ticket.Ticket,
            claim: *const StreamServer.Claim,
        ) StreamServer.Grant {
            assert(claim.hello.kind == .ticket);
            const now_us = boots.io.now();
            // A device that has begun another boot here since is not waiting.
            const is_newest = isNewest(boots, ticket, boots.table.findById(claim.boot_id));
            if (is_newest and boots.waiting.take(now_us, claim.boot_id)) boots.reportWaiting(&.{
                .boot_id = claim.boot_id,
                .mac = ticket.mac,
                .edge = .fromBytes(ticket.edge_id),
                .started_unix_ms = ticket.started_unix_ms,
                .at_us = ticket.elapsed_us +| claim.hello.shown.?.age_us,
            });
            return .{ .no_cache = .cache_elsewhere };
        }

        fn arrivalOf(boots: *Boots, hello: *const wire.Hello) boot_failover.Arrival {
            assert(hello.shown != null);
            var random: [24]u8 = undefined;
            boots.io.random(&random);
            return .{
                .now_us = boots.io.now(),
                .age_us = hello.shown.?.age_us,
                .handle = std.mem.readInt(u64, random[16..24], .big) | 1,
                .token = random[0..16].*,
            };
        }

        /// Returns whether the device has begun no other boot since and this boot has not failed
        /// over further.
        fn isNewest(boots: *Boots, ticket: *const wire.ticket.Ticket, known: ?Boots.Ref) bool {
            if (known) |ref| {
                const boot = boots.table.get(ref).?;
                const number = if (boot.failover) |earlier| earlier.number else 0;
                return ticket.hand_overs +| 1 >= number;
            }
            // Candidates do not count: anybody can begin one.
            var others = boots.table.iterateOf(ticket.mac);
            while (others.next()) |ref| {
                const other = boots.table.get(ref).?;
                if (other.isRunning() and other.started_unix_ms > ticket.started_unix_ms)
                    return false;
            }
            return true;
        }

        /// Another boot of the device runs here: this is another machine with its MAC address, or
        /// the device has left that boot within the last seconds. It tries again.
        fn waitForOthers(
            boots: *Boots,
            server: *const StreamServer,
            mac: base.Mac,
        ) ?wire.RefuseCode {
            const now_us = boots.io.now();
            var others = boots.table.iterateOf(mac);
            while (others.next()) |ref| {
                const other = boots.table.get(ref).?;
                if (!candidates.isHeard(other, now_us)) continue;
                if (server.sessionOf(other.identity.id) != null) return .busy;
            }
            return null;
        }

        /// The device of this boot sent something: the fail-over is confirmed.
        pub fn confirm(
            boots: *Boots,
            server: *const StreamServer,
            ref: Boots.Ref,
            at_us: u64,
        ) void {
            const boot = boots.get(ref) orelse return;
            const state = if (boot.failover) |*state| state else return;
            if (state.is_confirmed) return;
            state.is_confirmed = true;
            candidates.endOthers(boots, at_us, ref);
            boots.table.onProved(ref);
            const session = server.sessionOf(boot.identity.id) orelse return;
            assert(session.boot_id.eql(boot.identity.id));
            boots.learnSession(ref, session.from.ip);
            boot.changed = true;
            boots.apply(ref, at_us, .{ .stream_open = .{
                .resumed = true,
                .mtu = @min(session.packet_size_max, wire.packet_size_ethernet) + 28,
                .cipher = session.cipher(),
            } });
            assert(!isUnconfirmed(boot));
        }

        /// Forgets boots whose devices never confirmed their fail-over.
        pub fn forgetUnconfirmed(boots: *Boots, now_us: u64) void {
            var iterator = boots.table.iterate();
            while (iterator.next()) |boot| {
                const state = boot.failover orelse continue;
                if (state.is_confirmed) continue;
                const age_us = now_us -| (boot.started_us + state.at_us);
                if (age_us < boot_failover.BootFailover.unconfirmed_us_max) continue;
                boots.table.remove(boots.table.findById(boot.identity.id).?);
            }
        }
    };
}
