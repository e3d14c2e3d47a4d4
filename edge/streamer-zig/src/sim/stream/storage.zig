//! What an edge of the stream's proof keeps of what devices write, on a disk that is slow, fails, and loses what was not synced when the
//! process ends.

const std = @import("std");
const content = @import("content.zig");
const link = @import("link.zig");
const StreamBoot = @import("boot.zig");
const StreamEdge = @import("edge.zig");
const WriteRef = link.WriteRef;

const sector_size = content.sector_size;
/// Requests that are being carried out; more are sent away, and come again.
pub const pending_max = 128;
/// Requests of a boot that are remembered, by their numbers.
pub const carried_max = 256;

/// What a boot has written, by the serial number of the write that came last to each sector.
pub const Layer = struct {
    /// 0: there is none.
    boot_number: u32 = 0,
    now: [StreamBoot.sectors_max]u32 = @splat(0),
    durable: [StreamBoot.sectors_max]u32 = @splat(0),
    /// Numbers of requests that were carried out, as long as the server keeps the session.
    carried: [carried_max]?u32 = @splat(null),
};

pub const Pending = struct { ref: WriteRef, boot: u8, boot_number: u32, at_us: u64, first: u32, count: u32, serial: u32, is_applied: bool };
/// A planted bug: this is written once more.
pub const Again = struct { boot_number: u32, boot: u8, at_us: u64, first: u32, count: u32, serial: u32 };

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

/// The process has ended; of what was not synced each sector is kept or not.
pub fn crash(edge: *StreamEdge) void {
    for (&edge.layers, &edge.site.boots) |*layer, *boot| {
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

/// The write cache of a boot, made where there is none yet; null: what was in it is lost.
pub fn cacheOf(edge: *StreamEdge, boot: *StreamBoot, is_first: bool) ?u64 {
    const layer = &edge.layers[edge.site.indexOf(boot)];
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
    const layer = &edge.layers[edge.site.indexOf(boot)];
    if (layer.boot_number != boot.number) return error.Lost;
    if (boot.is_full and boot.is_stopped_when_full) return error.Stopped;
    if (edge.plant == .another_device_read and edge.prng.chance(1, 50)) {
        const other = edge.prng.below(edge.network.link_count);
        return .{ .boot = boot, .layer = &edge.layers[@intCast(other)] };
    }
    return .{ .boot = boot, .layer = layer };
}

pub fn carryOut(edge: *StreamEdge, ref: WriteRef, operation: Operation) void {
    const boot = edge.site.bootOf(ref.boot_id) orelse return edge.side.finish(edge, ref, .cache_lost);
    const index = edge.site.indexOf(boot);
    const layer = &edge.layers[index];
    if (layer.boot_number != boot.number) return edge.side.finish(edge, ref, .cache_lost);
    if (edge.pending.isFull() or edge.happens(edge.disk.write_errors_per_mille)) return edge.side.finish(edge, ref, null);
    const first: u32, const count: u32, const serial: u32 = switch (operation) {
        .flush => .{ 0, 0, 0 },
        .discard => |discard| .{ @intCast(discard.offset / sector_size), discard.length / sector_size, 0 },
        .write => |write| .{ @intCast(write.offset / sector_size), @intCast(write.bytes.len / sector_size), serialOf(edge, boot, write.offset, write.bytes) },
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
    if (boot.class == .edge_persistent) pending.at_us += readDelayUs(edge);
    carryOutPlanted(edge, &pending, operation);
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
        .write_kept_in_part => if (operation == .write) apply(edge, pending.boot, pending.first, 1, pending.serial),
        .discard_does_nothing => if (operation == .write) apply(edge, pending.boot, pending.first, pending.count, pending.serial),
        .write_carried_out_again => {
            apply(edge, pending.boot, pending.first, pending.count, pending.serial);
            if (edge.again == null and operation == .write) planAgain(edge, &pending);
        },
        else => apply(edge, pending.boot, pending.first, pending.count, pending.serial),
    }
    if (pending.at_us == edge.network.now_us) return finish(edge, &pending);
    edge.pending.appendAssumeCapacity(pending);
    edge.network.plan(pending.at_us, .{ .edge_wake = edge.index });
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
    edge.network.plan(edge.again.?.at_us, .{ .edge_wake = edge.index });
}

fn apply(edge: *StreamEdge, index: u8, first: u32, count: u32, serial: u32) void {
    for (edge.layers[index].now[first..][0..count]) |*now| {
        if (now.* >> 1 > serial >> 1 and edge.plant != .write_carried_out_again)
            edge.checks.violate(.writes_in_order, "write {d} of boot {d} comes after write {d} of the same sector", .{
                serial >> 1, edge.site.boots[index].number, now.* >> 1,
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
    if (!edge.is_up or edge.is_stopped) return;
    const now_us = edge.network.now_us;
    var index: u32 = 0;
    while (index < edge.pending.count) {
        const pending = edge.pending.buffer[index];
        if (pending.at_us > now_us) {
            index += 1;
            continue;
        }
        _ = edge.pending.swapRemove(index);
        if (edge.layers[pending.boot].boot_number == pending.boot_number) finish(edge, &pending);
    }
    const again = edge.again orelse return;
    if (again.at_us > now_us) return;
    edge.again = null;
    if (edge.layers[again.boot].boot_number == again.boot_number) apply(edge, again.boot, again.first, again.count, again.serial);
}

fn finish(edge: *StreamEdge, pending: *const Pending) void {
    const layer = &edge.layers[pending.boot];
    if (!pending.is_applied) apply(edge, pending.boot, pending.first, pending.count, pending.serial);
    @memcpy(layer.durable[pending.first..][0..pending.count], layer.now[pending.first..][0..pending.count]);
    if (edge.plant != .done_before_it_is) edge.side.finish(edge, pending.ref, .done);
}
