//! The other edges of the site as this edge hears them, and the decision on a device that tries to
//! boot: answer it, or leave it to another edge (packages/proto/PEERS.md). Producer: datagrams at
//! the peer port; consumers: DHCP, the boots and the stream's admission. Pure: the caller passes
//! the time and takes messages from `next`. On a site with one edge every device is answered.

const std = @import("std");
const base = @import("base");
const peer = @import("wire").peer;
const stream_ticket = @import("wire").stream.ticket;
const Boot = @import("../boot/boot.zig");
const boot_phase = @import("../boot/phase.zig");
const device_owner = @import("device_owner.zig");
const Holdings = @import("holdings.zig");
const peer_claims = @import("peer_claims.zig");
const SiteEdges = @import("edges.zig");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;
const Mac = base.Mac;
const Uuid = base.Uuid;

pub const PeerTable = @This();

/// Epoch of this start; higher than that of every earlier one.
epoch: u64,
counter: u64 = 0,
site: ?SiteEdges = null,
/// Same indexes as `site.edges`.
peers: [SiteEdges.edges_max + 1]Peer = @splat(.{}),
own_claims: peer_claims.OwnClaims,
other_claims: peer_claims.OtherClaims,
deferred: peer_claims.DeferredDevices,
/// Which edges hold which versions whole.
holdings: Holdings,
/// Until then the others may be there without having been heard.
warm_until_us: u64 = 0,
/// Until then the others are asked for all their boots.
starting_until_us: u64 = 0,
booting: u32 = 0,
/// The number that this edge last announced: it computes its own share from the number that the
/// others know.
said_booting: u32 = 0,
alive_due_us: u64 = 0,
alive_sent_us: ?u64 = null,
ignored: base.IgnoredCounters = .{},

const alive_interval_us = std.time.us_per_s;
/// Three lost messages in a row.
pub const alive_limit_us = 3_200 * std.time.us_per_ms;
const warm_up_us = std.time.us_per_s;
/// Time for several ALIVE messages each way, some of which may be lost.
const starting_us = 3 * std.time.us_per_s + 500 * std.time.us_per_ms;
const alive_spacing_us = 100 * std.time.us_per_ms;
/// If another edge made an offer too and no device takes ours within this time, the device is the
/// other's.
const rival_limit_us = 10 * std.time.us_per_s;
/// A device that edges with its version have not answered so many times is answered by one without
/// it: that boot then tells why.
pub const holder_retries_max = 2;
/// Messages of one edge: far more than a site's busiest second needs.
pub const messages_per_s_max = 2000;
/// A device in a session sends a REPORT every 5 s: one that is heard runs.
pub const heard_us = 12 * std.time.us_per_s;
/// Ages are sent in whole ms.
const simultaneous_us = 2 * std.time.us_per_ms;

pub const OwnClaim = peer_claims.OwnClaims.Own;
pub const OtherClaim = peer_claims.OtherClaims.Other;

pub const Peer = struct {
    epoch: u64 = 0,
    /// The highest counter, and which of the 64 up to it were received; the lowest bit is the
    /// highest itself.
    counter: u64 = 0,
    heard_bits: u64 = 0,
    /// It has named this edge's current epoch: its messages are not from an earlier time.
    is_known: bool = false,
    heard_us: u64 = 0,
    booting: u32 = 0,
    draining: bool = false,
    /// Messages of the second that started then.
    second_us: u64 = 0,
    second_count: u32 = 0,

    /// Returns false for a message that was received before, or is too old to tell.
    fn isNew(sender: *Peer, counter: u64) bool {
        if (counter > sender.counter) {
            const shift = counter - sender.counter;
            sender.heard_bits = if (shift < 64) sender.heard_bits << @intCast(shift) else 0;
            sender.heard_bits |= 1;
            sender.counter = counter;
            return true;
        }
        assert(sender.counter >= counter);
        const age = sender.counter - counter;
        if (age >= 64) return false;
        const bit = @as(u64, 1) << @intCast(age);
        if (sender.heard_bits & bit != 0) return false;
        sender.heard_bits |= bit;
        return true;
    }
};

pub const Options = struct {
    epoch: u64,
    /// Boots of this edge at a time.
    boots_max: u32,
    /// Boots of the others; if there are more, the latest.
    others_max: u32 = 4096,
    /// Random where strangers choose MAC addresses.
    seed: u64 = 0,
};

pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!PeerTable {
    assert(options.epoch > 0);
    var own: peer_claims.OwnClaims = try .init(gpa, options.boots_max, options.seed);
    errdefer own.deinit(gpa);
    var others: peer_claims.OtherClaims = try .init(gpa, options.others_max, options.seed);
    errdefer others.deinit(gpa);
    var holdings: Holdings = try .init(gpa);
    errdefer holdings.deinit(gpa);
    return .{
        .epoch = options.epoch,
        .own_claims = own,
        .other_claims = others,
        .holdings = holdings,
        .deferred = try .init(gpa, options.boots_max),
    };
}

pub fn deinit(table: *PeerTable, gpa: std.mem.Allocator) void {
    table.own_claims.deinit(gpa);
    table.other_claims.deinit(gpa);
    table.deferred.deinit(gpa);
    table.holdings.deinit(gpa);
    table.* = undefined;
}

/// Takes a new desired state. The state of edges that remain is kept.
pub fn setSite(table: *PeerTable, now_us: u64, site: ?SiteEdges) void {
    const had_others = table.hasOthers();
    var peers: [SiteEdges.edges_max + 1]Peer = @splat(.{});
    var former: [SiteEdges.edges_max + 1]?u8 = @splat(null);
    var is_same = false;
    if (site) |*new| if (table.site) |*old| {
        const same_key = std.crypto.timing_safe.eql(peer.Key, new.key, old.key);
        is_same = same_key and new.edges.count == old.edges.count;
        for (new.edges.constSlice(), 0..) |*edge, index| {
            const earlier = old.indexOf(edge.id) orelse {
                is_same = false;
                continue;
            };
            if (earlier != index) is_same = false;
            if (!same_key) continue;
            peers[index] = table.peers[earlier];
            former[index] = earlier;
        }
    };
    if (!is_same) {
        // Claims name edges by their index.
        table.other_claims.clear();
        table.own_claims.announceAll();
        table.holdings.rearrange(&former);
        table.holdings.announce(now_us);
    }
    table.peers = peers;
    table.site = site;
    table.alive_due_us = now_us;
    if (!table.hasOthers()) table.own_claims.forgetReleased();
    if (!had_others and table.hasOthers()) {
        table.warm_until_us = now_us + warm_up_us;
        table.starting_until_us = now_us + starting_us;
    }
    assert(table.alive_due_us <= now_us);
}

pub fn hasOthers(table: *const PeerTable) bool {
    const site = if (table.site) |*site| site else return false;
    return site.edges.count > 1;
}

pub const MessageOutcome = union(enum) {
    ignored: base.IgnoreReason,
    nothing,
    claim: Claim,
};

/// Another edge has or had a boot of this device.
pub const Claim = struct {
    edge: Uuid,
    boot: Uuid,
    mac: Mac,
    stage: peer.Stage,
    is_over: bool,
    begun_by_loader: bool,
    is_proved: bool = false,
    /// When the device last made progress there, on this edge's clock.
    since_us: u64,
};

/// Takes one datagram of the peer port.
pub fn receive(table: *PeerTable, now_us: u64, from: Endpoint, payload: []const u8) MessageOutcome {
    const site = if (table.site) |*site| site else return table.ignore(.peer_unknown);
    const message = peer.parse(payload) catch return table.ignore(.peer_bad_message);
    const index = site.indexOf(message.edge) orelse return table.ignore(.peer_unknown);
    assert(index < site.edges.count);
    if (index == site.own_index) return table.ignore(.peer_unknown);
    const expected = site.edges.buffer[index].endpoint orelse return table.ignore(.peer_unknown);
    if (!from.ip.eql(expected.ip)) return table.ignore(.peer_unknown);
    const sender = &table.peers[index];
    if (!peer.isAuthentic(payload, &site.key)) return table.ignore(.peer_bad_message);
    if (message.epoch < sender.epoch) return table.ignore(.peer_replayed);
    if (message.epoch > sender.epoch) table.restarted(now_us, index, message.epoch);
    const is_latest = message.counter > sender.counter;
    if (!sender.isNew(message.counter)) return table.ignore(.peer_replayed);
    // Only now: forged and replayed messages must not use up the limit of the genuine ones.
    if (!mayHear(now_us, sender)) return table.ignore(.peer_too_many);
    switch (message.body) {
        .alive => |*alive| if (is_latest) table.heardAlive(now_us, index, alive),
        .claim, .release => |*claim| if (sender.is_known) {
            sender.heard_us = now_us;
            const is_over = message.body == .release;
            const since_us = now_us -| @as(u64, claim.age_ms) * std.time.us_per_ms;
            const is_news = table.other_claims.put(claim.mac, .{
                .boot = claim.boot,
                .edge = index,
                .stage = claim.stage,
                .is_over = is_over,
                .is_proved = claim.is_proved,
                .since_us = since_us,
                .heard_us = now_us,
                .counter = message.counter,
            });
            if (!is_over) {
                // Anybody can go on in a boot in which the device has not proved itself.
                if (is_news) table.deferred.forget(claim.mac) else if (claim.is_proved)
                    table.deferred.forgetBefore(claim.mac, since_us);
            }
            return .{ .claim = .{
                .edge = message.edge,
                .boot = claim.boot,
                .mac = claim.mac,
                .stage = claim.stage,
                .is_over = is_over,
                .begun_by_loader = claim.begun_by_loader,
                .is_proved = claim.is_proved,
                .since_us = since_us,
            } };
        },
        .holdings => |*page| if (sender.is_known) {
            sender.heard_us = now_us;
            table.holdings.hear(index, message.counter, page);
        },
    }
    return .nothing;
}

fn restarted(table: *PeerTable, now_us: u64, index: u8, epoch: u64) void {
    assert(epoch > table.peers[index].epoch);
    const sender = &table.peers[index];
    sender.is_known = false;
    sender.epoch = epoch;
    sender.counter = 0;
    sender.heard_bits = 0;
    table.other_claims.removeOf(index);
    table.holdings.forget(index);
    table.holdings.announce(now_us);
    table.own_claims.announceAll();
    table.alive_due_us = @min(table.alive_due_us, now_us);
}

fn heardAlive(table: *PeerTable, now_us: u64, index: u8, alive: *const peer.Alive) void {
    assert(index != table.site.?.own_index);
    const sender = &table.peers[index];
    const own_id = table.site.?.own_id;
    var names_us = false;
    for (alive.heard.constSlice()) |*heard|
        if (heard.edge.eql(own_id) and heard.epoch == table.epoch) {
            names_us = true;
        };
    // It does not know this edge yet: the epoch that it must name is sent at once.
    if (!names_us) table.alive_due_us = @min(table.alive_due_us, now_us);
    if (names_us) sender.is_known = true;
    if (names_us and alive.starting) {
        table.own_claims.announceAll();
        table.holdings.announce(now_us);
    }
    if (!sender.is_known) return;
    sender.heard_us = now_us;
    sender.booting = alive.booting;
    sender.draining = alive.draining;
}

fn mayHear(now_us: u64, sender: *Peer) bool {
    if (now_us -| sender.second_us >= std.time.us_per_s) {
        sender.second_us = now_us;
        sender.second_count = 0;
    }
    assert(sender.second_us <= now_us);
    sender.second_count += 1;
    return sender.second_count <= messages_per_s_max;
}

/// Returns the next message, the same for all others; null: none is due.
pub fn next(table: *PeerTable, now_us: u64, buffer: *[peer.packet_size_max]u8) ?[]const u8 {
    if (!table.hasOthers()) return null;
    if (now_us >= table.aliveDue()) return table.emit(.{ .alive = table.ownAlive(now_us) }, buffer);
    const due = table.own_claims.takeDue(now_us) orelse {
        const page = table.holdings.takeDue(now_us) orelse return null;
        return table.emit(.{ .holdings = page }, buffer);
    };
    assert(due.mac.isDevice());
    const age_ms = (now_us -| due.claim.since_us) / std.time.us_per_ms;
    const said: peer.Claim = .{
        .boot = due.claim.boot,
        .mac = due.mac,
        .stage = due.claim.stage,
        .begun_by_loader = due.claim.begun_by_loader,
        .is_proved = due.claim.is_proved and due.claim.tells_proof,
        .age_ms = std.math.cast(u32, age_ms) orelse std.math.maxInt(u32),
    };
    return table.emit(if (due.claim.is_over) .{ .release = said } else .{ .claim = said }, buffer);
}

/// Returns when `next` has a message again; null: never, as things are.
pub fn nextDeadline(table: *const PeerTable) ?u64 {
    if (!table.hasOthers()) return null;
    return @min(table.aliveDue(), table.own_claims.dueAt(), table.holdings.due_us);
}

fn aliveDue(table: *const PeerTable) u64 {
    const sent_us = table.alive_sent_us orelse return table.alive_due_us;
    return @max(table.alive_due_us, sent_us + alive_spacing_us);
}

fn ownAlive(table: *PeerTable, now_us: u64) peer.Alive {
    assert(table.hasOthers());
    table.said_booting = table.booting;
    table.alive_sent_us = now_us;
    table.alive_due_us = now_us + alive_interval_us;
    const site = &table.site.?;
    var said: peer.Alive = .{
        .booting = table.booting,
        .draining = site.own().draining,
        .starting = table.isStarting(now_us),
    };
    for (site.edges.constSlice(), 0..) |*edge, index| {
        if (index == site.own_index or table.peers[index].epoch == 0) continue;
        said.heard.append(.{ .edge = edge.id, .epoch = table.peers[index].epoch }) catch break;
    }
    return said;
}

fn emit(table: *PeerTable, body: peer.Body, buffer: *[peer.packet_size_max]u8) []const u8 {
    table.counter += 1;
    assert(table.epoch > 0);
    const site = &table.site.?;
    const message: peer.Message =
        .{ .edge = site.own_id, .epoch = table.epoch, .counter = table.counter, .body = body };
    return peer.emit(&message, &site.key, buffer);
}

/// Number of devices in a boot at this edge. A number that changes the edge's share is announced at
/// once.
pub fn setBooting(table: *PeerTable, now_us: u64, booting: u32) void {
    table.booting = booting;
    if (device_owner.loadFactor(booting) == device_owner.loadFactor(table.said_booting)) return;
    table.alive_due_us = @min(table.alive_due_us, now_us);
}

/// A boot of this edge has changed.
pub fn onBoot(table: *PeerTable, boot: *const Boot) void {
    const stage: ?peer.Stage = if (boot.isOver()) null else if (isTaken(boot)) .taken else .offered;
    table.own_claims.onBoot(boot.identity.mac, boot.identity.id, .{
        .stage = stage,
        .at_us = if (boot.isProved()) boot.provedAt() else boot.started_us + boot.last_us,
        .begun_by_loader = boot.rom_xid == null and boot.ipxe_xid != null,
        .is_proved = boot.isProved(),
    });
}

/// A boot of this edge no longer counts as one.
pub fn dropBoot(table: *PeerTable, boot: *const Boot) void {
    table.own_claims.onBoot(boot.identity.mac, boot.identity.id, .{ .stage = null, .at_us = 0 });
}

fn isTaken(boot: *const Boot) bool {
    if (boot.is_taken) return true;
    const phase = boot.current() orelse return false;
    return @backingInt(phase) > @backingInt(boot_phase.Phase.dhcp);
}

/// This edge's state of the device.
pub const Own = enum {
    none,
    offered,
    taken,

    /// `boot`: the one that the request belongs to; null: it would start one. A loader that this
    /// edge has not given to a device with another ROM comes from another edge.
    pub fn of(boot: ?*const Boot, is_loader: bool) Own {
        const known = boot orelse return .none;
        if (isTaken(known)) return .taken;
        if (is_loader and known.rom_xid != null) return .none;
        return .offered;
    }
};

pub const DeviceRequest = struct {
    mac: Mac,
    /// The device's network: the relay agent's address, or one of this edge's own.
    network: base.Ip4,
    /// iPXE sent the request, not the firmware.
    is_loader: bool = false,
    /// The device addressed this edge by name.
    is_addressed: bool = false,
    /// The only edge that keeps the device's writes; null: it has no such writes.
    home: ?Uuid = null,
    /// The version that the device boots; null: unknown.
    version: ?Uuid = null,
};

pub const Verdict = enum { answer, leave };

/// Decides each request that this edge could answer. Counts those that it leaves to others.
pub fn decide(table: *PeerTable, now_us: u64, request: DeviceRequest, own: Own) Verdict {
    const verdict = table.judge(now_us, request, own);
    switch (verdict) {
        .answer => {
            table.deferred.forget(request.mac);
            table.own_claims.announce(now_us, request.mac);
        },
        .leave => table.ignored.add(.dhcp_other_edge),
    }
    return verdict;
}

fn judge(table: *PeerTable, now_us: u64, request: DeviceRequest, own: Own) Verdict {
    if (!table.hasOthers()) return .answer;
    // Here its boot would fail, since another edge keeps its writes: what anybody can have begun
    // and loaded here in the device's name changes nothing.
    if ((own != .taken or !request.is_addressed) and table.hasOtherWriteOwner(now_us, request))
        return .leave;
    if (request.is_addressed) return .answer;
    if (table.otherHolderOf(now_us, request) != null) return table.judgeLacking(now_us, request);
    if (own == .taken) return .answer;
    if (table.claimOf(now_us, request.mac)) |other| {
        // It answered while the write owner was away, or although it lacks the version: neither
        // edge would answer before that boot falls silent.
        const leads_nowhere = !other.is_proved and
            (table.isWriteOwner(request) or table.isOnlyHereHeld(request, other.edge));
        if (own == .offered) {
            if (leads_nowhere) return .answer;
            return if (other.stage == .taken or table.yieldsTo(other.edge)) .leave else .answer;
        }
        // Firmware that sends a request although the device had advanced further has started again:
        // a new boot.
        if (!leads_nowhere and (other.stage == .offered or request.is_loader)) return .leave;
    } else if (own == .offered) return .answer;
    assert(own == .none);
    const rank = table.rankOf(now_us, request);
    if (rank == 0) return .answer;
    return if (table.deferred.note(now_us, request.mac) >= rank) .answer else .leave;
}

/// This edge is without the device's version, and another one that is alive holds it.
fn judgeLacking(table: *PeerTable, now_us: u64, request: DeviceRequest) Verdict {
    if (table.claimOf(now_us, request.mac)) |other| {
        if (!isWithout(table.holdings.of(other.edge, request.version.?))) return .leave;
    }
    const patience = table.rankOf(now_us, request) + holder_retries_max;
    return if (table.deferred.note(now_us, request.mac) >= patience) .answer else .leave;
}

/// Returns the first of the order that holds the version of a device whose write owner may be any
/// edge, if this edge lacks the version or has it damaged.
pub fn otherHolderOf(table: *const PeerTable, now_us: u64, request: DeviceRequest) ?u8 {
    if (!table.hasOthers() or request.home != null) return null;
    const version = request.version orelse return null;
    if (!isWithout(table.holdings.ownOf(version))) return null;
    const first = table.order(now_us, request).buffer[0];
    if (first == table.site.?.own_index) return null;
    return if (table.holdings.of(first, version) == .held) first else null;
}

/// Returns whether this edge holds the device's version and the other one is without it.
fn isOnlyHereHeld(table: *const PeerTable, request: DeviceRequest, edge: u8) bool {
    const version = request.version orelse return false;
    if (request.home != null) return false;
    return table.holdings.ownOf(version) == .held and
        isWithout(table.holdings.of(edge, version));
}

/// It lacks the version, or has it damaged.
fn isWithout(holding: Holdings.Holding) bool {
    return switch (holding) {
        .held, .unknown => false,
        .damaged, .lacking => true,
    };
}

/// Returns where another edge serves boot scripts; null: unknown.
pub fn httpOf(table: *const PeerTable, index: u8) ?Endpoint {
    const edge = &table.site.?.edges.constSlice()[index];
    const known = edge.endpoint orelse return null;
    const port = table.holdings.httpPortOf(index);
    return if (port == 0) null else .{ .ip = known.ip, .port = port };
}

/// Tells whether this edge wakes the device: true at exactly one edge of the site.
pub fn isOwn(table: *const PeerTable, now_us: u64, request: DeviceRequest) bool {
    if (!table.hasOthers()) return true;
    if (table.claimOf(now_us, request.mac) != null or table.hasOtherWriteOwner(now_us, request))
        return false;
    return table.isWriteOwner(request) or
        table.order(now_us, request).buffer[0] == table.site.?.own_index;
}

/// This edge keeps the device's writes.
fn isWriteOwner(table: *const PeerTable, request: DeviceRequest) bool {
    return if (request.home) |home| home.eql(table.site.?.own_id) else false;
}

/// Another edge keeps the device's writes, and is alive.
fn hasOtherWriteOwner(table: *const PeerTable, now_us: u64, request: DeviceRequest) bool {
    const site = &table.site.?;
    const index = site.indexOf(request.home orelse return false) orelse return false;
    return index != site.own_index and table.isAlive(now_us, index);
}

pub const Owner = union(enum) {
    own,
    /// Another edge has the device in a boot.
    claimed: u8,
    /// The first of the order.
    other: u8,
};

/// Returns the edge that is to start a device for a schedule. The load of the edges and what they
/// hold have no part in it: both change during a run, and until all edges know, two of them or none
/// would find a device their own.
pub fn ownerOf(table: *const PeerTable, now_us: u64, request: DeviceRequest) Owner {
    if (!table.hasOthers()) return .own;
    const site = &table.site.?;
    const own_stage = table.own_claims.stageOf(request.mac);
    if (table.claimOf(now_us, request.mac)) |claim| {
        const stage = own_stage orelse return .{ .claimed = claim.edge };
        const is_theirs = if (stage == claim.stage)
            table.yieldsTo(claim.edge)
        else
            claim.stage == .taken;
        return if (is_theirs) .{ .claimed = claim.edge } else .own;
    }
    // The others see this edge's claim, and count on it.
    if (own_stage != null or table.isWriteOwner(request)) return .own;
    if (table.hasOtherWriteOwner(now_us, request))
        return .{ .other = site.indexOf(request.home.?).? };
    var candidates = table.listCandidates(now_us, request);
    for (candidates.buffer[0..candidates.count]) |*candidate| {
        candidate.booting = 0;
        candidate.holding = .unknown;
    }
    const first = device_owner.order(&candidates, request.mac).buffer[0];
    return if (first == site.own_index) .own else .{ .other = first };
}

fn claimOf(table: *const PeerTable, now_us: u64, mac: Mac) ?peer_claims.OtherClaims.Other {
    return table.other_claims.find(now_us, mac, table, isAlive);
}

/// Counts the edges that come before this one.
fn rankOf(table: *const PeerTable, now_us: u64, request: DeviceRequest) u32 {
    // No other edge answers it earlier.
    if (table.isWriteOwner(request)) return 0;
    const found = table.order(now_us, request);
    const own_index = table.site.?.own_index;
    const rank: u32 = @intCast(std.mem.findScalar(u8, found.constSlice(), own_index).?);
    return rank + @intFromBool(table.isWarmingUp(now_us));
}

fn order(table: *const PeerTable, now_us: u64, request: DeviceRequest) device_owner.Order {
    const candidates = table.listCandidates(now_us, request);
    return device_owner.order(&candidates, request.mac);
}

/// Lists the edges that are alive, this one included.
fn listCandidates(
    table: *const PeerTable,
    now_us: u64,
    request: DeviceRequest,
) device_owner.Candidates {
    const site = &table.site.?;
    var candidates: device_owner.Candidates = .empty;
    for (site.edges.constSlice(), 0..) |*edge, number| {
        const index: u8 = @intCast(number);
        const is_own = index == site.own_index;
        if (!is_own and !table.isAlive(now_us, index)) continue;
        const said = &table.peers[index];
        candidates.appendAssumeCapacity(.{
            .index = index,
            .id = edge.id,
            .weight = edge.weight,
            .draining = if (is_own) edge.draining else said.draining,
            .near = edge.isNear(request.network),
            .booting = if (is_own) table.said_booting else said.booting,
            .holding = table.holdingOf(index, request),
        });
    }
    assert(candidates.count > 0);
    return candidates;
}

/// Returns what is known of the device's version at an edge. Where writes are kept decides alone.
fn holdingOf(table: *const PeerTable, index: u8, request: DeviceRequest) Holdings.Holding {
    const version = request.version orelse return .unknown;
    if (request.home != null) return .unknown;
    if (index == table.site.?.own_index) return table.holdings.ownOf(version);
    return table.holdings.of(index, version);
}

/// Lists where a device may fail over if this edge is gone: the live others that hold its version,
/// in the order in which they would answer it. Edges of releases that tell nothing are listed, too.
pub fn listStreams(
    table: *const PeerTable,
    now_us: u64,
    request: DeviceRequest,
    out: *base.BoundedArray(Endpoint, stream_ticket.edges_max),
) void {
    const site = if (table.site) |*site| site else return;
    for (table.order(now_us, request).constSlice()) |index| {
        if (index == site.own_index) continue;
        if (request.version) |version| switch (table.holdings.of(index, version)) {
            .held => {},
            .unknown => if (table.holdings.tells(index)) continue,
            .damaged, .lacking => continue,
        };
        out.append(site.edges.buffer[index].stream orelse continue) catch return;
    }
}

/// The others may not have announced yet which boots failed over to them.
pub fn isStarting(table: *const PeerTable, now_us: u64) bool {
    return now_us < table.starting_until_us and table.hasOthers();
}

fn isWarmingUp(table: *const PeerTable, now_us: u64) bool {
    if (now_us >= table.warm_until_us) return false;
    const site = &table.site.?;
    for (site.edges.constSlice(), 0..) |*edge, index| {
        if (index == site.own_index or edge.endpoint == null) continue;
        if (!table.peers[index].is_known) return true;
    }
    return false;
}

pub fn isAlive(table: *const PeerTable, now_us: u64, index: u8) bool {
    const known = &table.peers[index];
    return known.is_known and now_us -| known.heard_us <= alive_limit_us;
}

/// If two edges have offered a boot to one device, the lower id keeps it.
fn yieldsTo(table: *const PeerTable, index: u8) bool {
    const site = &table.site.?;
    return isLower(site.edges.buffer[index].id, site.own_id);
}

fn isLower(a: Uuid, b: Uuid) bool {
    return std.mem.order(u8, &a.bytes, &b.bytes) == .lt;
}

pub const Consequence = enum {
    keep,
    /// The device has taken the other edge's answer: this edge's boot was none.
    withdraw,
    /// The device has started again, at the other edge.
    supersede,
};

/// Decides what another edge's claim means for this edge's boot of the same device.
pub fn consequence(table: *PeerTable, now_us: u64, boot: *const Boot, claim: Claim) Consequence {
    assert(boot.identity.mac.eql(claim.mac));
    // It failed over to the other edge, or came from there: it is one boot, reported by the edge
    // that had it last.
    if (claim.boot.eql(boot.identity.id)) return .keep;
    if (isTaken(boot) and !claim.is_over) {
        // The other edge does not know yet that the device continued here.
        if (table.heardAt(boot) > claim.since_us + simultaneous_us)
            table.own_claims.announceOne(boot.identity.mac, boot.identity.id);
    }
    if (boot.isOver()) return .keep;
    if (!isTaken(boot)) {
        if (claim.stage == .taken)
            return if (claim.since_us > boot.started_us) .withdraw else .keep;
        if (!claim.is_over) table.own_claims.onRival(now_us, boot.identity.mac, boot.identity.id);
        return .keep;
    }
    // Anybody can make an edge begin a boot and load something from it: only a device that has
    // proved itself there has left this boot, and not while it is heard here.
    if (claim.stage == .offered or !claim.is_proved) return .keep;
    if (boot.isRunning() and now_us -| boot.heardAt() < heard_us) return .keep;
    const since_us = if (boot.isRunning()) boot.heardAt() else table.heardAt(boot);
    // A device is where it last made progress.
    if (since_us > claim.since_us + simultaneous_us) return .keep;
    if (since_us + simultaneous_us > claim.since_us and
        // A device that starts again at once says so about its earlier boot, elsewhere.
        (claim.is_over or !isLower(claim.edge, table.site.?.own_id))) return .keep;
    // Firmware other than iPXE would have been seen first if the device had started again.
    return if (claim.begun_by_loader and boot.rom_xid != null) .withdraw else .supersede;
}

/// Returns whether a device that was heard here lately, when another edge told that it has proved
/// itself there, has been silent since. `consequence` kept its boot.
pub fn hasLeft(table: *const PeerTable, now_us: u64, boot: *const Boot) bool {
    if (!boot.isRunning() or now_us -| boot.heardAt() < heard_us) return false;
    return table.other_claims.isProvedSince(
        boot.identity.mac,
        boot.identity.id,
        boot.heardAt() + simultaneous_us,
    );
}

fn heardAt(table: *const PeerTable, boot: *const Boot) u64 {
    const own = table.own_claims.get(boot.identity.mac, boot.identity.id) orelse
        return boot.started_us + boot.last_us;
    return own.since_us;
}

pub const WithdrawnOffer = struct { boot: Uuid, to: Uuid };

/// Returns an offer that two edges made and no device took: one of them withdraws its own.
pub fn nextWithdrawnOffer(table: *const PeerTable, now_us: u64) ?WithdrawnOffer {
    if (!table.hasOthers()) return null;
    const own = &table.own_claims;
    var slots = own.rival_slots.iterate();
    while (slots.next()) |slot| {
        const claim = &own.claims[slot];
        if (claim.is_over or claim.stage != .offered) continue;
        if (now_us -| claim.rival_us.? < rival_limit_us) continue;
        const other = table.claimOf(now_us, .fromInt(own.by_mac.keys[slot])) orelse continue;
        if (!table.yieldsTo(other.edge)) continue;
        return .{ .boot = claim.boot, .to = table.site.?.edges.buffer[other.edge].id };
    }
    return null;
}

pub const PeerStatus = struct { edge: Uuid, ago_us: u64, booting: u32 };

/// Lists the known others and when they were last heard; at most as many as `buffer` holds.
pub fn listPeers(table: *const PeerTable, now_us: u64, buffer: []PeerStatus) []PeerStatus {
    const site = if (table.site) |*site| site else return buffer[0..0];
    var count: usize = 0;
    for (site.edges.constSlice(), 0..) |*edge, index| {
        const known = &table.peers[index];
        if (!known.is_known or count == buffer.len) continue;
        buffer[count] =
            .{ .edge = edge.id, .ago_us = now_us -| known.heard_us, .booting = known.booting };
        count += 1;
    }
    return buffer[0..count];
}

fn ignore(table: *PeerTable, reason: base.IgnoreReason) MessageOutcome {
    table.ignored.add(reason);
    return .{ .ignored = reason };
}

test {
    _ = @import("peer_table_test.zig");
}
