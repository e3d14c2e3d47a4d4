//! An edge of the stream's proof, around the real server: which boots it knows, a process that ends, stands still and starts again, and an
//! account of all that the server sends.

const std = @import("std");
const base = @import("base");
const Checks = @import("checks.zig");
const link = @import("link.zig");
const Plant = @import("plants.zig").Plant;
const StreamAddresses = @import("addresses.zig");
const StreamBoot = @import("boot.zig");
const StreamNetwork = @import("network.zig");
const StreamSite = @import("site.zig");
const storage = @import("storage.zig");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;

pub const StreamEdge = @This();

const boots_max = StreamSite.boots_max;
const sector_size = link.sector_size;
/// Packets that wait for a process that stands still; more are dropped, as by a socket.
const inbox_max = 256;
/// A boot that has not said anything more here may be at another edge (`core/boot/failover.zig`).
const unconfirmed_us_max = 30 * std.time.us_per_s;

index: u8,
site: *StreamSite,
gpa: std.mem.Allocator,
network: *StreamNetwork,
checks: *Checks,
plant: Plant,
prng: base.Prng,
/// What it knows of the boot of each device.
known: [boots_max]Known = @splat(.{}),
layers: [boots_max]storage.Layer = @splat(.{}),
side: link.EdgeSide = undefined,
is_up: bool = false,
is_stopped: bool = false,
inbox: base.BoundedArray(StreamNetwork.Packet, inbox_max) = .empty,
settings: Settings,
disk: Disk = .{},
resumption_key: [32]u8,
/// Of processes.
serial: u32 = 0,
cache_serial: u64 = 0,
addresses: StreamAddresses = .{},
pending: base.BoundedArray(storage.Pending, storage.pending_max) = .empty,
again: ?storage.Again = null,
thief: ?Thief = null,
/// The datagram that is being answered.
from: Endpoint = .{ .ip = .zero, .port = 0 },
received_size: usize = 0,
answered_size: usize = 0,
statistics: Statistics = .{},

/// Of a boot, as this edge has it.
pub const Known = struct {
    /// 0: it knows nothing of it.
    boot_number: u32 = 0,
    /// How often it had gone on at another edge when it came here; 0: it began here.
    hand_overs: u16 = 0,
    arrived_us: u64 = 0,
    /// The edge that made the ticket by which it came.
    came_from: u8 = 0,
    /// The device has said something in its session here.
    is_confirmed: bool = true,
    /// What the edge has kept of the hello that opened the boot's session.
    opened_by: ?[16]u8 = null,
    /// In the session that the edge has of it now.
    is_ready_in_session: bool = false,
    admitted_us: u64 = 0,
    has_read: bool = false,
    ready_heard: bool = false,
    report_heard: u64 = 0,
    steps_heard: u8 = 0,
};

pub const Settings = struct {
    sessions_max: u16 = 16,
    packet_size_max: u16 = link.packet_size_ethernet,
    outstanding_bytes_max: u32 = 1 << 20,
    session_idle_us: u64 = 300 * std.time.us_per_s,
    write_slots: u16 = 8,
};

/// How badly the disk does.
pub const Disk = struct {
    latency_us: u64 = 50,
    /// Reads and writes that take up to `stall_us`.
    stalls_per_mille: u32 = 0,
    stall_us: u64 = 0,
    read_errors_per_mille: u32 = 0,
    /// Writes that cannot be carried out now.
    write_errors_per_mille: u32 = 0,
    /// Hellos that are answered with the word that the version is not there.
    missing_per_mille: u32 = 0,
};

pub const Statistics = struct {
    received: u64 = 0,
    sent: u64 = 0,
    writes: u64 = 0,
    discards: u64 = 0,
    flushes: u64 = 0,
    store_errors: u64 = 0,
    crashes: u64 = 0,
    stops: u64 = 0,
    ignored: base.IgnoredCounters = .{},
};

/// Somebody who knows a boot's token, listens, and wants a session of his own.
const Thief = struct { address: Endpoint, side: *link.DeviceSide };

pub fn start(edge: *StreamEdge) error{OutOfMemory}!void {
    assert(!edge.is_up);
    edge.serial += 1;
    var options: link.EdgeSide.Options = .{
        .cookie_key = undefined,
        .session_key = undefined,
        .resumption_key = edge.resumption_key,
        .sessions_max = edge.settings.sessions_max,
        .packet_size_max = edge.settings.packet_size_max,
        .outstanding_bytes_max = edge.settings.outstanding_bytes_max,
        .session_idle_us = edge.settings.session_idle_us,
        .write_slots = edge.settings.write_slots,
    };
    edge.prng.fill(&options.cookie_key);
    edge.prng.fill(&options.session_key);
    edge.side = try .init(edge.gpa, options, edge.plant);
    edge.addresses.clear();
    edge.is_up = true;
}

/// The process ends.
pub fn crash(edge: *StreamEdge, keeps_keys: bool) void {
    assert(edge.is_up);
    edge.end();
    edge.statistics.crashes += 1;
    if (!keeps_keys) {
        edge.prng.fill(&edge.resumption_key);
        for (&edge.site.boots) |*boot| boot.ends.insert(.keys_lost);
    }
    for (&edge.known) |*known| {
        known.is_ready_in_session = false;
        // Its journal has those that have said something here.
        if (!known.is_confirmed) known.* = .{};
    }
    storage.crash(edge);
}

/// Gives back what a process has.
pub fn end(edge: *StreamEdge) void {
    edge.statistics.ignored.merge(&edge.side.server.ignored);
    edge.side.deinit(edge.gpa);
    edge.is_up = false;
    edge.is_stopped = false;
    for (edge.inbox.constSlice()) |packet| edge.network.pool.giveBack(packet.slot);
    edge.inbox.clear();
    edge.pending.clear();
    edge.again = null;
}

/// It stands still: nothing is answered, and what comes waits.
pub fn stop(edge: *StreamEdge) void {
    assert(edge.is_up);
    if (!edge.is_stopped) edge.statistics.stops += 1;
    edge.is_stopped = true;
}

pub fn goOn(edge: *StreamEdge) void {
    if (!edge.is_stopped) return;
    edge.is_stopped = false;
    for (edge.inbox.constSlice()) |packet| {
        edge.receive(packet.from, edge.network.pool.view(packet.slot));
        edge.network.pool.giveBack(packet.slot);
    }
    edge.inbox.clear();
    storage.wake(edge);
}

/// Nothing is known of the boot of this device any more.
pub fn forget(edge: *StreamEdge, device: u8) void {
    if (edge.is_up) edge.side.forget(edge.site.boots[device].id);
    edge.known[device] = .{};
    edge.layers[device].boot_number = 0;
}

/// The newest boot of this device begins here.
pub fn know(edge: *StreamEdge, device: u8) void {
    edge.known[device] = .{ .boot_number = edge.site.boots[device].number };
}

/// What this edge knows of the boot; null: nothing.
pub fn knownOf(edge: *StreamEdge, boot: *const StreamBoot) ?*Known {
    const known = &edge.known[edge.site.indexOf(boot)];
    return if (known.boot_number == boot.number) known else null;
}

/// A ticket of this boot is good here: the boot is known from now on. False: it has gone further than that.
pub fn takeTicket(edge: *StreamEdge, boot: *const StreamBoot, hand_overs: u16, came_from: u8) bool {
    const known = &edge.known[edge.site.indexOf(boot)];
    const is_known = known.boot_number == boot.number;
    if (is_known and hand_overs + 1 < known.hand_overs) return false;
    // The same hello again, or the same hand-over: what is known of it here stays.
    if (is_known and known.hand_overs == hand_overs + 1) return true;
    known.* = .{
        .boot_number = boot.number,
        .hand_overs = hand_overs + 1,
        .arrived_us = edge.network.now_us,
        .came_from = came_from,
        .is_confirmed = false,
    };
    return true;
}

/// The device of this boot has said something in its session.
pub fn confirm(edge: *StreamEdge, boot: *const StreamBoot) void {
    if (edge.knownOf(boot)) |known| known.is_confirmed = true;
}

/// What comes waits for a process that stands still; its place in the pool is the edge's then.
pub fn keep(edge: *StreamEdge, packet: StreamNetwork.Packet) bool {
    if (!edge.is_stopped) return false;
    edge.inbox.append(packet) catch edge.network.pool.giveBack(packet.slot);
    return true;
}

pub fn receive(edge: *StreamEdge, from: Endpoint, bytes: []const u8) void {
    if (!edge.is_up) return;
    edge.statistics.received += 1;
    edge.from = from;
    edge.received_size = bytes.len;
    edge.answered_size = 0;
    edge.addresses.of(from).bytes_in += bytes.len;
    edge.side.receive(edge, from, bytes);
    // What ends later is no answer to this datagram.
    edge.received_size = 0;
}

/// From the server; `boot` where the packet belongs to a session.
pub fn send(edge: *StreamEdge, to: Endpoint, bytes: []const u8, boot: ?*const StreamBoot, after_us: u64) void {
    edge.statistics.sent += 1;
    const place = edge.addresses.of(to);
    place.bytes_out += bytes.len;
    edge.answered_size += bytes.len;
    if (!place.is_proved and (!to.eql(edge.from) or edge.answered_size > edge.received_size))
        edge.checks.violate(.no_amplification, "{d} bytes for {d} go to {f}, which has shown no cookie", .{
            edge.answered_size, edge.received_size, to,
        });
    if (boot) |known| if (!known.isAddress(to))
        edge.checks.violate(.right_address, "{d} bytes of boot {d} go to {f}, which its device never had", .{ bytes.len, known.number, to });
    if (edge.thief) |thief| if (thief.address.eql(to)) {
        place.was_reached = true;
        return thief.side.receive(edge.network.now_us, bytes);
    };
    edge.network.sendToDevice(edge.index, to, bytes, after_us);
}

/// The token of a boot that has opened its session opens none for anybody else.
pub fn tryToken(edge: *StreamEdge, boot: *const StreamBoot, address: Endpoint) error{OutOfMemory}!void {
    if (!edge.is_up or edge.is_stopped) return;
    const known = edge.knownOf(boot) orelse return;
    if (known.opened_by == null) return;
    var side: link.DeviceSide = try .init(edge.gpa, .{
        .reads_max = 1,
        .writes_max = 1,
        .packet_size_max = link.packet_size_ethernet,
        .outstanding_bytes_max = link.read_size_max,
    }, .none);
    defer side.deinit(edge.gpa);
    edge.thief = .{ .address = address, .side = &side };
    defer edge.thief = null;
    var seed: [32]u8 = undefined;
    edge.prng.fill(&seed);
    side.start(edge.network.now_us, .{ .boot_id = boot.id, .token = boot.token, .nonce_seed = seed, .edge = StreamNetwork.edgeAddress(edge.index) });
    // Hello, hello with the cookie; each is answered before the next.
    for (0..3) |_| if (side.transmit(edge.network.now_us)) |packet| edge.receive(address, packet);
    if (side.isEstablished()) edge.checks.violate(.token_opens_once, "the token of boot {d} opens a session for somebody else", .{boot.number});
}

/// A packet of the edge has arrived.
pub fn noteArrival(edge: *StreamEdge, at: Endpoint) void {
    edge.addresses.of(at).was_reached = true;
}

/// The server believes this address.
pub fn noteClaim(edge: *StreamEdge, from: Endpoint) void {
    if (!edge.addresses.of(from).was_reached)
        edge.checks.violate(.cookie_is_checked, "{f} is believed without having got anything", .{from});
}

const Admitted = struct { kind: link.HelloKind, nonce: [16]u8, outcome: enum { opened, resumed, repeated }, had_session: bool };

pub fn noteAdmission(edge: *StreamEdge, boot: *StreamBoot, from: Endpoint, admitted: Admitted) void {
    edge.addresses.of(from).is_proved = true;
    if (boot.class != .device_ram and boot.home != edge.index)
        edge.checks.violate(.writes_stay_home, "boot {d} writes at edge {d}, and edge {d} opens a session of it", .{
            boot.number, boot.home, edge.index,
        });
    const known = edge.knownOf(boot) orelse return;
    if (admitted.outcome != .repeated) {
        known.admitted_us = edge.network.now_us;
        known.has_read = false;
    }
    if (!admitted.had_session) {
        known.is_ready_in_session = false;
        // What has come before is forgotten with its session; the device sends again only what nothing came after.
        edge.layers[edge.site.indexOf(boot)].carried = @splat(null);
    }
    if (admitted.kind == .ticket and !known.is_confirmed) edge.site.vigil.checkReason(edge.site, edge.site.indexOf(boot), .{ .left = known.came_from, .at = edge.index });
    if (admitted.outcome != .opened) return;
    if (known.opened_by) |before| if (!std.mem.eql(u8, &before, &admitted.nonce) or admitted.had_session)
        edge.checks.violate(.token_opens_once, "the token of boot {d} opens a second session", .{boot.number});
    known.opened_by = admitted.nonce;
}

/// The first READ of a session: where nothing was in the way of the larger WELCOME, it asks for packets of that size.
pub fn noteRead(edge: *StreamEdge, boot: *const StreamBoot, asked: struct { packet_size: u16, packet_size_max: u16 }) void {
    const known = edge.knownOf(boot) orelse return;
    if (known.has_read) return;
    known.has_read = true;
    if (asked.packet_size == asked.packet_size_max or asked.packet_size_max <= link.packet_size_ethernet) return;
    const own = &edge.network.links[edge.site.indexOf(boot)];
    if (!own.faults.isQuiet() or own.lost_at_us >= known.admitted_us or own.payload_max[1] < asked.packet_size_max) return;
    edge.checks.violate(.jumbo_from_the_first, "boot {d} asks for packets of {d} bytes first, of {d} that came to it", .{
        boot.number, asked.packet_size, asked.packet_size_max,
    });
}

/// The version of a boot is not in the store right now.
pub fn misses(edge: *StreamEdge, boot: *StreamBoot) bool {
    if (!edge.happens(edge.disk.missing_per_mille)) return false;
    boot.ends.insert(.version_missing);
    return true;
}

pub fn second(edge: *StreamEdge) void {
    if (!edge.is_up or edge.is_stopped) return;
    const now_us = edge.network.now_us;
    edge.side.expire(now_us);
    if (edge.side.excess()) |what| edge.checks.violate(.tables_bounded, "{s}", .{what});
    for (&edge.known) |*known| if (!known.is_confirmed and now_us - known.arrived_us >= unconfirmed_us_max) {
        known.* = .{};
    };
}

/// `is_repeated`: the server says that it has heard it before.
pub fn takeReady(edge: *StreamEdge, boot_id: base.Uuid, is_repeated: bool) void {
    const boot = edge.site.bootOf(boot_id) orelse return;
    const known = edge.knownOf(boot) orelse return;
    known.is_confirmed = true;
    if (!is_repeated and known.is_ready_in_session)
        edge.checks.violate(.ready_once, "READY of boot {d} comes twice as new", .{boot.number});
    known.is_ready_in_session = true;
    known.ready_heard = true;
}

/// The order that waits for the device, by its id.
pub fn takeReport(edge: *StreamEdge, boot_id: base.Uuid, said: *const link.Report) ?[16]u8 {
    const boot = edge.site.bootOf(boot_id) orelse return null;
    const known = edge.knownOf(boot) orelse return null;
    known.is_confirmed = true;
    if (edge.plant != .report_not_heard) {
        known.report_heard = @max(known.report_heard, said.write_cache_used);
        known.steps_heard = @max(known.steps_heard, said.steps.count);
    }
    const order = &(boot.order orelse return null);
    if (std.mem.eql(u8, &order.id, &said.order_id)) order.is_known = true;
    return if (order.is_known) null else order.id;
}

pub fn noteUsed(edge: *StreamEdge, boot_id: base.Uuid, offset: u64) void {
    const boot = edge.site.bootOf(boot_id) orelse return;
    if (offset >= @as(u64, boot.version.sectors) * sector_size)
        edge.checks.violate(.bytes_are_right, "boot {d} says that it has used what lies beyond its disk", .{boot.number});
}

pub fn happens(edge: *StreamEdge, per_mille: u32) bool {
    return per_mille > 0 and edge.prng.below(1000) < per_mille;
}
