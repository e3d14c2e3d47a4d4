//! Sends an edge's reports to the control plane: the product's report log on the edge's disk, the
//! product's sender, and HTTP over the site's network. There is no TCP: a request and its answer
//! arrive whole, late, twice, or not at all. Every simulated edge has one, and so has the edge of
//! reports.zig, which reports for a month.
//!
//! Invariant: the control plane gets every report that the log kept, and applies each once.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const EventQueue = @import("event_queue.zig");
const Fabric = @import("network.zig").Network;
const Faults = @import("../kit/faults.zig").Faults;
const LogFiles = @import("log_files.zig");
const Mutant = @import("mutants.zig").Mutant;
const ReportPlane = @import("report_plane.zig");
const SimFiles = @import("../kit/sim_files.zig");
const assert = std.debug.assert;

pub const ReportUplink = @This();

pub const Log = core.uplink.report_log.ReportLog(LogFiles);
const batch_size_max = core.uplink.report_log.batch_size_max;
/// The edge gives up a request that is not answered by then.
const request_timeout_us = 20 * std.time.us_per_s;
const heartbeat_size = 2048;
/// What the API names after a heartbeat (`nextMs`); one of an earlier release names nothing.
const heartbeat_next_ms = 30_000;

gpa: std.mem.Allocator,
fabric: *Fabric,
edge: u8,
disk: *SimFiles,
prng: base.Prng,
mutant: Mutant,
plane: ReportPlane,
/// The API is of a release that names the time to the next heartbeat.
names_next: bool,
/// Faults of the network from the edge to the control plane, and of that back.
requests: Faults,
answers: Faults,
is_cut: bool = false,
size_max: u64,
epoch: u64 = 0,
clock_offset_ms: i64 = 0,
process: ?*Process = null,
/// The latest request on the network, which outlives the process that sent it.
serial: u32 = 0,
sent: Message = .{},
answer: ReportPlane.Answer = .ok,
/// A copy of an earlier request that the network delivers later.
late_copy: Message = .{},
buffer: []u8,
gzip: core.uplink.batch_gzip.BatchGzip,
/// The highest revision of each boot that the control plane must get.
revisions: std.array_hash_map.Auto([16]u8, u64) = .empty,
lost_acknowledgements: u64 = 0,

/// What a crash loses.
const Process = struct {
    log: Log,
    sender: core.uplink.sender.Sender = .{},
    /// The request that waits for its answer.
    request: ?struct { serial: u32, batch: ?Batch } = null,
    wake_at_us: ?u64 = null,
    /// Until then the control plane has asked to wait.
    not_before_ms: u64 = 0,
};

const Batch = struct { epoch: u64, until_seq: u64 };

/// The body of a request; a heartbeat has none here.
const Message = struct { body: std.ArrayList(u8) = .empty, is_gzip: bool = false };

pub const Options = struct {
    fabric: *Fabric,
    edge: u8,
    disk: *SimFiles,
    seed: u64,
    mutant: Mutant,
    requests: Faults,
    answers: Faults,
    size_max: u64 = core.uplink.report_log.size_max_default,
};

pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!ReportUplink {
    const buffer = try gpa.alloc(u8, batch_size_max);
    errdefer gpa.free(buffer);
    LogFiles.makeDir(options.disk);
    return .{
        .gpa = gpa,
        .fabric = options.fabric,
        .edge = options.edge,
        .disk = options.disk,
        .prng = .init(options.seed),
        .names_next = options.seed % 4 != 0,
        .mutant = options.mutant,
        .plane = .{ .gpa = gpa, .mutant = options.mutant },
        .requests = options.requests,
        .answers = options.answers,
        .size_max = options.size_max,
        .buffer = buffer,
        .gzip = try .init(gpa, batch_size_max),
    };
}

pub fn deinit(uplink: *ReportUplink) void {
    const gpa = uplink.gpa;
    uplink.crash();
    uplink.plane.deinit();
    uplink.sent.body.deinit(gpa);
    uplink.late_copy.body.deinit(gpa);
    uplink.revisions.deinit(gpa);
    uplink.gzip.deinit(gpa);
    gpa.free(uplink.buffer);
    uplink.* = undefined;
}

/// Starts the edge's process.
pub fn start(uplink: *ReportUplink) error{OutOfMemory}!void {
    assert(uplink.process == null);
    uplink.epoch += 1;
    var files: LogFiles = .{
        .disk = uplink.disk,
        .fabric = uplink.fabric,
        .clock_offset_ms = uplink.clock_offset_ms,
    };
    if (uplink.mutant == .forget_report_log) files.forget();
    const process = try uplink.gpa.create(Process);
    errdefer uplink.gpa.destroy(process);
    process.* = .{ .log = Log.open(uplink.gpa, files, .{
        .epoch = uplink.epoch,
        .size_max = uplink.size_max,
    }) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        error.LogFromTheFuture => unreachable,
    } };
    uplink.process = process;
    uplink.planWake(uplink.fabric.now_us);
}

/// Ends the process without a last request; what is on the network stays there.
pub fn crash(uplink: *ReportUplink) void {
    const process = uplink.process orelse return;
    process.log.deinit(uplink.gpa);
    uplink.gpa.destroy(process);
    uplink.process = null;
}

/// The power is cut: reports that were not synced may be lost.
pub fn forgetUnsynced(uplink: *ReportUplink) void {
    uplink.revisions.clearRetainingCapacity();
}

/// Writes a report of the running process into the log.
pub fn report(uplink: *ReportUplink, what: agent.Report) void {
    const log = &uplink.process.?.log;
    const is_kept = switch (what) {
        .boot => |json| log.appendBoot(json),
        .withdrawn => |boot| log.appendWithdrawn(boot.boot_id, boot.to),
        .waiting => |waiting| log.appendWaiting(waiting),
        .discovered => |json| log.appendDiscovered(json),
        .schedule_run => |json| log.appendScheduleRun(json),
    };
    if (!is_kept) uplink.fail("the report log is full at {d} bytes", .{uplink.disk.namedBytes()});
    uplink.planWake(uplink.fabric.now_us +
        core.uplink.sender.report_delay_ms * std.time.us_per_ms);
}

/// The log has kept this revision of a boot.
pub fn expect(uplink: *ReportUplink, boot: *const core.boot.Boot) void {
    uplink.revisions.put(uplink.gpa, boot.identity.id.bytes, boot.revision) catch
        @panic("no memory");
}

/// Returns whether the control plane has everything that the log kept.
pub fn isDrained(uplink: *const ReportUplink) bool {
    const process = uplink.process orelse return false;
    return process.request == null and process.log.backlog() == 0;
}

/// Once all reports are sent: each boot is there with its highest revision.
pub fn check(uplink: *ReportUplink) void {
    for (uplink.revisions.keys(), uplink.revisions.values()) |id, revision| {
        const applied = uplink.plane.boots.get(id);
        const applied_revision = if (applied) |boot| boot.revision else 0;
        if (applied_revision < revision) return uplink.fail(
            "edge {d} reported revision {d} of a boot, the control plane has {d}",
            .{ uplink.edge, revision, applied_revision },
        );
    }
    if (uplink.plane.lost_count != 0)
        uplink.fail("{d} reports were declared lost", .{uplink.plane.lost_count});
}

/// Something of this uplink is due.
pub fn step(
    uplink: *ReportUplink,
    serial: u32,
    what: EventQueue.ReportStep,
) error{OutOfMemory}!void {
    switch (what) {
        .wake => {
            const process = uplink.process orelse return;
            // A wake-up of an earlier process, or one that an earlier wake-up has replaced.
            if (process.wake_at_us != uplink.fabric.now_us) return;
            process.wake_at_us = null;
            try uplink.act(process);
        },
        .arrival => if (serial == uplink.serial) try uplink.receive(),
        .late_copy => {
            _ = try uplink.plane.receive(uplink.late_copy.body.items, uplink.late_copy.is_gzip);
            uplink.late_copy.body.clearRetainingCapacity();
        },
        .answer => try uplink.finish(serial, uplink.answer),
        .timeout => try uplink.finish(serial, .none),
    }
}

/// Does what the product's sender decides, as host/uplink/worker.zig does.
fn act(uplink: *ReportUplink, process: *Process) error{OutOfMemory}!void {
    if (process.request != null) return;
    const backlog = process.log.backlog();
    switch (process.sender.next(uplink.nowMs(), backlog)) {
        .heartbeat => uplink.send(process, null, heartbeat_size),
        .look => {
            // What an edge would say changes now and then.
            process.sender.looked(uplink.nowMs(), uplink.prng.chance(1, 4));
            try uplink.act(process);
        },
        .reports => try uplink.sendReports(process),
        .wait_until_ms => |until_ms| uplink.planWake(until_ms * std.time.us_per_ms),
        .stopped => uplink.fail("the sender has stopped", .{}),
    }
}

fn sendReports(uplink: *ReportUplink, process: *Process) error{OutOfMemory}!void {
    if (uplink.nowMs() < process.not_before_ms) return uplink.fail(
        "a request came {d} ms before the time that was asked for",
        .{process.not_before_ms - uplink.nowMs()},
    );
    // In a month without the control plane, reading each batch that nobody takes costs minutes.
    if (uplink.is_cut) return uplink.send(process, .{ .epoch = 0, .until_seq = 0 }, 0);
    const batch = (process.log.nextBatch(uplink.buffer) catch unreachable) orelse return;
    assert(batch.body.len <= batch_size_max);
    const compressed = if (process.sender.mayCompress() and uplink.prng.chance(1, 8))
        uplink.gzip.compress(batch.body)
    else
        null;
    uplink.sent.is_gzip = compressed != null;
    uplink.sent.body.clearRetainingCapacity();
    try uplink.sent.body.appendSlice(uplink.gpa, compressed orelse batch.body);
    if (uplink.happens(uplink.requests.duplicate_per_mille) and
        uplink.late_copy.body.items.len == 0)
    {
        uplink.late_copy.is_gzip = uplink.sent.is_gzip;
        try uplink.late_copy.body.appendSlice(uplink.gpa, uplink.sent.body.items);
        uplink.plan(uplink.prng.below(uplink.requests.hold_us + 1), .late_copy);
    }
    uplink.send(
        process,
        .{ .epoch = batch.epoch, .until_seq = batch.until_seq },
        uplink.sent.body.items.len,
    );
}

fn send(uplink: *ReportUplink, process: *Process, batch: ?Batch, size: usize) void {
    uplink.serial += 1;
    process.request = .{ .serial = uplink.serial, .batch = batch };
    if (batch == null) uplink.sent.body.clearRetainingCapacity();
    if (uplink.is_cut or uplink.happens(uplink.requests.loss_per_mille))
        return uplink.plan(request_timeout_us, .timeout);
    uplink.plan(uplink.requests.delay_us + size * 8 / uplink.requests.bits_per_us, .arrival);
}

/// The latest request arrives at the control plane.
fn receive(uplink: *ReportUplink) error{OutOfMemory}!void {
    const sent = &uplink.sent;
    uplink.fabric.trace.noteBytes(sent.body.items);
    uplink.answer = if (sent.body.items.len == 0)
        .ok
    else if (uplink.prng.chance(1, 20))
        .{ .later_ms = @intCast(uplink.prng.between(1, 10) * std.time.ms_per_s) }
    else
        try uplink.plane.receive(sent.body.items, sent.is_gzip);
    const is_lost = uplink.is_cut or uplink.happens(uplink.answers.loss_per_mille);
    if (!is_lost) return uplink.plan(uplink.answers.delay_us, .answer);
    uplink.plan(request_timeout_us, .timeout);
    if (uplink.answer == .ok or uplink.answer == .later_ms) return;
    uplink.lost_acknowledgements += 1;
    if (uplink.mutant != .believe_lost_answers) return;
    const process = uplink.process orelse return;
    const request = process.request orelse return;
    if (request.batch) |batch| process.log.ack(batch.epoch, batch.until_seq + 1);
}

/// A request was answered, or the edge has given it up.
fn finish(uplink: *ReportUplink, serial: u32, answer: ReportPlane.Answer) error{OutOfMemory}!void {
    const process = uplink.process orelse return;
    const request = process.request orelse return;
    if (request.serial != serial) return;
    process.request = null;
    const now_ms = uplink.nowMs();
    const random = uplink.prng.nextU64();
    const meaning: core.uplink.sender.Answer = switch (answer) {
        .none => .nothing,
        .ok, .acked => .ok,
        .later_ms => |after_ms| .{ .later = after_ms },
        .gap => |seq| .{ .refused = .{ .status = 409, .code = .report_gap, .expected_seq = seq } },
        .malformed => |why| return uplink.fail("a batch was refused: {s}", .{why}),
    };
    if (request.batch) |batch| {
        if (answer == .acked) process.log.ack(batch.epoch, answer.acked);
        if (answer == .later_ms) process.not_before_ms = now_ms + answer.later_ms;
        if (answer != .none) process.sender.onBatchForm(true, false);
        switch (process.sender.reportsAnswered(now_ms, random, meaning)) {
            .rewind => |seq| process.log.rewind(batch.epoch, seq),
            .none, .stop => {},
        }
    } else {
        const next_ms: u64 = if (uplink.names_next) heartbeat_next_ms else 0;
        _ = process.sender.heartbeatAnswered(now_ms, random, meaning, next_ms);
    }
    try uplink.act(process);
}

fn planWake(uplink: *ReportUplink, at_us: u64) void {
    const process = uplink.process.?;
    if (process.wake_at_us) |planned| if (planned <= at_us) return;
    process.wake_at_us = at_us;
    uplink.plan(at_us - uplink.fabric.now_us, .wake);
}

fn plan(uplink: *ReportUplink, after_us: u64, what: EventQueue.ReportStep) void {
    uplink.fabric.plan(uplink.fabric.now_us + after_us, .{ .reports = .{
        .edge = uplink.edge,
        .serial = uplink.serial,
        .step = what,
    } });
}

fn happens(uplink: *ReportUplink, per_mille: u32) bool {
    return uplink.prng.chance(per_mille, 1000);
}

fn nowMs(uplink: *const ReportUplink) u64 {
    return uplink.fabric.now_us / std.time.us_per_ms;
}

fn fail(uplink: *ReportUplink, comptime format: []const u8, values: anytype) void {
    uplink.fabric.invariants.violate(.reports_once, format, values);
}
