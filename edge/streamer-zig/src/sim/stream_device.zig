//! A device of the stream's proof, around the real client: it reads, writes, discards and flushes at random, says that it is up and how it
//! does, and knows of every sector what it may read there.

const std = @import("std");
const base = @import("base");
const Checks = @import("stream_checks.zig");
const content = @import("stream_content.zig");
const link = @import("stream_link.zig");
const StreamBoot = @import("stream_boot.zig");
const StreamEdge = @import("stream_edge.zig");
const StreamNetwork = @import("stream_network.zig");
const StreamSectors = @import("stream_sectors.zig");
const assert = std.debug.assert;

pub const StreamDevice = @This();

pub const reads_max = 8;
pub const writes_max = 10;
const sector_size = content.sector_size;
const sectors_max = StreamBoot.sectors_max;
const read_sectors_max = link.read_size_max / sector_size;
const write_sectors_max = link.write_size_max / sector_size;
const tag_write = 1 << 32;
/// A system that hears nothing has soon no more to ask.
const patience_us = 2 * std.time.us_per_s;
/// After so long without a word all time-outs are at their longest.
const silence_us = 3 * std.time.us_per_s;
/// Before it looks again whether there is room for another request.
const full_pause_us = 2 * std.time.us_per_ms;
const report_interval_us = 5 * std.time.us_per_s;

index: u8,
side: link.DeviceSide,
network: *StreamNetwork,
edge: *StreamEdge,
checks: *Checks,
prng: base.Prng,
habits: Habits,
boot: *StreamBoot = undefined,
state: State = .off,
/// When the next boot begins, or the next request is made.
next_at_us: u64 = 0,
wake_at_us: u64 = std.math.maxInt(u64),
operations: u64 = 0,
operations_of_boot: u64 = 0,
serial: u32 = 0,
submissions: u64 = 0,
sectors: StreamSectors = undefined,
reads: [reads_max]Read = undefined,
writes: [writes_max]Write = undefined,
/// The next sector of those that are all read at the end.
verified: u32 = 0,
ready_said: bool = false,
ready_ended: bool = false,
report_said: u64 = 0,
report_at_us: u64 = 0,
reports_ended: u64 = 0,
steps_said: u8 = 0,
heard_at_us: u64 = 0,
waiting_since_us: u64 = 0,
quiet_from_us: u64 = 0,
quiet_sent: u32 = 0,
statistics: Statistics = .{},

pub const State = enum {
    /// Between two boots.
    off,
    on,
    /// Nothing new is begun; what is under way ends.
    ending,
    /// The whole disk is read once more.
    verifying,
    finished,
};

/// What the seed makes of a device.
pub const Habits = struct {
    class: link.Class,
    sectors: u32,
    /// Requests under way at most.
    depth: u8,
    think_us: u64,
    /// Sectors of most reads and writes.
    usual_sectors: u32,
    /// Out of a hundred requests.
    writes_percent: u8,
    discards_percent: u8,
    flushes_percent: u8,
    ahead_percent: u8,
    ready_after: u64,
    full_above: u32,
    is_stopped_when_full: bool,
    outstanding_bytes_max: u32,
};

pub const Statistics = struct {
    reads: u64 = 0,
    read_bytes: u64 = 0,
    writes: u64 = 0,
    discards: u64 = 0,
    flushes: u64 = 0,
    boots: u64 = 0,
    processes: u64 = 0,
    resumptions: u64 = 0,
    refusals: u64 = 0,
    orders: u64 = 0,
};

const Read = struct {
    is_used: bool = false,
    kind: link.DeviceSide.ReadKind = .demand,
    first: u32 = 0,
    count: u32 = 0,
    /// What was acknowledged when it was submitted: nothing older may come.
    floors: [read_sectors_max]u32 = undefined,
    buffer: [link.read_size_max]u8 = undefined,
};

const Write = struct {
    kind: enum { free, write, discard, flush } = .free,
    serial: u32 = 0,
    /// Of all that was submitted.
    submission: u64 = 0,
    first: u32 = 0,
    count: u32 = 0,
    buffer: [link.write_size_max]u8 = undefined,
};

/// Where it is not used again, memory of the device before stays as it was.
pub fn restart(device: *StreamDevice, fresh: StreamDevice) void {
    inline for (@typeInfo(StreamDevice).@"struct".field_names) |name| {
        if (comptime !isMemory(name)) @field(device, name) = @field(fresh, name);
    }
    device.forgetAll();
}

fn isMemory(comptime name: []const u8) bool {
    return std.mem.eql(u8, name, "reads") or std.mem.eql(u8, name, "writes") or std.mem.eql(u8, name, "sectors");
}

fn forgetAll(device: *StreamDevice) void {
    for (&device.reads) |*read| read.is_used = false;
    for (&device.writes) |*write| write.kind = .free;
    device.sectors.clear();
}

/// Another boot begins.
pub fn begin(device: *StreamDevice, number: u32, is_closing: bool) void {
    const habits = &device.habits;
    device.forgetAll();
    var boot: StreamBoot = .{
        .number = number,
        .version = .{ .number = device.index, .sectors = habits.sectors },
        .class = habits.class,
        .full_above = if (is_closing) sectors_max else habits.full_above,
        .is_stopped_when_full = habits.is_stopped_when_full,
    };
    device.prng.fill(&boot.id.bytes);
    device.prng.fill(&boot.token);
    boot.addresses.appendAssumeCapacity(device.network.links[device.index].address);
    device.boot = device.edge.begin(device.index, boot);
    device.serial = 0;
    device.submissions = 0;
    device.operations_of_boot = 0;
    device.verified = 0;
    device.ready_said = false;
    device.ready_ended = false;
    device.report_said = 0;
    device.reports_ended = 0;
    device.steps_said = 0;
    device.report_at_us = device.network.now_us;
    device.heard_at_us = device.network.now_us;
    device.waiting_since_us = device.network.now_us;
    device.state = if (is_closing) .ending else .on;
    device.statistics.boots += 1;
    device.side.start(device.network.now_us, device.identity());
}

fn identity(device: *StreamDevice) link.DeviceSide.Identity {
    var seed: [32]u8 = undefined;
    device.prng.fill(&seed);
    return .{ .boot_id = device.boot.id, .token = device.boot.token, .nonce_seed = seed };
}

/// The boot is over; the next one begins a little later.
pub fn end(device: *StreamDevice) void {
    device.state = .off;
    device.next_at_us = device.network.now_us + device.prng.below(std.time.us_per_s);
}

/// Another process of the device takes over: what was under way is asked for again.
pub fn replaceProcess(device: *StreamDevice) void {
    if (device.state == .off) return;
    const now_us = device.network.now_us;
    if (!device.side.goOn(now_us, device.identity())) return;
    device.statistics.processes += 1;
    // Its program remembers which order it has taken; the client that it starts is offered it once more.
    device.boot.orders_taken.clear();
    for (&device.reads, 0..) |*read, tag| if (read.is_used) {
        device.side.submitRead(read.kind, tag, @as(u64, read.first) * sector_size, read.buffer[0 .. read.count * sector_size]) catch unreachable;
    };
    // In the order in which they were first submitted.
    var before: u64 = 0;
    while (device.nextWrite(before)) |tag| {
        before = device.writes[tag].submission;
        device.submit(tag);
    }
    if (device.ready_said) device.side.sayReady(now_us, now_us);
    device.ready_ended = false;
    device.sayReport();
}

fn nextWrite(device: *const StreamDevice, before: u64) ?usize {
    var next: ?usize = null;
    for (&device.writes, 0..) |*write, tag| {
        if (write.kind == .free or write.submission <= before) continue;
        if (next == null or write.submission < device.writes[next.?].submission) next = tag;
    }
    return next;
}

fn submit(device: *StreamDevice, tag: usize) void {
    const write = &device.writes[tag];
    const offset = @as(u64, write.first) * sector_size;
    switch (write.kind) {
        .write => device.side.submitWrite(tag_write + tag, offset, write.buffer[0 .. write.count * sector_size]) catch unreachable,
        .discard => device.side.submitDiscard(tag_write + tag, offset, write.count * sector_size) catch unreachable,
        .flush => device.side.submitFlush(tag_write + tag) catch unreachable,
        .free => unreachable,
    }
}

pub fn receive(device: *StreamDevice, bytes: []const u8) void {
    if (device.state == .off) return;
    device.heard_at_us = device.network.now_us;
    device.quiet_sent = 0;
    device.side.receive(device.network.now_us, bytes);
}

fn pendingCount(device: *const StreamDevice) u32 {
    var count: u32 = 0;
    for (&device.reads) |*read| count += @intFromBool(read.is_used);
    for (&device.writes) |*write| count += @intFromBool(write.kind != .free);
    return count;
}

/// Everything that is to be done now: events, requests, packets.
pub fn tick(device: *StreamDevice, is_closing: bool, boot_serial: *u32) void {
    const now_us = device.network.now_us;
    if (device.state == .off and now_us >= device.next_at_us) {
        boot_serial.* += 1;
        device.begin(boot_serial.*, is_closing);
    }
    if (device.state != .off) {
        if (is_closing and device.state == .on) device.state = .ending;
        device.takeEvents();
        device.work();
        device.transmit();
    }
    device.planWake();
}

fn transmit(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    while (device.side.transmit(now_us)) |packet| {
        device.network.sendToEdge(device.index, packet);
        device.countQuiet();
        if (device.checks.violation != null) return;
    }
    const limit = @min(device.habits.outstanding_bytes_max, device.edge.settings.outstanding_bytes_max);
    const outstanding = device.side.outstanding();
    if (outstanding.bytes > limit and outstanding.reads > 1)
        device.checks.violate(.windows_bounded, "device {d} has {d} bytes outstanding of {d}", .{ device.index, outstanding.bytes, limit });
    const at_us = device.side.deadline(now_us) orelse return;
    if (at_us <= now_us) device.checks.violate(.no_busy_waiting, "device {d} wants to be called at {d} us, which was {d} us ago", .{
        device.index, at_us, now_us - at_us,
    });
}

/// Whoever hears nothing asks for each thing about once a second.
fn countQuiet(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    if (now_us -| @max(device.heard_at_us, device.waiting_since_us) < silence_us) return;
    if (now_us - device.quiet_from_us >= std.time.us_per_s) {
        device.quiet_from_us = now_us;
        device.quiet_sent = 0;
    }
    device.quiet_sent += 1;
    const limit = 12 + 6 * device.pendingCount();
    if (device.quiet_sent > limit) device.checks.violate(.silence_is_quiet, "device {d} hears nothing and sends {d} packets in a second", .{
        device.index, device.quiet_sent,
    });
}

fn planWake(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    var at_us: u64 = std.math.maxInt(u64);
    if (device.state == .off) {
        at_us = device.next_at_us;
    } else if (device.state != .finished) {
        if (device.side.deadline(now_us)) |due_us| at_us = @max(due_us, now_us);
        if (device.state == .on and device.pendingCount() < device.habits.depth) at_us = @min(at_us, @max(device.next_at_us, now_us + 1));
        at_us = @min(at_us, @max(device.report_at_us, now_us + 1));
    }
    if (at_us == std.math.maxInt(u64)) return;
    if (device.wake_at_us > now_us and device.wake_at_us <= at_us) return;
    device.wake_at_us = at_us;
    device.network.plan(at_us, .{ .device_wake = device.index });
}

fn takeEvents(device: *StreamDevice) void {
    while (device.side.nextEvent()) |event| {
        switch (event) {
            .established => |session| if (session.resumed) {
                device.statistics.resumptions += 1;
            },
            .read_done => |done| device.readEnded(@intCast(done.tag)),
            .read_failed => |failed| switch (failed.code) {
                .stopped => device.endFor("a stopped disk", device.boot.is_full and device.boot.is_stopped_when_full),
                .cache_lost => device.endFor("a lost write cache", device.boot.ends.contains(.cache_lost)),
                else => |code| device.checks.violate(.ends_have_a_reason, "a read of device {d} fails: {t}", .{ device.index, code }),
            },
            .write_ended => |ended| device.writeEnded(@intCast(ended.tag - tag_write), ended.code),
            .refused => |code| device.refused(code),
            .refused_elsewhere => {},
            .version_changed => device.endFor("another version", false),
            .cache_lost => device.endFor("another write cache", device.boot.ends.contains(.cache_lost)),
            .ready_acknowledged => {
                if (device.ready_ended or !device.ready_said or !device.boot.ready_heard)
                    device.checks.violate(.ready_once, "READY of boot {d} is acknowledged, and was not heard or was before", .{device.boot.number});
                device.ready_ended = true;
            },
            .order => |order| device.takeOrder(order.id.bytes),
            .report_acknowledged => {
                if (device.boot.report_heard < device.report_said or device.boot.steps_heard < device.steps_said)
                    device.checks.violate(.report_is_known, "report {d} of boot {d} is acknowledged, {d} was heard", .{
                        device.report_said, device.boot.number, device.boot.report_heard,
                    });
                device.reports_ended = device.report_said;
            },
        }
        if (device.state == .off or device.checks.violation != null) return;
    }
}

fn refused(device: *StreamDevice, code: anytype) void {
    device.statistics.refusals += 1;
    const ends = &device.boot.ends;
    device.endFor(@tagName(code), switch (code) {
        .token_refused => ends.contains(.keys_lost),
        .version_missing => ends.contains(.version_missing),
        .cache_lost => ends.contains(.cache_lost),
        else => false,
    });
}

fn endFor(device: *StreamDevice, why: []const u8, is_known: bool) void {
    if (!is_known) device.checks.violate(.ends_have_a_reason, "boot {d} of device {d} ends for {s}, which nobody brought about", .{
        device.boot.number, device.index, why,
    });
    device.end();
}

fn takeOrder(device: *StreamDevice, id: [16]u8) void {
    const boot = device.boot;
    if (!StreamBoot.hasOrder(&boot.orders_given, id) or StreamBoot.hasOrder(&boot.orders_taken, id))
        device.checks.violate(.order_taken_once, "boot {d} takes an order a second time, or one that was never given", .{boot.number});
    boot.orders_taken.append(id) catch {};
    device.statistics.orders += 1;
}

fn readEnded(device: *StreamDevice, tag: usize) void {
    const read = &device.reads[tag];
    assert(read.is_used);
    read.is_used = false;
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
        return device.checks.violate(.bytes_are_right, "sector {d} that boot {d} of device {d} reads ({t}) holds {x}, not write {d} to {d}", .{
            sector,
            device.boot.number,
            device.index,
            read.kind,
            content.stampOf(content.wordsOf(bytes)[0], sector, 0),
            read.floors[index] >> 1,
            device.sectors.known[sector].submitted >> 1,
        });
    }
}

fn writeEnded(device: *StreamDevice, tag: usize, code: link.WriteCode) void {
    const write = &device.writes[tag];
    assert(write.kind != .free);
    switch (code) {
        .done => {},
        .cache_full => if (!device.boot.is_full or device.boot.is_stopped_when_full) return device.endFor("a full write cache", false),
        .stopped => return device.endFor("a stopped disk", device.boot.is_full and device.boot.is_stopped_when_full),
        .cache_lost => return device.endFor("a lost write cache", device.boot.ends.contains(.cache_lost)),
        else => return device.checks.violate(.ends_have_a_reason, "a write of device {d} fails: {t}", .{ device.index, code }),
    }
    switch (write.kind) {
        .flush => {
            device.statistics.flushes += 1;
            for (&device.writes) |*other| if (other.kind != .free and other.submission < write.submission)
                device.checks.violate(.flush_is_a_barrier, "a flush of device {d} ends before a write that was submitted before it", .{device.index});
        },
        .write => device.statistics.writes += 1,
        .discard => {
            device.statistics.discards += 1;
            device.boot.forgetDiscard(write.serial);
        },
        .free => unreachable,
    }
    if (code == .done) device.sectors.noteAcknowledged(write.first, write.count, write.serial);
    write.kind = .free;
}

fn sayReport(device: *StreamDevice) void {
    device.report_said += 1;
    if (device.prng.chance(1, 3)) device.steps_said = @intCast(device.prng.between(device.steps_said, 20));
    device.side.sayReport(device.network.now_us, device.report_said, device.steps_said);
    device.report_at_us = device.network.now_us + report_interval_us;
}

/// Submits what the device's system wants by now.
fn work(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    if (device.state == .finished) return;
    const pending = device.pendingCount();
    if (pending == 0) device.waiting_since_us = now_us;
    const is_patient = now_us -| @max(device.heard_at_us, device.waiting_since_us) < patience_us;
    if (device.side.isEstablished() and is_patient and now_us >= device.report_at_us) device.sayReport();
    if (now_us >= device.report_at_us) device.report_at_us = now_us + report_interval_us;
    if (!device.ready_said and (device.operations_of_boot >= device.habits.ready_after or device.state == .ending)) {
        device.ready_said = true;
        device.side.sayReady(now_us, now_us);
    }
    switch (device.state) {
        .on => if (is_patient) device.submitSome(pending),
        .ending => if (pending == 0 and device.side.isEstablished()) {
            device.state = .verifying;
            device.verify();
        },
        .verifying => if (pending == 0) device.verify(),
        .off, .finished => {},
    }
}

fn submitSome(device: *StreamDevice, pending_before: u32) void {
    const now_us = device.network.now_us;
    if (now_us < device.next_at_us) return;
    var pending = pending_before;
    while (pending < device.habits.depth) : (pending += 1) {
        if (!device.submitRandom()) {
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

/// False: there is no room for it.
fn submitRandom(device: *StreamDevice) bool {
    const habits = &device.habits;
    const prng = &device.prng;
    const choice = prng.below(100);
    var bound: u64 = habits.writes_percent;
    if (habits.class != .device_ram) {
        if (choice < bound) return device.submitWrite();
        bound += habits.discards_percent;
        if (choice < bound) return device.submitDiscard();
        bound += habits.flushes_percent;
        if (choice < bound) return device.submitFlush();
    }
    bound += habits.ahead_percent;
    if (choice < bound and device.side.isEstablished()) return device.submitRead(.ahead);
    if (choice == 99 and device.side.isEstablished()) return device.submitRead(.profile);
    if (prng.chance(1, 20)) device.side.sayUsed(prng.below(habits.sectors) * sector_size);
    return device.submitRead(.demand);
}

const Range = struct { first: u32, count: u32 };

fn range(device: *StreamDevice, most: u32) Range {
    const prng = &device.prng;
    const sectors = device.habits.sectors;
    const wanted = if (prng.chance(1, 16)) prng.between(1, most) else prng.between(1, device.habits.usual_sectors);
    const count: u32 = @intCast(@min(wanted, sectors));
    // The same places are used often.
    const span = if (prng.chance(1, 2)) @min(sectors, count + 16) else sectors;
    return .{ .first = @intCast(prng.below(span - count + 1)), .count = count };
}

fn submitRead(device: *StreamDevice, kind: link.DeviceSide.ReadKind) bool {
    const place: Range = if (kind == .profile)
        .{ .first = 0, .count = StreamBoot.profile_sectors }
    else
        device.range(read_sectors_max);
    return device.readRange(kind, place);
}

fn readRange(device: *StreamDevice, kind: link.DeviceSide.ReadKind, place: Range) bool {
    const tag = for (&device.reads, 0..) |*read, tag| {
        if (!read.is_used) break tag;
    } else return false;
    const read = &device.reads[tag];
    read.is_used = true;
    read.kind = kind;
    read.first = place.first;
    read.count = place.count;
    device.sectors.copyFloors(place.first, read.floors[0..place.count]);
    device.side.submitRead(kind, tag, @as(u64, place.first) * sector_size, read.buffer[0 .. place.count * sector_size]) catch unreachable;
    return true;
}

fn takeWrite(device: *StreamDevice) ?usize {
    const tag = for (&device.writes, 0..) |*write, tag| {
        if (write.kind == .free) break tag;
    } else return null;
    device.submissions += 1;
    device.writes[tag].submission = device.submissions;
    return tag;
}

fn submitWrite(device: *StreamDevice) bool {
    const tag = device.takeWrite() orelse return false;
    const write = &device.writes[tag];
    const place = device.range(write_sectors_max);
    device.serial += 2;
    write.kind = .write;
    write.serial = device.serial;
    write.first = place.first;
    write.count = place.count;
    const stamp = device.boot.stampOf(write.serial);
    for (0..place.count) |index| content.fillSector(write.buffer[index * sector_size ..][0..sector_size], place.first + index, stamp);
    device.sectors.noteSubmitted(place.first, place.count, write.serial);
    device.submit(tag);
    return true;
}

fn submitDiscard(device: *StreamDevice) bool {
    if (device.boot.discards.isFull()) return false;
    const tag = device.takeWrite() orelse return false;
    const write = &device.writes[tag];
    const place = device.range(write_sectors_max);
    device.serial += 2;
    write.kind = .discard;
    write.serial = device.serial + 1;
    write.first = place.first;
    write.count = place.count;
    device.boot.discards.appendAssumeCapacity(.{ .first = place.first, .count = place.count, .serial = write.serial });
    device.sectors.noteSubmitted(place.first, place.count, write.serial);
    device.submit(tag);
    return true;
}

fn submitFlush(device: *StreamDevice) bool {
    const tag = device.takeWrite() orelse return false;
    const write = &device.writes[tag];
    write.kind = .flush;
    write.first = 0;
    write.count = 0;
    device.submit(tag);
    return true;
}

/// Reads the whole disk; when all of it has come and everything is said, the device is finished.
fn verify(device: *StreamDevice) void {
    const sectors = device.habits.sectors;
    while (device.verified < sectors) {
        const count = @min(read_sectors_max, sectors - device.verified);
        if (!device.readRange(.demand, .{ .first = device.verified, .count = count })) return;
        device.verified += count;
    }
    if (device.pendingCount() > 0) return;
    if (!device.ready_ended or device.report_said == 0 or device.reports_ended < device.report_said) return;
    if (device.boot.order) |order| if (!order.is_known) return;
    device.state = .finished;
}

/// What it waits for, in words; for a run that does not finish.
pub fn describe(device: *const StreamDevice, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try writer.print("device {d} is {t}: {d} requests under way, {d} of {d} sectors read, READY {s}, report {d} of {d}", .{
        device.index,                                   device.state,         device.pendingCount(), device.verified, device.habits.sectors,
        if (device.ready_ended) "heard" else "unheard", device.reports_ended, device.report_said,
    });
}
