//! The other edges of the site as this edge hears them, and what follows for a device that asks to
//! boot: answer, or leave it to another (packages/proto/PEERS.md). Pure: time comes in, messages come
//! out of `next`. Without a site of several edges every device is answered.

const std = @import("std");
const base = @import("base");
const peer = @import("wire").peer;
const stream_ticket = @import("wire").stream.ticket;
const boot_module = @import("../boot/boot.zig");
const boot_phase = @import("../boot/phase.zig");
const device_owner = @import("device_owner.zig");
const peer_claims = @import("peer_claims.zig");
const SiteEdges = @import("edges.zig");
const assert = std.debug.assert;
const Boot = boot_module.Boot;
const Endpoint = base.Endpoint;
const Mac = base.Mac;
const Uuid = base.Uuid;

pub const PeerTable = @This();

/// Of this start; higher than that of every earlier one.
epoch: u64,
counter: u64 = 0,
site: ?SiteEdges = null,
/// As `site.edges`.
peers: [SiteEdges.edges_max + 1]Peer = @splat(.{}),
own_claims: peer_claims.OwnClaims,
other_claims: peer_claims.OtherClaims,
held: peer_claims.Held = .{},
/// Until then the others may not have been heard although they are there.
warm_until_us: u64 = 0,
/// Until then the others are asked for all their boots.
starting_until_us: u64 = 0,
booting: u32 = 0,
/// What this edge has last told: it judges itself by the number that the others know.
said_booting: u32 = 0,
alive_due_us: u64 = 0,
alive_sent_us: ?u64 = null,
ignored: base.IgnoredCounters = .{},

pub const alive_interval_us = std.time.us_per_s;
/// Three lost in a row.
pub const alive_limit_us = 3_200 * std.time.us_per_ms;
const warm_up_us = std.time.us_per_s;
/// Time for several ALIVE messages each way, of which some may be lost.
const starting_us = 3 * std.time.us_per_s + 500 * std.time.us_per_ms;
const alive_spacing_us = 100 * std.time.us_per_ms;
/// An offer that another edge has made too and that nobody takes in this time is the other's.
const rival_limit_us = 10 * std.time.us_per_s;
/// Messages of one edge: far above what a site's busiest second needs.
pub const messages_per_s_max = 2000;
/// Ages are told in whole ms.
const simultaneous_us = 2 * std.time.us_per_ms;

pub const Peer = struct {
    epoch: u64 = 0,
    /// The highest, and which of the 64 up to it were heard; the lowest bit is the highest itself.
    counter: u64 = 0,
    heard_bits: u64 = 0,
    /// It has named this edge's present epoch: what it says is not of an earlier time.
    is_known: bool = false,
    heard_us: u64 = 0,
    booting: u32 = 0,
    draining: bool = false,
    /// Messages of the second that began then.
    second_us: u64 = 0,
    second_count: u32 = 0,

    /// False for a message that was heard before, or is too old to tell.
    fn isNew(sender: *Peer, counter: u64) bool {
        if (counter > sender.counter) {
            const shift = counter - sender.counter;
            sender.heard_bits = if (shift < 64) sender.heard_bits << @intCast(shift) else 0;
            sender.heard_bits |= 1;
            sender.counter = counter;
            return true;
        }
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
    /// Boots of the others; of more, the latest.
    others_max: u32 = 4096,
};

pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!PeerTable {
    assert(options.epoch > 0);
    var own: peer_claims.OwnClaims = try .init(gpa, options.boots_max);
    errdefer own.deinit(gpa);
    return .{
        .epoch = options.epoch,
        .own_claims = own,
        .other_claims = try .init(gpa, options.others_max),
    };
}

pub fn deinit(table: *PeerTable, gpa: std.mem.Allocator) void {
    table.own_claims.deinit(gpa);
    table.other_claims.deinit(gpa);
    table.* = undefined;
}

/// A new desired state. What is known of edges that stay is kept.
pub fn setSite(table: *PeerTable, now_us: u64, site: ?SiteEdges) void {
    const had_others = table.hasOthers();
    var peers: [SiteEdges.edges_max + 1]Peer = @splat(.{});
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
            if (same_key) peers[index] = table.peers[earlier];
        }
    };
    if (!is_same) {
        // Claims name edges by their index.
        table.other_claims.clear();
        table.own_claims.sayAllAgain();
    }
    table.peers = peers;
    table.site = site;
    table.alive_due_us = now_us;
    if (!table.hasOthers()) table.own_claims.forgetReleased();
    if (!had_others and table.hasOthers()) {
        table.warm_until_us = now_us + warm_up_us;
        table.starting_until_us = now_us + starting_us;
    }
}

pub fn hasOthers(table: *const PeerTable) bool {
    const site = if (table.site) |*site| site else return false;
    return site.edges.count > 1;
}

pub const Received = union(enum) {
    ignored: base.IgnoreReason,
    nothing,
    claim: Claim,
};

/// Another edge has a boot of this device, or had it.
pub const Claim = struct {
    edge: Uuid,
    boot: Uuid,
    mac: Mac,
    stage: peer.Stage,
    is_over: bool,
    begun_by_loader: bool,
    /// When the device was last heard there to come further, on this edge's clock.
    since_us: u64,
};

/// One datagram at the peer port.
pub fn receive(table: *PeerTable, now_us: u64, from: Endpoint, payload: []const u8) Received {
    const site = if (table.site) |*site| site else return table.ignore(.peer_unknown);
    const message = peer.parse(payload) catch return table.ignore(.peer_bad_message);
    const index = site.indexOf(message.edge) orelse return table.ignore(.peer_unknown);
    if (index == site.own_index) return table.ignore(.peer_unknown);
    const expected = site.edges.buffer[index].endpoint orelse return table.ignore(.peer_unknown);
    if (!from.ip.eql(expected.ip)) return table.ignore(.peer_unknown);
    const sender = &table.peers[index];
    if (!table.mayHear(now_us, sender)) return table.ignore(.peer_too_many);
    if (!peer.isAuthentic(payload, &site.key)) return table.ignore(.peer_bad_message);
    if (message.epoch < sender.epoch) return table.ignore(.peer_replayed);
    if (message.epoch > sender.epoch) table.restarted(now_us, index, message.epoch);
    const is_latest = message.counter > sender.counter;
    if (!sender.isNew(message.counter)) return table.ignore(.peer_replayed);
    switch (message.body) {
        .alive => |*alive| if (is_latest) table.heardAlive(now_us, index, alive),
        .claim, .release => |*claim| if (sender.is_known) {
            sender.heard_us = now_us;
            const is_over = message.body == .release;
            const is_news = table.other_claims.put(claim.mac, .{
                .boot = claim.boot,
                .edge = index,
                .stage = claim.stage,
                .is_over = is_over,
                .heard_us = now_us,
                .counter = message.counter,
            });
            if (is_news and !is_over) table.held.forget(claim.mac);
            return .{ .claim = .{
                .edge = message.edge,
                .boot = claim.boot,
                .mac = claim.mac,
                .stage = claim.stage,
                .is_over = is_over,
                .begun_by_loader = claim.begun_by_loader,
                .since_us = now_us -| @as(u64, claim.age_ms) * std.time.us_per_ms,
            } };
        },
    }
    return .nothing;
}

fn restarted(table: *PeerTable, now_us: u64, index: u8, epoch: u64) void {
    const sender = &table.peers[index];
    sender.is_known = false;
    sender.epoch = epoch;
    sender.counter = 0;
    sender.heard_bits = 0;
    table.other_claims.removeOf(index);
    table.own_claims.sayAllAgain();
    table.alive_due_us = @min(table.alive_due_us, now_us);
}

fn heardAlive(table: *PeerTable, now_us: u64, index: u8, alive: *const peer.Alive) void {
    const sender = &table.peers[index];
    const own_id = table.site.?.own_id;
    var names_us = false;
    for (alive.heard.constSlice()) |*heard|
        if (heard.edge.eql(own_id) and heard.epoch == table.epoch) {
            names_us = true;
        };
    // It does not know this edge yet: it hears at once what it is to name.
    if (!names_us) table.alive_due_us = @min(table.alive_due_us, now_us);
    if (names_us) sender.is_known = true;
    if (names_us and alive.starting) table.own_claims.sayAllAgain();
    if (!sender.is_known) return;
    sender.heard_us = now_us;
    sender.booting = alive.booting;
    sender.draining = alive.draining;
}

fn mayHear(table: *const PeerTable, now_us: u64, sender: *Peer) bool {
    _ = table;
    if (now_us -| sender.second_us >= std.time.us_per_s) {
        sender.second_us = now_us;
        sender.second_count = 0;
    }
    sender.second_count += 1;
    return sender.second_count <= messages_per_s_max;
}

/// The next message, for all the others alike; null: nothing is to be said now.
pub fn next(table: *PeerTable, now_us: u64, buffer: *[peer.packet_size_max]u8) ?[]const u8 {
    if (!table.hasOthers()) return null;
    if (now_us >= table.aliveDue()) return table.emit(.{ .alive = table.ownAlive(now_us) }, buffer);
    const due = table.own_claims.takeDue(now_us) orelse return null;
    const age_ms = (now_us -| due.claim.since_us) / std.time.us_per_ms;
    const said: peer.Claim = .{
        .boot = due.claim.boot,
        .mac = due.mac,
        .stage = due.claim.stage,
        .begun_by_loader = due.claim.begun_by_loader,
        .age_ms = std.math.cast(u32, age_ms) orelse std.math.maxInt(u32),
    };
    return table.emit(if (due.claim.is_over) .{ .release = said } else .{ .claim = said }, buffer);
}

/// When `next` has something again; null: never, as things are.
pub fn nextDeadline(table: *const PeerTable) ?u64 {
    if (!table.hasOthers()) return null;
    return @min(table.aliveDue(), table.own_claims.next_due_us);
}

fn aliveDue(table: *const PeerTable) u64 {
    const sent_us = table.alive_sent_us orelse return table.alive_due_us;
    return @max(table.alive_due_us, sent_us + alive_spacing_us);
}

fn ownAlive(table: *PeerTable, now_us: u64) peer.Alive {
    table.said_booting = table.booting;
    table.alive_sent_us = now_us;
    table.alive_due_us = now_us + alive_interval_us;
    const site = &table.site.?;
    var said: peer.Alive = .{ .booting = table.booting, .draining = site.own().draining, .starting = table.isStarting(now_us) };
    for (site.edges.constSlice(), 0..) |*edge, index| {
        if (index == site.own_index or table.peers[index].epoch == 0) continue;
        said.heard.append(.{ .edge = edge.id, .epoch = table.peers[index].epoch }) catch break;
    }
    return said;
}

fn emit(table: *PeerTable, body: peer.Body, buffer: *[peer.packet_size_max]u8) []const u8 {
    table.counter += 1;
    const site = &table.site.?;
    const message: peer.Message = .{
        .edge = site.own_id,
        .epoch = table.epoch,
        .counter = table.counter,
        .body = body,
    };
    return peer.emit(&message, &site.key, buffer);
}

/// Devices in a boot at this edge. A number that changes the edge's share is told at once.
pub fn setBooting(table: *PeerTable, now_us: u64, booting: u32) void {
    table.booting = booting;
    if (device_owner.loadFactor(booting) == device_owner.loadFactor(table.said_booting)) return;
    table.alive_due_us = @min(table.alive_due_us, now_us);
}

/// A boot of this edge, whenever it has changed.
pub fn noteBoot(table: *PeerTable, boot: *const Boot) void {
    const stage: ?peer.Stage = if (boot.isOver()) null else if (isTaken(boot)) .taken else .offered;
    table.own_claims.note(boot.identity.mac, boot.identity.id, .{
        .stage = stage,
        .at_us = boot.started_us + boot.last_us,
        .begun_by_loader = boot.rom_xid == null and boot.ipxe_xid != null,
    });
}

/// A boot of this edge that is not one any more.
pub fn dropBoot(table: *PeerTable, boot: *const Boot) void {
    table.own_claims.note(boot.identity.mac, boot.identity.id, .{ .stage = null, .at_us = 0 });
}

pub fn isTaken(boot: *const Boot) bool {
    if (boot.is_taken) return true;
    const phase = boot.current() orelse return false;
    return @backingInt(phase) > @backingInt(boot_phase.Phase.dhcp);
}

/// What this edge has of the device already.
pub const Own = enum {
    none,
    offered,
    taken,

    /// `boot`: the one that the request goes on with; null: it would begin one. A loader that this
    /// edge has not given to a device of another ROM is of somebody else.
    pub fn of(boot: ?*const Boot, is_loader: bool) Own {
        const known = boot orelse return .none;
        if (isTaken(known)) return .taken;
        if (is_loader and known.rom_xid != null) return .none;
        return .offered;
    }
};

pub const Asked = struct {
    mac: Mac,
    /// The network that the device is in: the relay agent's address, or an address of this edge's own.
    network: base.Ip4,
    /// iPXE speaks, not the firmware.
    is_loader: bool = false,
    /// The device has turned to this edge by name.
    is_addressed: bool = false,
    /// The one edge that keeps what the device writes; null: it writes nothing that is kept.
    home: ?Uuid = null,
};

pub const Verdict = enum { answer, leave };

/// For each request that this edge could answer. Counts what it leaves to others.
pub fn decide(table: *PeerTable, now_us: u64, asked: Asked, own: Own) Verdict {
    const verdict = table.judge(now_us, asked, own);
    switch (verdict) {
        .answer => {
            table.held.forget(asked.mac);
            table.own_claims.sayAgain(now_us, asked.mac);
        },
        .leave => table.ignored.add(.dhcp_other_edge),
    }
    return verdict;
}

fn judge(table: *PeerTable, now_us: u64, asked: Asked, own: Own) Verdict {
    if (!table.hasOthers()) return .answer;
    // Here its boot would end with the cause that another edge keeps its writes.
    if (own != .taken and table.isHomeElsewhere(now_us, asked)) return .leave;
    if (asked.is_addressed) return .answer;
    const claim = table.claimOf(now_us, asked.mac);
    switch (own) {
        .taken => return .answer,
        .offered => {
            const other = claim orelse return .answer;
            if (other.stage == .taken) return .leave;
            return if (table.yieldsTo(other.edge)) .leave else .answer;
        },
        .none => {},
    }
    if (claim) |other| {
        // Firmware that asks although the device was further has started again: a new boot.
        if (other.stage == .offered or asked.is_loader) return .leave;
    }
    const rank = table.rankOf(now_us, asked);
    if (rank == 0) return .answer;
    return if (table.held.note(now_us, asked.mac) >= rank) .answer else .leave;
}

/// A device that is being woken: true at one edge of the site.
pub fn isOwn(table: *const PeerTable, now_us: u64, asked: Asked) bool {
    if (!table.hasOthers()) return true;
    if (table.claimOf(now_us, asked.mac) != null or table.isHomeElsewhere(now_us, asked)) return false;
    return table.isHome(asked) or table.order(now_us, asked).buffer[0] == table.site.?.own_index;
}

/// This edge keeps what the device writes.
fn isHome(table: *const PeerTable, asked: Asked) bool {
    return if (asked.home) |home| home.eql(table.site.?.own_id) else false;
}

/// Another edge keeps what the device writes, and is there.
fn isHomeElsewhere(table: *const PeerTable, now_us: u64, asked: Asked) bool {
    const site = &table.site.?;
    const index = site.indexOf(asked.home orelse return false) orelse return false;
    return index != site.own_index and table.isAlive(now_us, index);
}

pub const Owner = union(enum) {
    own,
    /// Another edge has the device in a boot.
    claimed: u8,
    /// The first of the order.
    other: u8,
};

/// Who is to start a device that is in no boot.
pub fn ownerOf(table: *const PeerTable, now_us: u64, mac: Mac, network: base.Ip4) Owner {
    if (!table.hasOthers()) return .own;
    if (table.claimOf(now_us, mac)) |claim| return .{ .claimed = claim.edge };
    const asked: Asked = .{ .mac = mac, .network = network };
    const first = table.order(now_us, asked).buffer[0];
    return if (first == table.site.?.own_index) .own else .{ .other = first };
}

fn claimOf(table: *const PeerTable, now_us: u64, mac: Mac) ?peer_claims.OtherClaims.Other {
    return table.other_claims.find(now_us, mac, table, isAlive);
}

/// How many edges come before this one.
fn rankOf(table: *const PeerTable, now_us: u64, asked: Asked) u32 {
    // No other edge answers it before.
    if (table.isHome(asked)) return 0;
    const found = table.order(now_us, asked);
    const own_index = table.site.?.own_index;
    const rank: u32 = @intCast(std.mem.findScalar(u8, found.constSlice(), own_index).?);
    return rank + @intFromBool(table.isWarmingUp(now_us));
}

fn order(table: *const PeerTable, now_us: u64, asked: Asked) device_owner.Order {
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
            .near = edge.isNear(asked.network),
            .booting = if (is_own) table.said_booting else said.booting,
        });
    }
    return device_owner.order(&candidates, asked.mac);
}

/// Where a device may go on when this edge is gone: the others that are heard, in the order in which they would answer it.
pub fn listStreams(table: *const PeerTable, now_us: u64, asked: Asked, out: *base.BoundedArray(Endpoint, stream_ticket.edges_max)) void {
    const site = if (table.site) |*site| site else return;
    for (table.order(now_us, asked).constSlice()) |index| {
        if (index == site.own_index) continue;
        out.append(site.edges.buffer[index].stream orelse continue) catch return;
    }
}

/// The others may not have said yet which boots went on there.
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

/// Of two edges that have offered a boot to one device, the lower id goes on.
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

/// What another edge's claim means for this edge's boot of the same device.
pub fn consequence(table: *PeerTable, now_us: u64, boot: *const Boot, claim: Claim) Consequence {
    assert(boot.identity.mac.eql(claim.mac));
    // It went on at the other edge, or has come from there: it is one boot, and whoever has it later reports it.
    if (claim.boot.eql(boot.identity.id)) return .keep;
    if (isTaken(boot) and !claim.is_over) {
        // The other edge has not heard yet that the device went on here.
        if (table.heardAt(boot) > claim.since_us + simultaneous_us)
            table.own_claims.sayOneAgain(boot.identity.mac, boot.identity.id);
    }
    if (boot.isOver()) return .keep;
    if (!isTaken(boot)) {
        if (claim.stage == .taken) return if (claim.since_us > boot.started_us) .withdraw else .keep;
        if (!claim.is_over) table.own_claims.noteRival(now_us, boot.identity.id);
        return .keep;
    }
    if (claim.stage == .offered) return .keep;
    const since_us = table.heardAt(boot);
    // A device is where it went last.
    if (since_us > claim.since_us + simultaneous_us) return .keep;
    if (since_us + simultaneous_us > claim.since_us and !isLower(claim.edge, table.site.?.own_id)) return .keep;
    // Firmware that is no iPXE would have been heard first, had the device started again.
    return if (claim.begun_by_loader and boot.rom_xid != null) .withdraw else .supersede;
}

fn heardAt(table: *const PeerTable, boot: *const Boot) u64 {
    const own = table.own_claims.get(boot.identity.mac, boot.identity.id) orelse
        return boot.started_us + boot.last_us;
    return own.since_us;
}

pub const Lost = struct { boot: Uuid, to: Uuid };

/// An offer that two edges have made and no device has taken: one of them takes its own back.
pub fn nextLost(table: *const PeerTable, now_us: u64) ?Lost {
    if (!table.hasOthers()) return null;
    for (table.own_claims.macs, table.own_claims.claims) |mac, *claim| {
        if (mac == 0 or claim.is_over or claim.stage != .offered) continue;
        const since_us = claim.rival_us orelse continue;
        if (now_us -| since_us < rival_limit_us) continue;
        const other = table.claimOf(now_us, .fromInt(mac)) orelse continue;
        if (!table.yieldsTo(other.edge)) continue;
        return .{ .boot = claim.boot, .to = table.site.?.edges.buffer[other.edge].id };
    }
    return null;
}

pub const Heard = struct { edge: Uuid, ago_us: u64, booting: u32 };

/// The others that are known, as they were heard last; at most as many as `buffer` holds.
pub fn listHeard(table: *const PeerTable, now_us: u64, buffer: []Heard) []Heard {
    const site = if (table.site) |*site| site else return buffer[0..0];
    var count: usize = 0;
    for (site.edges.constSlice(), 0..) |*edge, index| {
        const known = &table.peers[index];
        if (!known.is_known or count == buffer.len) continue;
        buffer[count] = .{ .edge = edge.id, .ago_us = now_us -| known.heard_us, .booting = known.booting };
        count += 1;
    }
    return buffer[0..count];
}

fn ignore(table: *PeerTable, reason: base.IgnoreReason) Received {
    table.ignored.add(reason);
    return .{ .ignored = reason };
}

test {
    _ = @import("peer_table_test.zig");
}
