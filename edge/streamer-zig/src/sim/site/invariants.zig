//! The invariants of a simulated site, and the account that they are checked against. The account
//! records what the nodes are seen to do, never what they believe; it keeps the first violation of
//! a run.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const stream = @import("wire").stream;
const ControlPlane = @import("control_plane.zig");
const device_keys = @import("device_keys.zig");
const Version = @import("disk.zig").Version;
const Copy = @import("event_queue.zig").Copy;
const assert = std.debug.assert;

pub const Invariants = @This();

pub const boots_max = 512;
const devices_max = 64;
const addresses = @import("addresses.zig");
const edges_max = addresses.edges_max;
pub const orders_max = 32;
/// For so long an edge remembers that it has left a device to another (core/site/peer_claims.zig).
const retry_kept_us = 61 * std.time.us_per_s;

violation: ?Violation = null,
boots: [boots_max]BootAccount = undefined,
boot_count: u32 = 0,
power_ons: [devices_max]u32 = @splat(0),
boots_begun: [edges_max][devices_max]u32 = @splat(@splat(0)),
/// When each device last retransmitted its request for an offer.
retried_at_us: [devices_max]?u64 = @splat(null),
/// The edges that have offered a boot to each device since it was switched on; bit n: edge n.
answered_by: [devices_max]u8 = @splat(0),
/// When another machine last showed the token of a boot of each device, on a network with faults.
impersonated_at_us: [devices_max]?u64 = @splat(null),
/// Devices that the control plane has not listed for a while.
was_absent: [devices_max]bool = @splat(false),
/// Devices that the control plane keeps out.
is_kept_out: [devices_max]bool = @splat(false),
/// The versions that each edge has whole; bit n: version n. Those of a dead edge are none.
whole_copies: [edges_max]u8 = @splat(0),
/// The last boot offers of each device.
offers: [devices_max]BootOffer = @splat(.{}),
devices_ready: u32 = 0,
devices_failed: u32 = 0,
resumptions: u64 = 0,
failovers: u64 = 0,
/// How often each edge was started.
generations: [edges_max]u32 = @splat(0),
/// How often an edge has lost the write caches that end with its process.
losses: [edges_max]u32 = @splat(0),
healed: bool = false,
/// An attacker is on the network: he begins boots, too.
is_attacked: bool = false,
/// The control plane has withdrawn a version.
has_withdrawn: bool = false,
/// Healed long enough that the edges have heard each other.
is_settled: bool = false,
accepted_keys: [edges_max][devices_max]device_keys.Accepted = @splat(@splat(.{})),
orders: [orders_max]OrderAccount = undefined,
order_count: u32 = 0,

pub const Check = enum {
    bytes_equal_version,
    one_version_per_boot,
    windows_bounded,
    tables_bounded,
    queue_bounded,
    mtu_respected,
    no_bytes_before_cookie,
    token_bought_once,
    /// Beside a boot with a session a device has one candidate, otherwise two.
    few_boots_per_device,
    one_boot_per_power_on,
    /// A device's boot ends only by itself, by an order, or by its later boot that has proved
    /// itself while the earlier one's session was silent.
    running_boot_kept,
    /// What anybody can begin is not reported beside a device that is heard.
    no_hint_reported,
    ready_once,
    /// A device that has read nothing is not ready.
    ready_by_itself,
    /// A boot profile has only what boots of its version have read, without their writes.
    profile_of_its_version,
    reads_counted,
    outcome_final,
    revisions_ascend,
    /// A boot begins only for a device that the state in force lists and enables,
    only_wanted_devices,
    /// and with the version that the state in force assigns and describes.
    only_wanted_versions,
    /// On a healed network one edge of the site answers a device, and no edge that drains.
    one_edge_answers,
    /// On a healed network no edge without a device's version, or with a damaged one, answers the
    /// device while another edge has it whole.
    holder_answers,
    /// What belongs to one device opens only to the machine with its key, as far as one is known.
    private_for_its_key,
    /// A key counts only from a boot that has proved itself, and then in every boot of its device.
    accepted_key_kept,
    /// An edge says that there is no IPv6 router only to a device in its loader that asks, and
    /// where it knows of none.
    router_denied_rarely,
    /// A boot that waits for an IPv6 router is recognized, and does not wait where none is.
    router_wait_known,
    /// Writes that outlive their boot are kept by the edge that the plan names.
    one_write_owner,
    one_address_per_device,
    no_honest_refusal,
    every_boot_finishes,
    /// Devices attached to a healed network make progress under every attack.
    progress,
    order_taken_once,
    last_words_arrive,
    schedules,
    reports_once,
    no_busy_waiting,
    time_forward,
    same_seed_same_run,
    canary,
};

pub const Violation = struct {
    check: Check,
    text_buffer: [160]u8,
    text_size: u8,

    pub fn text(violation: *const Violation) []const u8 {
        return violation.text_buffer[0..violation.text_size];
    }
};

/// What an edge has reported of a boot since it began there or failed over to it.
const EdgeReports = struct {
    /// How often the boot had failed over.
    failovers: u16 = 0,
    revision: u64 = 0,
    outcome: ?core.boot.phase.OutcomeKind = null,
    ready_count: u32 = 0,
};

pub const BootAccount = struct {
    id: base.Uuid,
    device: u8,
    version: Version,
    /// The reports of each edge that had the boot.
    said: [edges_max]EdgeReports = @splat(.{}),
    has_moved: bool = false,
    token_nonce: ?[16]u8 = null,
    /// A read of the store failed in this boot: the edge counts it as failed, though the device may
    /// recover.
    had_store_error: bool = false,
    edge: u8,
    /// The edge's generation when the boot began.
    generation: u32,
    /// The edge's losses of write caches when the boot began.
    losses: u32,
    /// The device took another edge's offer.
    is_withdrawn: bool = false,
    /// The edge's count when it received READY.
    reads_counted: u64 = 0,
    /// The device itself saw its READY acknowledged.
    device_ready: bool = false,
    /// In bytes, by the edge's last report that had a size.
    write_cache_used: ?u64 = null,
    /// On a network with faults its session was silent, and another machine took its place.
    was_silent: bool = false,
    /// Another machine with its MAC address has shown the boot's token.
    was_impersonated: bool = false,
    /// Whose key opened what belongs to the device was checked.
    is_key_checked: bool = false,

    /// Returns the report that counts at the control plane.
    fn latest(account: *const BootAccount) *const EdgeReports {
        var best = &account.said[0];
        for (account.said[1..]) |*said| if (said.revision > best.revision) {
            best = said;
        };
        return best;
    }
};

/// The exchange of a device that is offered a boot, and the edges that offered it; bit n: edge n.
const BootOffer = struct { xid: u32 = 0, edges: u8 = 0 };

pub const OrderAccount = struct {
    id: base.Uuid,
    /// The boot that its device was in when each edge first saw it; zero: none.
    boot_ids: [edges_max]base.Uuid = @splat(.zero),
    taken_count: u32 = 0,

    fn isFor(order: *const OrderAccount, boot_id: base.Uuid) bool {
        for (order.boot_ids) |id| if (id.eql(boot_id)) return true;
        return false;
    }
};

pub fn violate(
    invariants: *Invariants,
    check: Check,
    comptime format: []const u8,
    arguments: anytype,
) void {
    if (invariants.violation != null) return;
    var violation: Violation = .{ .check = check, .text_buffer = undefined, .text_size = 0 };
    const text = std.mem.print(&violation.text_buffer, format, arguments) catch
        violation.text_buffer[0..];
    violation.text_size = @intCast(text.len);
    invariants.violation = violation;
}

pub fn find(invariants: *Invariants, id: base.Uuid) ?*BootAccount {
    for (invariants.boots[0..invariants.boot_count]) |*account|
        if (account.id.eql(id)) return account;
    return null;
}

pub fn notePowerOn(invariants: *Invariants, device: u8) void {
    invariants.power_ons[device] += 1;
    invariants.answered_by[device] = 0;
}

/// Notes that the edge put a new boot into its table.
pub fn noteBegin(
    invariants: *Invariants,
    edge: u8,
    id: base.Uuid,
    mac: base.Mac,
    version: Version,
) void {
    // In standalone use an edge cannot know better.
    if (addresses.isInvented(mac)) return;
    const device = deviceOf(mac) orelse
        return invariants.violate(.one_boot_per_power_on, "{f} boots and is no device", .{mac});
    const begun = &invariants.boots_begun[edge][device];
    begun.* += 1;
    if (begun.* > invariants.power_ons[device] and !invariants.is_attacked)
        invariants.violate(
            .one_boot_per_power_on,
            "device {d} was switched on {d} times and has {d} boots at edge {d}",
            .{ device, invariants.power_ons[device], begun.*, edge },
        );
    if (invariants.boot_count == boots_max)
        return invariants.violate(.tables_bounded, "more than {d} boots", .{boots_max});
    invariants.boots[invariants.boot_count] = .{
        .id = id,
        .device = device,
        .version = version,
        .edge = edge,
        .generation = invariants.generations[edge],
        .losses = invariants.losses[edge],
    };
    invariants.boot_count += 1;
}

/// Notes that the edge withdraws a boot, as its device took another edge's offer.
pub fn noteWithdrawn(invariants: *Invariants, id: base.Uuid) void {
    const account = invariants.find(id) orelse return;
    if (account.device_ready)
        invariants.violate(
            .ready_once,
            "device {d} is ready in a withdrawn boot",
            .{account.device},
        );
    account.is_withdrawn = true;
    invariants.boots_begun[account.edge][account.device] -= 1;
}

/// Notes that a device retransmits its request, or gets no answer.
pub fn noteRetry(invariants: *Invariants, device: u8, now_us: u64) void {
    invariants.retried_at_us[device] = now_us;
}

pub fn hadSeveralEdges(invariants: *const Invariants, device: u8) bool {
    return @popCount(invariants.answered_by[device]) > 1;
}

/// Returns whether one edge alone answers this device. The others answer a retransmission.
pub fn hasOneEdge(invariants: *const Invariants, device: u8, now_us: u64) bool {
    const retried_at_us = invariants.retried_at_us[device] orelse return invariants.is_settled;
    return invariants.is_settled and now_us - retried_at_us > retry_kept_us;
}

/// Notes that the edge names a boot file to a device in this exchange.
pub fn noteBootOffer(invariants: *Invariants, edge: u8, mac: base.Mac, xid: u32, now_us: u64) void {
    const device = deviceOf(mac) orelse return;
    if (invariants.boots_begun[edge][device] == 0)
        invariants.violate(.only_wanted_devices, "edge {d} offers device {d} a boot of none", .{
            edge, device,
        });
    invariants.answered_by[device] |= @as(u8, 1) << @intCast(edge);
    // An attacker asks several edges in the device's name, and each may answer it then.
    if (invariants.is_attacked or !invariants.hasOneEdge(device, now_us)) return;
    const offer = &invariants.offers[device];
    if (offer.xid != xid) offer.* = .{ .xid = xid };
    offer.edges |= @as(u8, 1) << @intCast(edge);
    if (@popCount(offer.edges) > 1)
        invariants.violate(
            .one_edge_answers,
            "several edges answer device {d}, one of them is {d}",
            .{ device, edge },
        );
}

/// Takes what is in the store of an edge.
pub fn noteCopies(
    invariants: *Invariants,
    edge: u8,
    is_alive: bool,
    copies: []const Copy,
) void {
    invariants.whole_copies[edge] = 0;
    if (!is_alive) return;
    for (copies, 0..) |copy, version|
        invariants.whole_copies[edge] |= @as(u8, @intFromBool(copy == .whole)) << @intCast(version);
}

/// Returns whether an edge that is not one of these has the version whole.
pub fn isWholeElsewhere(
    invariants: *const Invariants,
    version: u8,
    is_excepted: *const [edges_max]bool,
) bool {
    for (invariants.whole_copies, is_excepted) |copies, is_out|
        if (!is_out and copies >> @intCast(version) & 1 != 0) return true;
    return false;
}

/// Notes that the edge names a boot file to a device whose version this is; null: unknown.
pub fn noteVersionOffer(
    invariants: *Invariants,
    edge: u8,
    device: u8,
    version: ?u8,
    now_us: u64,
) void {
    const bit = @as(u8, 1) << @intCast(version orelse return);
    if (invariants.is_attacked or !invariants.hasOneEdge(device, now_us)) return;
    if (invariants.whole_copies[edge] & bit != 0) return;
    for (invariants.whole_copies, 0..) |copies, other| if (copies & bit != 0)
        return invariants.violate(
            .holder_answers,
            "edge {d} answers device {d} without version {d}, which edge {d} has",
            .{ edge, device, version.?, other },
        );
}

/// Notes that the edge wrote a report.
pub fn noteReport(invariants: *Invariants, edge: u8, boot: *const core.boot.Boot) void {
    if (addresses.isInvented(boot.identity.mac)) return;
    const account = invariants.find(boot.identity.id) orelse
        return invariants.violate(
            .one_boot_per_power_on,
            "a report of a boot that never began",
            .{},
        );
    const device = account.device;
    const said = &account.said[edge];
    const failovers = if (boot.failover) |failover| failover.number else 0;
    if (failovers != said.failovers) {
        said.* = .{ .failovers = failovers, .revision = boot.failover.?.revisionBase() };
        account.has_moved = true;
    }
    if (boot.revision != said.revision + 1)
        invariants.violate(.revisions_ascend, "device {d}: revision {d} follows {d}", .{
            device, boot.revision, said.revision,
        });
    said.revision = boot.revision;
    const is_latest = account.latest() == said;
    if (boot.guest) |*guest| if (guest.write_cache) |cache| if (is_latest) {
        account.write_cache_used = cache.used;
    };
    const kind: core.boot.phase.OutcomeKind = boot.outcome orelse {
        if (said.outcome != null)
            invariants.violate(
                .outcome_final,
                "device {d}: a boot that was over is in progress again",
                .{device},
            );
        return;
    };
    // A boot that is over is reported again when its device reports something new.
    if (kind == .ready and boot.live_changes.outcome) {
        const stage2 = boot.record(.stage2) orelse return invariants.violate(
            .ready_by_itself,
            "device {d}: somebody else says that it is ready",
            .{device},
        );
        account.reads_counted = stage2.reads;
        said.ready_count += 1;
        if (said.ready_count > 1)
            invariants.violate(.ready_once, "device {d}: a boot is ready {d} times", .{
                device, said.ready_count,
            });
    }
    if (said.outcome) |before| if (before != kind)
        invariants.violate(.outcome_final, "device {d}: {t} became {t}", .{ device, before, kind });
    said.outcome = kind;
}

/// Notes that the edge answered this HELLO, with or without a cookie, by WELCOME.
pub fn noteWelcome(invariants: *Invariants, hello: *const stream.Hello) void {
    const account = invariants.find(.fromBytes(hello.boot_id)) orelse
        return invariants.violate(.token_bought_once, "a session for a boot that never began", .{});
    switch (hello.kind) {
        .token => {},
        .resumption => {
            invariants.resumptions += 1;
            return;
        },
        .ticket => {
            invariants.failovers += 1;
            account.has_moved = true;
            return;
        },
    }
    if (account.token_nonce) |nonce| if (!std.mem.eql(u8, &nonce, &hello.client_nonce))
        return invariants.violate(
            .token_bought_once,
            "device {d}: its token opened a second session",
            .{account.device},
        );
    account.token_nonce = hello.client_nonce;
}

/// Notes that another machine sends a HELLO with the token of this device's boot.
pub fn noteImpersonated(invariants: *Invariants, device: u8, now_us: u64) void {
    if (!invariants.healed) invariants.impersonated_at_us[device] = now_us;
}

/// Returns whether another machine may have proved itself in the device's place since it was
/// switched on, so that the device's own candidate has ended.
pub fn wasImpersonated(invariants: *const Invariants, device: u8, power_on_at_us: u64) bool {
    const at_us = invariants.impersonated_at_us[device] orelse return false;
    return at_us + in_flight_us_max >= power_on_at_us;
}

/// A packet of the attacker arrives this late at most.
const in_flight_us_max = 2 * std.time.us_per_s;

/// Notes that a session with a boot token has opened what belongs to its device alone, by a HELLO
/// that claims this.
pub fn noteOpened(
    invariants: *Invariants,
    edge: u8,
    account: *BootAccount,
    plan: *const ControlPlane.DevicePlan,
    claim: core.site.DeviceIdentity.Claim,
) void {
    if (account.is_key_checked) return;
    account.is_key_checked = true;
    const accepted = &invariants.accepted_keys[edge][account.device];
    const reason = device_keys.objection(accepted, plan, claim) orelse return;
    invariants.violate(
        .private_for_its_key,
        "edge {d} opens what belongs to device {d} to {s}",
        .{ edge, account.device, reason },
    );
}

/// Checks which keys the edge's boots know of their devices where nobody has decided.
pub fn checkIdentities(
    invariants: *Invariants,
    edge: u8,
    table: *core.boot.Table,
    plan: *const ControlPlane.Plan,
) void {
    var iterator = table.iterate();
    while (iterator.next()) |boot| {
        const device = deviceOf(boot.identity.mac) orelse continue;
        const planned = &plan.devices[device];
        const identity = &boot.device_identity;
        if (planned.key != .unknown or identity.revision != planned.key_revision) continue;
        const accepted = &invariants.accepted_keys[edge][device];
        if (accepted.revision != planned.key_revision)
            accepted.* = .{ .revision = planned.key_revision };
        const fault: []const u8 = switch (identity.state) {
            .keyless => "is without a key",
            .unknown => if (accepted.key == null) continue else "has forgotten the key",
            .known => |key| if (accepted.key) |own|
                if (std.mem.eql(u8, &own, &key)) continue else "has another key"
            else if (planned.key_policy.needsApproval())
                "has a key that nobody has approved"
            else if (runsBeside(table, boot))
                "has a key, beside another boot that runs"
            else {
                accepted.key = key;
                continue;
            },
        };
        invariants.violate(
            .accepted_key_kept,
            "a boot of device {d} at edge {d} {s}",
            .{ device, edge, fault },
        );
    }
}

fn runsBeside(table: *core.boot.Table, boot: *const core.boot.Boot) bool {
    var others = table.iterateOf(boot.identity.mac);
    while (others.next()) |ref| {
        const other = table.get(ref).?;
        if (other != boot and other.isRunning()) return true;
    }
    return false;
}

/// Notes that the edge has ended this boot for the sake of another one of its device, which has
/// proved itself. On a healed network a device that runs is never silent for so long.
pub fn noteTakenOver(invariants: *Invariants, id: base.Uuid) void {
    const account = invariants.find(id) orelse return;
    if (!invariants.healed) account.was_silent = true;
}

/// READs of a device with different ids. One that was renamed before anything of its answer had
/// arrived may have been lost on its way to the edge, which then never counted the earlier id.
pub const ReadsSent = struct { sent: u64, renamed: u64 };

/// Notes that a device saw its READY acknowledged.
pub fn noteDeviceReady(
    invariants: *Invariants,
    edge: u8,
    id: base.Uuid,
    reads_asked: ?ReadsSent,
) void {
    invariants.devices_ready += 1;
    const account = invariants.find(id) orelse
        return invariants.violate(.ready_once, "a boot that never began is ready", .{});
    if (account.device_ready) invariants.violate(
        .ready_once,
        "device {d} is ready twice in a boot",
        .{account.device},
    );
    account.device_ready = true;
    const outcome = account.said[edge].outcome orelse
        return invariants.violate(
            .ready_once,
            "device {d} is ready and its boot is still in progress",
            .{account.device},
        );
    if (outcome == .failed and account.had_store_error) return;
    if (outcome != .ready)
        return invariants.violate(
            .ready_once,
            "device {d} is ready and its boot is {t}",
            .{ account.device, outcome },
        );
    // What a crash loses is not counted again.
    const reads = reads_asked orelse return;
    if (account.has_moved or account.generation != invariants.generations[account.edge]) return;
    const counted = account.reads_counted;
    if (counted > reads.sent or counted + reads.renamed < reads.sent)
        invariants.violate(
            .reads_counted,
            "device {d} sent {d} READs, {d} of them under a second id; the edge counted {d}",
            .{ account.device, reads.sent, reads.renamed, counted },
        );
}

/// Notes that the edge sees a power order for the first time.
pub fn noteOrder(invariants: *Invariants, edge: u8, bound: core.site.PowerOrders.BoundOrder) void {
    for (invariants.orders[0..invariants.order_count]) |*order| if (order.id.eql(bound.id)) {
        if (order.boot_ids[edge].eql(.zero)) order.boot_ids[edge] = bound.boot_id;
        return;
    };
    if (invariants.order_count == orders_max)
        return invariants.violate(.tables_bounded, "more than {d} orders", .{orders_max});
    invariants.orders[invariants.order_count] = .{ .id = bound.id };
    invariants.orders[invariants.order_count].boot_ids[edge] = bound.boot_id;
    invariants.order_count += 1;
}

/// Notes that a device carries out an order in this boot.
pub fn noteOrderTaken(invariants: *Invariants, id: base.Uuid, device: u8, boot_id: base.Uuid) void {
    for (invariants.orders[0..invariants.order_count]) |*order| {
        if (!order.id.eql(id)) continue;
        order.taken_count += 1;
        if (order.taken_count > 1)
            invariants.violate(
                .order_taken_once,
                "device {d} takes an order {d} times",
                .{ device, order.taken_count },
            );
        if (!order.isFor(boot_id))
            invariants.violate(
                .order_taken_once,
                "device {d} takes an order that was for another boot",
                .{device},
            );
        return;
    }
    invariants.violate(.order_taken_once, "device {d} takes an order that nobody gave", .{device});
}

/// Returns whether an order waits for a boot that one of these devices is in.
pub fn hasOrderFor(invariants: *const Invariants, nodes: anytype) bool {
    for (invariants.orders[0..invariants.order_count]) |*order| {
        if (order.taken_count > 0) continue;
        for (nodes) |*node| if (node.device.plan) |plan| if (order.isFor(plan.boot_id)) return true;
    }
    return false;
}

/// Checks the table of boots after every event.
pub fn checkTable(invariants: *Invariants, table: *core.boot.Table) void {
    if (table.count > table.slots.len)
        invariants.violate(.tables_bounded, "{d} boots in the table", .{table.count});
    var candidates: [devices_max]u8 = @splat(0);
    var has_proved: [devices_max]bool = @splat(false);
    var open_count: u32 = 0;
    var iterator = table.iterate();
    while (iterator.next()) |boot| {
        if (!boot.isOver()) open_count += 1;
        const device = deviceOf(boot.identity.mac) orelse continue;
        candidates[device] += @intFromBool(boot.isCandidate());
        if (boot.isRunning() and boot.isProved()) has_proved[device] = true;
    }
    for (candidates, has_proved, 0..) |count, has_session, device| {
        const most: u8 = if (has_session) 1 else 2;
        if (count > most) invariants.violate(
            .few_boots_per_device,
            "device {d} has {d} candidates, beside a boot with a session: {}",
            .{ device, count, has_session },
        );
    }
    if (!table.isSound())
        invariants.violate(.tables_bounded, "an index of the boots is wrong", .{});
    if (open_count != table.active_count)
        invariants.violate(
            .tables_bounded,
            "{d} boots in progress, counted as {d}",
            .{ open_count, table.active_count },
        );
}

/// Checks what must hold at the end of a run.
pub fn checkEnd(invariants: *Invariants) void {
    for (invariants.boots[0..invariants.boot_count]) |*account| {
        if (account.is_withdrawn or invariants.is_kept_out[account.device]) continue;
        const latest = account.latest();
        // The attacker began it.
        const is_own = account.token_nonce != null or account.has_moved;
        if (invariants.is_attacked and !is_own) continue;
        const outcome = latest.outcome orelse {
            // That machine may have got its session, and has left.
            if (account.was_impersonated and !account.device_ready) continue;
            invariants.violate(
                .every_boot_finishes,
                "a boot of device {d} has no outcome",
                .{account.device},
            );
            continue;
        };
        if (outcome == .ready and latest.ready_count != 1)
            invariants.violate(.ready_once, "device {d}: {d} reports of ready", .{
                account.device, latest.ready_count,
            });
    }
}

pub const macOf = addresses.macOf;

/// Returns null if no device of the site has this address.
pub fn deviceOf(mac: base.Mac) ?u8 {
    const device = mac.bytes[5] -% 1;
    return if (device < devices_max and macOf(device).eql(mac)) device else null;
}

const testing = std.testing;

test "a boot more than there were power-ons is a violation" {
    var invariants: Invariants = .{};
    const version: Version = .{ .id = .fromRandom(@splat(1)), .size = 512 };
    invariants.notePowerOn(3);
    invariants.noteBegin(0, .fromRandom(@splat(7)), macOf(3), version);
    try testing.expectEqual(null, invariants.violation);
    invariants.noteBegin(0, .fromRandom(@splat(8)), macOf(3), version);
    try testing.expectEqual(.one_boot_per_power_on, invariants.violation.?.check);
}

test "the first violation is kept" {
    var invariants: Invariants = .{};
    invariants.violate(.ready_once, "first {d}", .{1});
    invariants.violate(.time_forward, "second", .{});
    try testing.expectEqual(.ready_once, invariants.violation.?.check);
    try testing.expectEqualStrings("first 1", invariants.violation.?.text());
}
