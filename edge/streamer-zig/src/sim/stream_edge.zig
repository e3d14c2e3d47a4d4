//! The edge of the stream's proof, around the real server: what boots there are, a disk that is slow, fails and loses what was not synced
//! when its process ends, and an account of all that the server sends.

const std = @import("std");
const base = @import("base");
const Checks = @import("stream_checks.zig");
const content = @import("stream_content.zig");
const link = @import("stream_link.zig");
const Plant = @import("stream_plants.zig").Plant;
const StreamAddresses = @import("stream_addresses.zig");
const StreamBoot = @import("stream_boot.zig");
const StreamNetwork = @import("stream_network.zig");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;
const WriteRef = link.WriteRef;

pub const StreamEdge = @This();

const boots_max = StreamNetwork.links_max;
const sector_size = content.sector_size;
/// Requests that are being carried out; more are sent away, and come again.
const pending_max = 128;
/// Requests of a boot that are remembered, by their numbers.
const carried_max = 256;

gpa: std.mem.Allocator,
network: *StreamNetwork,
checks: *Checks,
plant: Plant,
prng: base.Prng,
/// The newest boot of each device.
boots: [boots_max]StreamBoot = @splat(.{}),
layers: [boots_max]Layer = @splat(.{}),
side: link.EdgeSide = undefined,
is_up: bool = false,
settings: Settings,
disk: Disk = .{},
resumption_key: [32]u8,
/// Of processes.
serial: u32 = 0,
cache_serial: u64 = 0,
addresses: StreamAddresses = .{},
pending: base.BoundedArray(Pending, pending_max) = .empty,
again: ?Again = null,
thief: ?Thief = null,
/// The datagram that is being answered.
from: Endpoint = .{ .ip = .zero, .port = 0 },
received_size: usize = 0,
answered_size: usize = 0,
statistics: Statistics = .{},

pub const Settings = struct {
    sessions_max: u16 = 16,
    packet_size_max: u16 = link.packet_size_ethernet,
    outstanding_bytes_max: u32 = 1 << 20,
    session_idle_us: u64 = 300 * std.time.us_per_s,
    write_places: u16 = 8,
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
    ignored: base.IgnoredCounters = .{},
};

/// What a boot has written, by the serial number of the write that came last to each sector.
const Layer = struct {
    /// 0: there is none.
    boot_number: u32 = 0,
    now: [StreamBoot.sectors_max]u32 = @splat(0),
    durable: [StreamBoot.sectors_max]u32 = @splat(0),
    /// Numbers of requests that were carried out, as long as the server keeps the session.
    carried: [carried_max]?u32 = @splat(null),
};

const Pending = struct { ref: WriteRef, boot: u8, boot_number: u32, at_us: u64, first: u32, count: u32, serial: u32, is_applied: bool };
/// A planted bug: this is written once more.
const Again = struct { boot_number: u32, boot: u8, at_us: u64, first: u32, count: u32, serial: u32 };

/// Somebody who knows a boot's token, listens, and wants a session of his own.
const Thief = struct { address: Endpoint, side: *link.DeviceSide };

pub const Operation = union(enum) {
    write: struct { offset: u64, bytes: []const u8 },
    discard: struct { offset: u64, length: u32 },
    flush,
};

/// What a boot reads.
pub const Source = struct {
    boot: *const StreamBoot,
    layer: ?*const Layer,

    pub fn stampAt(source: Source, sector: u64) u64 {
        const layer = source.layer orelse return source.boot.version.stampAt(sector);
        return source.boot.stampOf(layer.now[@intCast(sector)]);
    }
};

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
        .write_places = edge.settings.write_places,
    };
    edge.prng.fill(&options.cookie_key);
    edge.prng.fill(&options.session_key);
    edge.side = try .init(edge.gpa, options, edge.plant);
    edge.addresses.clear();
    edge.is_up = true;
}

/// The process ends; of what was not synced each sector is kept or not.
pub fn crash(edge: *StreamEdge, keeps_keys: bool) void {
    assert(edge.is_up);
    edge.end();
    edge.statistics.crashes += 1;
    if (!keeps_keys) {
        edge.prng.fill(&edge.resumption_key);
        for (&edge.boots) |*boot| boot.ends.insert(.keys_lost);
    }
    for (&edge.layers, &edge.boots) |*layer, *boot| {
        boot.is_ready_in_session = false;
        layer.carried = @splat(null);
        if (boot.number == 0 or layer.boot_number != boot.number) continue;
        switch (boot.class) {
            .edge_persistent => for (&layer.now, &layer.durable) |*now, *durable| {
                if (edge.plant == .lost_in_a_crash) now.* = 0;
                if (now.* == durable.*) continue;
                if (edge.prng.chance(1, 2)) now.* = durable.*;
                durable.* = now.*;
            },
            .edge, .device_ram_overflow => {
                layer.boot_number = 0;
                boot.ends.insert(.cache_lost);
            },
            .device_ram => unreachable,
        }
    }
}

/// Gives back what a process has.
pub fn end(edge: *StreamEdge) void {
    edge.statistics.ignored.merge(&edge.side.server.ignored);
    edge.side.deinit(edge.gpa);
    edge.is_up = false;
    edge.pending.clear();
    edge.again = null;
}

/// Another boot of this device: nothing is known of the one before any more.
pub fn begin(edge: *StreamEdge, device: u8, boot: StreamBoot) *StreamBoot {
    if (edge.is_up) edge.side.forget(edge.boots[device].id);
    edge.boots[device] = boot;
    edge.layers[device].boot_number = 0;
    return &edge.boots[device];
}

pub fn bootOf(edge: *StreamEdge, id: base.Uuid) ?*StreamBoot {
    for (&edge.boots) |*boot| if (boot.number != 0 and boot.id.eql(id)) return boot;
    return null;
}

fn indexOf(edge: *const StreamEdge, boot: *const StreamBoot) u8 {
    return @intCast(boot - &edge.boots);
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
    edge.network.sendToDevice(to, bytes, after_us);
}

/// The token of a boot that has opened its session opens none for anybody else.
pub fn tryToken(edge: *StreamEdge, boot: *const StreamBoot, address: Endpoint) error{OutOfMemory}!void {
    if (!edge.is_up or boot.opened_by == null) return;
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
    side.start(edge.network.now_us, .{ .boot_id = boot.id, .token = boot.token, .nonce_seed = seed });
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

const Admitted = struct { opened_by: ?[16]u8, is_new: bool };

pub fn noteAdmission(edge: *StreamEdge, boot_id: base.Uuid, from: Endpoint, admitted: Admitted) void {
    edge.addresses.of(from).is_proved = true;
    const boot = edge.bootOf(boot_id) orelse return;
    if (admitted.is_new) {
        boot.is_ready_in_session = false;
        // What has come before is forgotten with its session; the device sends again only what nothing came after.
        edge.layers[edge.indexOf(boot)].carried = @splat(null);
    }
    const nonce = admitted.opened_by orelse return;
    if (boot.opened_by) |before| if (!std.mem.eql(u8, &before, &nonce) or !admitted.is_new)
        edge.checks.violate(.token_opens_once, "the token of boot {d} opens a second session", .{boot.number});
    boot.opened_by = nonce;
}

/// The version of a boot is not in the store right now.
pub fn misses(edge: *StreamEdge, boot: *StreamBoot) bool {
    if (!edge.happens(edge.disk.missing_per_mille)) return false;
    boot.ends.insert(.version_missing);
    return true;
}

/// The write cache of a boot, made where there is none yet; null: what was in it is lost.
pub fn cacheOf(edge: *StreamEdge, boot: *StreamBoot, is_first: bool) ?u64 {
    const layer = &edge.layers[edge.indexOf(boot)];
    if (layer.boot_number == boot.number) return boot.cache_id;
    const may_be_new = boot.class == .device_ram_overflow or is_first;
    if (!may_be_new and edge.plant != .lost_cache_begun_anew) return null;
    if (edge.plant != .lost_cache_begun_anew or boot.cache_id == 0) {
        edge.cache_serial += 1;
        boot.cache_id = edge.cache_serial;
    }
    layer.* = .{ .boot_number = boot.number };
    return boot.cache_id;
}

pub fn readDelayUs(edge: *StreamEdge) u64 {
    return edge.disk.latency_us + if (edge.happens(edge.disk.stalls_per_mille)) edge.prng.below(edge.disk.stall_us + 1) else 0;
}

pub fn sourceOf(edge: *StreamEdge, boot: *StreamBoot, has_cache: bool) error{ StoreError, Lost, Stopped }!Source {
    if (edge.happens(edge.disk.read_errors_per_mille)) {
        edge.statistics.store_errors += 1;
        return error.StoreError;
    }
    if (!has_cache or edge.plant == .base_read_after_write) return .{ .boot = boot, .layer = null };
    const layer = &edge.layers[edge.indexOf(boot)];
    if (layer.boot_number != boot.number) return error.Lost;
    if (boot.is_full and boot.is_stopped_when_full) return error.Stopped;
    if (edge.plant == .another_device_read and edge.prng.chance(1, 50)) {
        const other = edge.prng.below(edge.network.link_count);
        return .{ .boot = boot, .layer = &edge.layers[@intCast(other)] };
    }
    return .{ .boot = boot, .layer = layer };
}

pub fn carryOut(edge: *StreamEdge, ref: WriteRef, operation: Operation) void {
    const boot = edge.bootOf(ref.boot_id) orelse return edge.side.finish(edge, ref, .cache_lost);
    const index = edge.indexOf(boot);
    const layer = &edge.layers[index];
    if (layer.boot_number != boot.number) return edge.side.finish(edge, ref, .cache_lost);
    if (edge.pending.isFull() or edge.happens(edge.disk.write_errors_per_mille)) return edge.side.finish(edge, ref, null);
    const first: u32, const count: u32, const serial: u32 = switch (operation) {
        .flush => .{ 0, 0, 0 },
        .discard => |discard| .{ @intCast(discard.offset / sector_size), discard.length / sector_size, 0 },
        .write => |write| .{ @intCast(write.offset / sector_size), @intCast(write.bytes.len / sector_size), edge.serialOf(boot, write.offset, write.bytes) },
    };
    if (operation != .flush) {
        if (boot.is_full or first + count > boot.full_above) {
            boot.is_full = true;
            return edge.side.finish(edge, ref, if (boot.is_stopped_when_full) .stopped else .cache_full);
        }
    }
    const carried = &layer.carried[ref.request_id % carried_max];
    if (carried.* == ref.request_id)
        edge.checks.violate(.carried_out_once, "request {d} of boot {d} is carried out a second time", .{ ref.request_id, boot.number });
    carried.* = ref.request_id;
    var pending: Pending = .{
        .ref = ref,
        .boot = index,
        .boot_number = boot.number,
        .at_us = edge.network.now_us,
        .first = first,
        .count = count,
        .serial = serial,
        .is_applied = true,
    };
    switch (operation) {
        .flush => edge.statistics.flushes += 1,
        .discard => edge.statistics.discards += 1,
        .write => edge.statistics.writes += 1,
    }
    if (operation == .discard) pending.serial = boot.discardSerial(first, count) orelse
        return edge.checks.violate(.writes_in_order, "a discard that boot {d} has heard the end of is carried out", .{boot.number});
    if (boot.class == .edge_persistent) pending.at_us += edge.readDelayUs();
    edge.carryOutPlanted(&pending, operation);
}

/// As it is done, but for the bugs that are planted.
fn carryOutPlanted(edge: *StreamEdge, given: *const Pending, operation: Operation) void {
    var pending = given.*;
    switch (edge.plant) {
        .done_before_it_is => {
            pending.is_applied = false;
            pending.at_us += 5 * std.time.us_per_ms;
            edge.side.finish(edge, pending.ref, .done);
        },
        .write_kept_in_part => if (operation == .write) edge.apply(pending.boot, pending.first, 1, pending.serial),
        .discard_does_nothing => if (operation == .write) edge.apply(pending.boot, pending.first, pending.count, pending.serial),
        .write_carried_out_again => {
            edge.apply(pending.boot, pending.first, pending.count, pending.serial);
            if (edge.again == null and operation == .write) edge.planAgain(&pending);
        },
        else => edge.apply(pending.boot, pending.first, pending.count, pending.serial),
    }
    if (pending.at_us == edge.network.now_us) return edge.finish(&pending);
    edge.pending.appendAssumeCapacity(pending);
    edge.network.plan(pending.at_us, .edge_wake);
}

fn planAgain(edge: *StreamEdge, pending: *const Pending) void {
    edge.again = .{
        .boot_number = pending.boot_number,
        .boot = pending.boot,
        .at_us = edge.network.now_us + std.time.us_per_s / 2,
        .first = pending.first,
        .count = pending.count,
        .serial = pending.serial,
    };
    edge.network.plan(edge.again.?.at_us, .edge_wake);
}

fn apply(edge: *StreamEdge, index: u8, first: u32, count: u32, serial: u32) void {
    for (edge.layers[index].now[first..][0..count]) |*now| {
        if (now.* >> 1 > serial >> 1 and edge.plant != .write_carried_out_again)
            edge.checks.violate(.writes_in_order, "write {d} of boot {d} comes after write {d} of the same sector", .{
                serial >> 1, edge.boots[index].number, now.* >> 1,
            });
        now.* = serial;
    }
}

/// The serial number of a write, all of whose bytes have to be those of the device.
fn serialOf(edge: *StreamEdge, boot: *const StreamBoot, offset: u64, bytes: []const u8) u32 {
    const first = offset / sector_size;
    const stamp = content.stampOf(content.wordsOf(bytes[0..sector_size])[0], first, 0);
    const serial: u32 = @truncate(stamp);
    var is_right = boot.stampOf(serial) == stamp and serial != 0;
    for (0..bytes.len / sector_size) |index| {
        if (!content.isFilled(bytes[index * sector_size ..][0..sector_size], first + index, stamp)) is_right = false;
    }
    if (!is_right) edge.checks.violate(.bytes_are_right, "{d} bytes that boot {d} writes at {d} are not its own", .{
        bytes.len, boot.number, offset,
    });
    return serial;
}

/// What the disk has done by now.
pub fn wake(edge: *StreamEdge) void {
    if (!edge.is_up) return;
    const now_us = edge.network.now_us;
    var index: u32 = 0;
    while (index < edge.pending.count) {
        const pending = edge.pending.buffer[index];
        if (pending.at_us > now_us) {
            index += 1;
            continue;
        }
        _ = edge.pending.swapRemove(index);
        if (edge.layers[pending.boot].boot_number == pending.boot_number) edge.finish(&pending);
    }
    const again = edge.again orelse return;
    if (again.at_us > now_us) return;
    edge.again = null;
    if (edge.layers[again.boot].boot_number == again.boot_number) edge.apply(again.boot, again.first, again.count, again.serial);
}

fn finish(edge: *StreamEdge, pending: *const Pending) void {
    const layer = &edge.layers[pending.boot];
    if (!pending.is_applied) edge.apply(pending.boot, pending.first, pending.count, pending.serial);
    @memcpy(layer.durable[pending.first..][0..pending.count], layer.now[pending.first..][0..pending.count]);
    if (edge.plant != .done_before_it_is) edge.side.finish(edge, pending.ref, .done);
}

pub fn second(edge: *StreamEdge) void {
    if (!edge.is_up) return;
    edge.side.expire(edge.network.now_us);
    if (edge.side.excess()) |what| edge.checks.violate(.tables_bounded, "{s}", .{what});
}

/// `is_repeated`: the server says that it has heard it before.
pub fn takeReady(edge: *StreamEdge, boot_id: base.Uuid, is_repeated: bool) void {
    const boot = edge.bootOf(boot_id) orelse return;
    if (!is_repeated and boot.is_ready_in_session)
        edge.checks.violate(.ready_once, "READY of boot {d} comes twice as new", .{boot.number});
    boot.is_ready_in_session = true;
    boot.ready_heard = true;
}

/// The order that waits for the device, by its id.
pub fn takeReport(edge: *StreamEdge, boot_id: base.Uuid, said: *const link.Report) ?[16]u8 {
    const boot = edge.bootOf(boot_id) orelse return null;
    if (edge.plant != .report_not_heard) {
        boot.report_heard = @max(boot.report_heard, said.write_cache_used);
        boot.steps_heard = @max(boot.steps_heard, said.steps.count);
    }
    const order = &(boot.order orelse return null);
    if (std.mem.eql(u8, &order.id, &said.order_id)) order.is_known = true;
    return if (order.is_known) null else order.id;
}

pub fn noteUsed(edge: *StreamEdge, boot_id: base.Uuid, offset: u64) void {
    const boot = edge.bootOf(boot_id) orelse return;
    if (offset >= @as(u64, boot.version.sectors) * sector_size)
        edge.checks.violate(.bytes_are_right, "boot {d} says that it has used what lies beyond its disk", .{boot.number});
}

fn happens(edge: *StreamEdge, per_mille: u32) bool {
    return per_mille > 0 and edge.prng.below(1000) < per_mille;
}
