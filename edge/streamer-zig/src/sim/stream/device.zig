//! A device of the stream's simulation around the real client: its boots and processes, what it
//! reports, and what it may read in each sector. `requests.zig` has what it reads and writes.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const DeviceSide = @import("device_side.zig").DeviceSide;
const Invariants = @import("invariants.zig");
const StreamBoot = @import("boot.zig");
const StreamEdge = @import("edge.zig");
const StreamSectors = @import("sectors.zig");
const StreamSite = @import("site.zig");
const link = @import("link.zig");
const lost_devices = @import("lost_devices.zig");
const network_module = @import("network.zig");
const requests = @import("requests.zig");
const Network = network_module.Network;

pub const StreamDevice = @This();

pub const reads_max = 8;
pub const writes_max = 10;
const sector_size = link.sector_size;
pub const read_sectors_max = link.read_size_max / sector_size;
/// A system that gets no answer soon has nothing more to request.
pub const patience_us = 2 * std.time.us_per_s;
/// After so long a silence, timeouts have doubled to about a second.
const silence_us = 2 * std.time.us_per_s;
pub const report_interval_us = 5 * std.time.us_per_s;
/// A device whose edge does not answer tries to boot again.
const retry_us = 100 * std.time.us_per_ms;
/// An edge takes so many changes of steps in a boot (`core/boot/guest.zig`).
const steps_changes_max = 8;
/// Writers of persistent write caches; boots have lower numbers.
const kept_writer: u32 = 1 << 30;

index: u8,
side: DeviceSide,
network: *Network,
site: *StreamSite,
invariants: *Invariants,
prng: base.Prng,
habits: Habits,
boot: *StreamBoot = undefined,
state: State = .off,
/// When the next boot begins, or the next request is submitted.
next_at_us: u64 = 0,
wake_at_us: u64 = std.math.maxInt(u64),
operations: u64 = 0,
operations_of_boot: u64 = 0,
serial: u32 = 0,
submissions: u64 = 0,
sectors: StreamSectors = undefined,
/// Reads, writes, discards and flushes in progress.
pending_count: u32 = 0,
reads: [reads_max]Read = undefined,
writes: [writes_max]Write = undefined,
/// The next sector of the final read of the whole disk.
verified: u32 = 0,
ready_said: bool = false,
ready_ended: bool = false,
report_said: u64 = 0,
report_said_us: u64 = 0,
report_at_us: u64 = 0,
reports_ended: u64 = 0,
steps_said: u8 = 0,
steps_changes: u8 = 0,
heard_at_us: u64 = 0,
waiting_since_us: u64 = 0,
quiet_from_us: u64 = 0,
quiet_sent: u32 = 0,
/// The edge that it heard last.
heard_from: u8 = 0,
/// Since then it has contacted others, each for the first time, and heard none of them.
elsewhere: ?Elsewhere = null,
/// Since its session was open it has contacted others, or all of them and its own again: from then
/// on each has a longer turn.
round: enum { none, first, later } = .none,
/// The network reported that nobody listens at its edge, and nothing has arrived since.
refusal: ?struct { at_us: u64, edge: u8 } = null,
/// The edge that keeps the writes of this boot, once another edge has named it.
bound_to: ?base.Endpoint = null,
statistics: Statistics = .{},

pub const State = enum {
    /// Between two boots.
    off,
    on,
    /// Nothing new begins; what is in progress ends.
    ending,
    /// The whole disk is read once more.
    verifying,
    finished,
};

/// The properties of a device that the seed draws.
pub const Habits = struct {
    class: link.Class,
    sectors: u32,
    /// Highest number of requests in progress.
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
    /// Of the write cache; null: the size of the disk.
    limit_bytes: ?u64,
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
    failovers: u64 = 0,
    refusals: u64 = 0,
    refused_elsewhere: u64 = 0,
    orders: u64 = 0,
};

const Read = struct {
    is_used: bool = false,
    asked_us: u64 = 0,
    kind: DeviceSide.ReadKind = .demand,
    first: u32 = 0,
    count: u32 = 0,
    /// What was acknowledged when the read was submitted: nothing older may arrive.
    floors: [read_sectors_max]u32 = undefined,
    buffer: [link.read_size_max]u8 = undefined,
};

/// The edge that it contacts now.
const Elsewhere = struct { since_us: u64, edge: u8, asked_us: u64 };

const Write = struct {
    kind: enum { free, write, discard, flush } = .free,
    serial: u32 = 0,
    /// Number of the submission.
    submission: u64 = 0,
    first: u32 = 0,
    count: u32 = 0,
    buffer: [link.write_size_max]u8 = undefined,
};

/// Replaces the device, and keeps the memory of the one before where it is not used again.
pub fn restart(device: *StreamDevice, fresh: StreamDevice) void {
    inline for (@typeInfo(StreamDevice).@"struct".field_names) |name| {
        if (comptime !isMemory(name)) @field(device, name) = @field(fresh, name);
    }
    device.forgetRequests();
    device.sectors.clear();
}

fn isMemory(comptime name: []const u8) bool {
    const memory = [_][]const u8{ "reads", "writes", "sectors" };
    inline for (memory) |field| if (comptime std.mem.eql(u8, name, field)) return true;
    return false;
}

fn forgetRequests(device: *StreamDevice) void {
    for (&device.reads) |*read| read.is_used = false;
    for (&device.writes) |*write| write.kind = .free;
    device.pending_count = 0;
}

/// Begins another boot; returns false if no edge answers.
pub fn begin(device: *StreamDevice, number: u32, is_closing: bool) bool {
    const habits = &device.habits;
    const is_kept = habits.class == .edge_persistent;
    var boot: StreamBoot = .{
        .number = number,
        .version = device.site.versionOf(device.index),
        .class = habits.class,
        .home = if (is_kept)
            device.site.ownerOf(device.index)
        else
            @intCast(device.prng.below(device.site.edge_count)),
        .writer = if (is_kept) kept_writer + device.index else number,
        .limit_bytes = if (is_closing) null else habits.limit_bytes,
        .is_stopped_when_full = habits.is_stopped_when_full,
    };
    boot.addresses.appendAssumeCapacity(device.network.links[device.index].address);
    device.boot = device.site.begin(device.index, &boot) orelse return false;
    device.forgetRequests();
    if (!is_kept) {
        device.sectors.clear();
        device.serial = 0;
    }
    const now_us = device.network.now_us;
    device.noteHeard(boot.home);
    device.round = .none;
    device.refusal = null;
    device.bound_to = null;
    device.submissions = 0;
    device.operations_of_boot = 0;
    device.verified = 0;
    device.ready_said = false;
    device.ready_ended = false;
    device.report_said = 0;
    device.report_said_us = 0;
    device.reports_ended = 0;
    device.steps_said = 0;
    device.steps_changes = 0;
    device.report_at_us = now_us;
    device.heard_at_us = now_us;
    device.waiting_since_us = now_us;
    device.state = if (is_closing) .ending else .on;
    device.statistics.boots += 1;
    device.side.start(now_us, device.identity());
    return true;
}

fn identity(device: *StreamDevice) DeviceSide.Identity {
    var seed: [32]u8 = undefined;
    device.prng.fill(&seed);
    return .{
        .boot_id = device.boot.id,
        .token = device.boot.token,
        .nonce_seed = seed,
        .edge = network_module.edgeAddress(device.boot.home),
    };
}

/// Ends the boot; the next one begins a little later.
pub fn end(device: *StreamDevice) void {
    device.state = .off;
    device.next_at_us = device.network.now_us + device.prng.below(std.time.us_per_s);
    device.refusal = null;
}

/// Another process of the device takes over, and submits the requests in progress again.
pub fn replaceProcess(device: *StreamDevice) void {
    if (device.state == .off) return;
    const now_us = device.network.now_us;
    if (!device.side.continueBoot(now_us, device.identity())) return;
    device.statistics.processes += 1;
    // Its program remembers which order it has taken; the client that it starts is offered the
    // order once more.
    device.boot.orders_taken.clear();
    for (&device.reads, 0..) |*read, tag| if (read.is_used) {
        const buffer = read.buffer[0 .. read.count * sector_size];
        const offset = @as(u64, read.first) * sector_size;
        device.side.submitRead(read.kind, tag, offset, buffer) catch unreachable;
    };
    // In the order of their first submission.
    var before: u64 = 0;
    while (requests.nextWrite(device, before)) |tag| {
        before = device.writes[tag].submission;
        requests.submit(device, tag);
    }
    if (device.ready_said) device.side.reportReady(now_us, now_us);
    device.ready_ended = false;
    device.report();
}

/// Takes a packet. The device's socket is connected to one edge, and drops packets of others.
pub fn receive(device: *StreamDevice, from: base.Endpoint, bytes: []const u8) void {
    if (device.state == .off or !device.side.contacted().eql(from)) return;
    device.heard_at_us = device.network.now_us;
    device.quiet_sent = 0;
    device.site.reachability.checkSilence(device);
    device.noteHeard(network_module.edgeOf(from));
    device.refusal = null;
    device.side.receive(device.network.now_us, bytes);
}

fn noteHeard(device: *StreamDevice, edge: u8) void {
    device.heard_from = edge;
    device.elsewhere = null;
}

fn noteContact(device: *StreamDevice, edge: u8) void {
    if (edge == network_module.edgeOf(device.side.home())) {
        if (device.round == .first) device.round = .later;
        device.elsewhere = null;
        return;
    }
    if (device.round == .none) device.round = .first;
    if (edge == device.heard_from) device.elsewhere = null;
    if (edge == device.heard_from or device.round == .later) return;
    const now_us = device.network.now_us;
    const before = device.elsewhere orelse
        Elsewhere{ .since_us = now_us, .edge = edge, .asked_us = now_us };
    device.elsewhere = if (before.edge == edge)
        before
    else
        .{ .since_us = before.since_us, .edge = edge, .asked_us = now_us };
}

/// The network reports that nobody listens at this edge.
pub fn noteRefused(device: *StreamDevice, edge: base.Endpoint) void {
    if (device.state == .off or !device.side.contacted().eql(edge)) return;
    const is_waiting = device.oldestReadUs() != null and device.side.isEstablished();
    if (device.refusal == null and is_waiting) device.refusal = .{
        .at_us = device.network.now_us,
        .edge = network_module.edgeOf(edge),
    };
    device.side.onUnreachable(device.network.now_us);
}

/// Returns since when its system has waited for the oldest read; null: it waits for none.
pub fn oldestReadUs(device: *const StreamDevice) ?u64 {
    if (device.state == .off or device.state == .finished) return null;
    var oldest: ?u64 = null;
    for (&device.reads) |*read| if (read.is_used and read.kind == .demand) {
        oldest = @min(oldest orelse read.asked_us, read.asked_us);
    };
    return oldest;
}

/// Returns the edge that the device contacts now.
pub fn edgeNow(device: *const StreamDevice) *StreamEdge {
    return &device.site.edges[network_module.edgeOf(device.side.contacted())];
}

/// Does everything that is due: events, requests, packets.
pub fn tick(device: *StreamDevice, is_closing: bool, boot_serial: *u32) void {
    const now_us = device.network.now_us;
    if (device.state == .off and now_us >= device.next_at_us) {
        if (device.begin(boot_serial.* + 1, is_closing))
            boot_serial.* += 1
        else
            device.next_at_us = now_us + retry_us;
    }
    if (device.state != .off) {
        if (is_closing and device.state == .on) device.state = .ending;
        // Also for the edge that it leaves now.
        device.site.reachability.checkSilence(device);
        device.takeEvents();
        requests.work(device);
        device.transmit();
        device.site.reachability.checkSilence(device);
    }
    device.planWake();
}

fn transmit(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    const own = device.network.links[device.index].address;
    while (device.side.transmit(now_us)) |packet| {
        device.side.noteSealed(device.invariants, &device.site.nonces, packet);
        const to = device.side.contacted();
        if (device.bound_to) |owner| if (!owner.eql(to)) device.invariants.violate(
            .asks_its_own_edge,
            "device {d}, whose writes are at {f}, contacts {f}",
            .{ device.index, owner, to },
        );
        device.noteContact(network_module.edgeOf(to));
        device.network.sendToEdge(device.index, own, to, packet);
        device.countQuiet();
        if (device.invariants.violation != null) return;
    }
    const edge_limit = device.site.edges[0].settings.outstanding_bytes_max;
    const limit = @min(device.habits.outstanding_bytes_max, edge_limit);
    const outstanding = device.side.outstanding();
    if (outstanding.bytes > limit and outstanding.reads > 1) device.invariants.violate(
        .windows_bounded,
        "device {d} has {d} bytes outstanding of {d}",
        .{ device.index, outstanding.bytes, limit },
    );
    const at_us = device.side.deadline(now_us) orelse return;
    if (at_us <= now_us) device.invariants.violate(
        .no_busy_waiting,
        "device {d} wants to be called at {d} us, which was {d} us ago",
        .{ device.index, at_us, now_us - at_us },
    );
}

/// A device that hears nothing retransmits each request about once a second.
fn countQuiet(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    if (now_us -| @max(device.heard_at_us, device.waiting_since_us) < silence_us) return;
    if (now_us - device.quiet_from_us >= std.time.us_per_s) {
        device.quiet_from_us = now_us;
        device.quiet_sent = 0;
    }
    device.quiet_sent += 1;
    const parts_max: u32 = core.stream.Client.read_parts_max;
    const limit = 12 + 6 * device.pending_count + 2 * parts_max;
    if (device.quiet_sent > limit) device.invariants.violate(
        .silence_is_quiet,
        "device {d} hears nothing and sends {d} packets in a second",
        .{ device.index, device.quiet_sent },
    );
}

fn planWake(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    var at_us: u64 = std.math.maxInt(u64);
    if (device.state == .off) {
        at_us = device.next_at_us;
    } else if (device.state != .finished) {
        if (device.side.deadline(now_us)) |due_us| at_us = @max(due_us, now_us);
        // Without patience it requests nothing before a packet has arrived.
        const has_room = device.pending_count < device.habits.depth;
        if (device.state == .on and has_room and requests.isPatient(device))
            at_us = @min(at_us, @max(device.next_at_us, now_us + 1));
        at_us = @min(at_us, @max(device.report_at_us, now_us + 1));
    }
    if (at_us == std.math.maxInt(u64)) return;
    if (device.wake_at_us > now_us and device.wake_at_us <= at_us) return;
    device.wake_at_us = at_us;
    device.network.plan(at_us, .{ .device_wake = device.index });
}

fn takeEvents(device: *StreamDevice) void {
    while (device.side.nextEvent()) |event| {
        device.takeEvent(&event);
        if (device.state == .off or device.invariants.violation != null) return;
    }
}

fn takeEvent(device: *StreamDevice, event: *const link.Client.Event) void {
    const boot = device.boot;
    switch (event.*) {
        .established => |session| {
            device.round = .none;
            device.bound_to = null;
            device.refusal = null;
            device.statistics.resumptions += @intFromBool(session.resumed);
            device.statistics.failovers += @intFromBool(session.moved);
        },
        .read_done => |done| requests.readEnded(device, @intCast(done.tag)),
        .read_failed => |failed| switch (failed.code) {
            .stopped => device.endFor("a stopped disk", boot.isStopped()),
            .cache_lost => device.endFor("a lost write cache", boot.ends.contains(.cache_lost)),
            else => |code| device.invariants.violate(
                .ends_have_a_reason,
                "a read of device {d} fails: {t}",
                .{ device.index, code },
            ),
        },
        .write_ended => |ended| {
            requests.writeEnded(device, @intCast(ended.tag - requests.tag_write), ended.code);
        },
        .refused => |code| device.noteRefusal(code),
        .refused_elsewhere => |refusal| {
            device.statistics.refused_elsewhere += 1;
            // It contacts its own edge again by now.
            if (refusal.code == .cache_elsewhere)
                device.bound_to = network_module.edgeAddress(boot.home);
        },
        .version_changed => device.endFor("another version", false),
        .cache_lost => device.endFor("another write cache", boot.ends.contains(.cache_lost)),
        .ready_acknowledged => device.endReady(),
        .account_acknowledged => unreachable, // It sends no account.
        .order => |order| device.takeOrder(order.id.bytes),
        .report_acknowledged => device.endReport(),
        // The client was given no key.
        .sign => unreachable,
    }
}

fn endReady(device: *StreamDevice) void {
    const known = device.edgeNow().knownOf(device.boot);
    const is_heard = known != null and known.?.ready_heard;
    if (device.ready_ended or !device.ready_said or !is_heard) device.invariants.violate(
        .ready_once,
        "READY of boot {d} is acknowledged, and was not heard or was acknowledged before",
        .{device.boot.number},
    );
    device.ready_ended = true;
}

fn endReport(device: *StreamDevice) void {
    const nothing: StreamEdge.Known = .{};
    const known = if (device.edgeNow().knownOf(device.boot)) |known| known else &nothing;
    const lacks_steps = device.side.hasSentSteps() and known.steps_heard < device.steps_said;
    if (known.report_heard_us < device.report_said_us or lacks_steps) device.invariants.violate(
        .report_is_known,
        "report {d} of boot {d} is acknowledged, and the edge has heard none since {d} us",
        .{ device.report_said, device.boot.number, known.report_heard_us },
    );
    device.reports_ended = device.report_said;
}

fn noteRefusal(device: *StreamDevice, code: anytype) void {
    device.statistics.refusals += 1;
    const ends = &device.boot.ends;
    const is_ticket_over = device.side.isTicketOver(device.network.now_us);
    device.endFor(@tagName(code), switch (code) {
        .token_refused => ends.contains(.keys_lost) or is_ticket_over,
        .version_missing => ends.contains(.version_missing),
        .cache_lost => ends.contains(.cache_lost),
        else => false,
    });
}

pub fn endFor(device: *StreamDevice, why: []const u8, has_occurred: bool) void {
    if (!has_occurred) device.invariants.violate(
        .ends_have_a_reason,
        "boot {d} of device {d} ends for {s}, which has not occurred",
        .{ device.boot.number, device.index, why },
    );
    lost_devices.tell(device);
    device.end();
}

pub fn takeOrder(device: *StreamDevice, id: [16]u8) void {
    const boot = device.boot;
    const is_given = StreamBoot.hasOrder(&boot.orders_given, id);
    if (!is_given or StreamBoot.hasOrder(&boot.orders_taken, id)) device.invariants.violate(
        .order_taken_once,
        "boot {d} takes an order a second time, or one that was never given",
        .{boot.number},
    );
    boot.orders_taken.append(id) catch {};
    device.statistics.orders += 1;
}

pub fn report(device: *StreamDevice) void {
    const now_us = device.network.now_us;
    device.report_said += 1;
    device.report_said_us = now_us;
    if (device.prng.chance(1, 3) and device.steps_changes < steps_changes_max) {
        const steps: u8 = @intCast(device.prng.between(device.steps_said, 20));
        device.steps_changes += @intFromBool(steps != device.steps_said);
        device.steps_said = steps;
    }
    device.side.report(now_us, device.report_said, device.steps_said);
    device.report_at_us = now_us + report_interval_us;
}

/// Describes what the device waits for.
pub fn describe(
    device: *const StreamDevice,
    writer: *std.Io.Writer,
) std.Io.Writer.Error!void {
    try writer.print(
        "device {d} is {t}: {d} requests in progress, {d} of {d} sectors read, READY {s}, " ++
            "report {d} of {d}",
        .{
            device.index,
            device.state,
            device.pending_count,
            device.verified,
            device.habits.sectors,
            if (device.ready_ended) "heard" else "unheard",
            device.reports_ended,
            device.report_said,
        },
    );
}
