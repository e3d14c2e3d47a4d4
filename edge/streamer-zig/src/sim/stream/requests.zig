//! The random reads, writes, discards and flushes of a simulated device's system, and the checks of
//! what it gets.

const std = @import("std");
const content = @import("content.zig");
const DeviceSide = @import("device_side.zig").DeviceSide;
const link = @import("link.zig");
const StreamBoot = @import("boot.zig");
const StreamDevice = @import("device.zig");
const assert = std.debug.assert;
const ReadKind = DeviceSide.ReadKind;

const sector_size = content.sector_size;
const read_sectors_max = StreamDevice.read_sectors_max;
const write_sectors_max = link.write_size_max / sector_size;
pub const tag_write = 1 << 32;
/// Pause before another attempt to submit a request.
const full_pause_us = 2 * std.time.us_per_ms;

/// Submits what the device's system requests by now.
pub fn work(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    if (device.state == .finished) return;
    const pending = device.pending_count;
    if (pending == 0) device.waiting_since_us = now_us;
    const is_patient = isPatient(device);
    const is_due = now_us >= device.report_at_us;
    if (device.side.isEstablished() and is_patient and is_due) device.report();
    if (now_us >= device.report_at_us)
        device.report_at_us = now_us + StreamDevice.report_interval_us;
    const is_ready = device.operations_of_boot >= device.habits.ready_after;
    if (!device.ready_said and (is_ready or device.state == .ending)) {
        device.ready_said = true;
        device.side.reportReady(now_us, now_us);
    }
    switch (device.state) {
        .on => if (is_patient) submitSome(device, pending),
        .ending => if (pending == 0 and device.side.isEstablished()) {
            device.state = .verifying;
            verify(device);
        },
        .verifying => if (pending == 0) verify(device),
        .off, .finished => {},
    }
}

/// A system that gets no answer soon has nothing more to request.
pub fn isPatient(device: *const StreamDevice) bool {
    const since_us = @max(device.heard_at_us, device.waiting_since_us);
    return device.network.now_us -| since_us < StreamDevice.patience_us;
}

fn submitSome(device: *StreamDevice, pending_before: u32) void {
    const now_us = device.network.now_us;
    if (now_us < device.next_at_us) return;
    var pending = pending_before;
    while (pending < device.habits.depth) : (pending += 1) {
        if (!submitRandom(device)) {
            device.next_at_us = now_us + full_pause_us;
            return;
        }
        device.operations += 1;
        device.operations_of_boot += 1;
        // Requests come in bursts.
        if (device.prng.chance(1, 3)) break;
    }
    device.next_at_us = now_us + 1 + device.prng.below(device.habits.think_us);
}

/// Returns false if no slot is free.
fn submitRandom(device: *StreamDevice) bool {
    const habits = &device.habits;
    const prng = &device.prng;
    const choice = prng.below(100);
    var bound: u64 = habits.writes_percent;
    if (habits.class != .device_ram) {
        if (choice < bound) return submitWrite(device);
        bound += habits.discards_percent;
        if (choice < bound) return submitDiscard(device);
        bound += habits.flushes_percent;
        if (choice < bound) return submitFlush(device);
    }
    bound += habits.ahead_percent;
    if (choice < bound and device.side.isEstablished()) return submitRead(device, .ahead);
    if (choice == 99 and device.side.isEstablished()) return submitRead(device, .profile);
    if (prng.chance(1, 20)) device.side.reportUsed(prng.below(habits.sectors) * sector_size);
    return submitRead(device, .demand);
}

const Range = struct { first: u32, count: u32 };

fn drawRange(device: *StreamDevice, count_max: u32) Range {
    const prng = &device.prng;
    const sectors = device.habits.sectors;
    const usual_max = if (prng.chance(1, 16)) count_max else device.habits.usual_sectors;
    const count: u32 = @intCast(@min(prng.between(1, usual_max), sectors));
    // The first sectors are used often.
    const span = if (prng.chance(1, 2)) @min(sectors, count + 16) else sectors;
    return .{ .first = @intCast(prng.below(span - count + 1)), .count = count };
}

fn submitRead(device: *StreamDevice, kind: ReadKind) bool {
    const range: Range = if (kind == .profile)
        .{ .first = 0, .count = StreamBoot.profile_sectors }
    else
        drawRange(device, read_sectors_max);
    return readRange(device, kind, range);
}

fn readRange(device: *StreamDevice, kind: ReadKind, range: Range) bool {
    const tag = for (&device.reads, 0..) |*read, tag| {
        if (!read.is_used) break tag;
    } else return false;
    const read = &device.reads[tag];
    read.is_used = true;
    read.asked_us = device.network.now_us;
    device.pending_count += 1;
    read.kind = kind;
    read.first = range.first;
    read.count = range.count;
    device.sectors.copyFloors(range.first, read.floors[0..range.count]);
    const buffer = read.buffer[0 .. range.count * sector_size];
    const offset = @as(u64, range.first) * sector_size;
    device.side.submitRead(kind, tag, offset, buffer) catch unreachable;
    return true;
}

fn takeWrite(device: *StreamDevice) ?usize {
    const tag = for (&device.writes, 0..) |*write, tag| {
        if (write.kind == .free) break tag;
    } else return null;
    device.submissions += 1;
    device.pending_count += 1;
    device.writes[tag].submission = device.submissions;
    return tag;
}

fn submitWrite(device: *StreamDevice) bool {
    const tag = takeWrite(device) orelse return false;
    const write = &device.writes[tag];
    const range = drawRange(device, write_sectors_max);
    device.serial += 2;
    write.kind = .write;
    write.serial = device.serial;
    write.first = range.first;
    write.count = range.count;
    const stamp = device.boot.stampOf(write.serial);
    for (0..range.count) |index| {
        const sector = write.buffer[index * sector_size ..][0..sector_size];
        content.fillSector(sector, range.first + index, stamp);
    }
    device.sectors.noteSubmitted(range.first, range.count, write.serial);
    submit(device, tag);
    return true;
}

fn submitDiscard(device: *StreamDevice) bool {
    if (device.boot.discards.isFull()) return false;
    const tag = takeWrite(device) orelse return false;
    const write = &device.writes[tag];
    const range = drawRange(device, write_sectors_max);
    device.serial += 2;
    write.kind = .discard;
    write.serial = device.serial + 1;
    write.first = range.first;
    write.count = range.count;
    device.boot.discards.appendAssumeCapacity(
        .{ .first = range.first, .count = range.count, .serial = write.serial },
    );
    device.sectors.noteSubmitted(range.first, range.count, write.serial);
    submit(device, tag);
    return true;
}

fn submitFlush(device: *StreamDevice) bool {
    const tag = takeWrite(device) orelse return false;
    const write = &device.writes[tag];
    write.kind = .flush;
    write.first = 0;
    write.count = 0;
    submit(device, tag);
    return true;
}

/// Reads the whole disk. The device is finished when all of it has arrived and everything is
/// reported.
fn verify(device: *StreamDevice) void {
    const sectors = device.habits.sectors;
    while (device.verified < sectors) {
        const count = @min(read_sectors_max, sectors - device.verified);
        if (!readRange(device, .demand, .{ .first = device.verified, .count = count })) return;
        device.verified += count;
    }
    if (device.pending_count > 0) return;
    if (!device.ready_ended or device.report_said == 0) return;
    if (device.reports_ended < device.report_said) return;
    if (device.edgeNow().hasOrder(device.boot) or !device.side.hasReportedAll()) return;
    checkReports(device);
    device.state = .finished;
}

/// Wherever the boot has failed over, its edge knows all of it.
fn checkReports(device: *StreamDevice) void {
    const known = device.edgeNow().knownOf(device.boot) orelse return device.invariants.violate(
        .reported_again,
        "boot {d} is at an edge that knows nothing of it",
        .{device.boot.number},
    );
    if (!known.ready_heard or known.steps_heard < device.steps_said) device.invariants.violate(
        .reported_again,
        "of boot {d}, with {d} steps, its edge knows {d} steps and {s} READY",
        .{
            device.boot.number,
            device.steps_said,
            known.steps_heard,
            if (known.ready_heard) "" else "not",
        },
    );
}

pub fn readEnded(device: *StreamDevice, tag: usize) void {
    const read = &device.reads[tag];
    assert(read.is_used);
    read.is_used = false;
    device.pending_count -= 1;
    device.statistics.reads += 1;
    device.statistics.read_bytes += read.count * sector_size;
    for (0..read.count) |index| {
        const bytes = read.buffer[index * sector_size ..][0..sector_size];
        const sector = read.first + index;
        const is_right = if (read.kind == .profile)
            content.isFilled(bytes, sector, (StreamBoot.Profile{}).stampAt(0))
        else
            device.sectors.isRight(device.boot, bytes, @intCast(sector), read.floors[index]);
        if (is_right) continue;
        return device.invariants.violate(
            .bytes_are_right,
            "sector {d} that boot {d} of device {d} reads ({t}) holds {x}, not write {d} to {d}",
            .{
                sector,
                device.boot.number,
                device.index,
                read.kind,
                content.stampOf(content.wordsOf(bytes)[0], sector, 0),
                read.floors[index] >> 1,
                device.sectors.known[sector].submitted >> 1,
            },
        );
    }
}

pub fn writeEnded(device: *StreamDevice, tag: usize, code: link.WriteCode) void {
    const write = &device.writes[tag];
    const boot = device.boot;
    assert(write.kind != .free);
    switch (code) {
        .done => {},
        .cache_full => if (!boot.is_full or boot.is_stopped_when_full)
            return device.endFor("a full write cache", false),
        .stopped => return device.endFor("a stopped disk", boot.isStopped()),
        .cache_lost => {
            return device.endFor("a lost write cache", boot.ends.contains(.cache_lost));
        },
        else => return device.invariants.violate(
            .ends_have_a_reason,
            "a write of device {d} fails: {t}",
            .{ device.index, code },
        ),
    }
    switch (write.kind) {
        .flush => {
            device.statistics.flushes += 1;
            for (&device.writes) |*other| {
                if (other.kind == .free or other.submission >= write.submission) continue;
                device.invariants.violate(
                    .flush_is_a_barrier,
                    "a flush of device {d} ends before an earlier write",
                    .{device.index},
                );
            }
        },
        .write => device.statistics.writes += 1,
        .discard => {
            device.statistics.discards += 1;
            boot.forgetDiscard(write.serial);
        },
        .free => unreachable,
    }
    if (code == .done) device.sectors.noteAcknowledged(write.first, write.count, write.serial);
    write.kind = .free;
    device.pending_count -= 1;
}

/// Returns the write that was submitted next after `before`; null: there is none.
pub fn nextWrite(device: *const StreamDevice, before: u64) ?usize {
    var next: ?usize = null;
    for (&device.writes, 0..) |*write, tag| {
        if (write.kind == .free or write.submission <= before) continue;
        if (next == null or write.submission < device.writes[next.?].submission) next = tag;
    }
    return next;
}

pub fn submit(device: *StreamDevice, tag: usize) void {
    const write = &device.writes[tag];
    const offset = @as(u64, write.first) * sector_size;
    const size = write.count * sector_size;
    const side = &device.side;
    const result = switch (write.kind) {
        .write => side.submitWrite(tag_write + tag, offset, write.buffer[0..size]),
        .discard => side.submitDiscard(tag_write + tag, offset, size),
        .flush => side.submitFlush(tag_write + tag),
        .free => unreachable,
    };
    result catch unreachable;
}
