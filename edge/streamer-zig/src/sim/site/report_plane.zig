//! What the control plane does with an edge's reports (packages/proto/UPLINK.md, "POST
//! /edge/v1/reports"): a cursor for each boot epoch, which moves with what is applied, each boot
//! with its highest revision, and sums that count each boot once.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Mutant = @import("mutants.zig").Mutant;

pub const ReportPlane = @This();

const batch_gzip_ratio_max = core.uplink.batch_gzip.ratio_max;

gpa: std.mem.Allocator,
mutant: Mutant,
cursors: std.ArrayList(Cursor) = .empty,
boots: std.AutoHashMapUnmanaged([16]u8, AppliedBoot) = .empty,
ready_count: u64 = 0,
lost_count: u64 = 0,
batch_count: u64 = 0,
/// Covers everything that was applied, in order.
hash: std.hash.Wyhash = .init(0),

const Cursor = struct { epoch: u64, acked_seq: u64 };
const AppliedBoot = struct { revision: u64, is_ready: bool };

const Report = struct {
    seq: u64,
    type: enum { boot, gap, withdrawn, waiting, discovered, schedule_run },
    boot: ?Boot = null,
    untilSeq: u64 = 0,

    const Boot = struct { id: base.Uuid, revision: u64, outcome: ?Outcome = null };
    const Outcome = struct { kind: []const u8 };
};
const Batch = struct { bootEpoch: u64, fromSeq: u64, reports: []const Report };

pub const Answer = union(enum) {
    /// None came back.
    none,
    ok,
    acked: u64,
    /// The seq that the control plane expects.
    gap: u64,
    later_ms: u32,
    malformed: []const u8,
};

pub fn deinit(plane: *ReportPlane) void {
    plane.cursors.deinit(plane.gpa);
    plane.boots.deinit(plane.gpa);
    plane.* = undefined;
}

/// Takes one request; `body` is as it was sent, compressed or not.
pub fn receive(plane: *ReportPlane, body: []const u8, is_gzip: bool) error{OutOfMemory}!Answer {
    var arena: std.heap.ArenaAllocator = .init(plane.gpa);
    defer arena.deinit();
    const text = if (is_gzip)
        try unzip(arena.allocator(), body) orelse return .{ .malformed = "not gzip" }
    else
        body;
    if (text.len > core.uplink.report_log.batch_size_max) return .{ .malformed = "too large" };
    const batch = core.uplink.message.parse(Batch, arena.allocator(), text) catch |err|
        switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            error.Malformed => return .{ .malformed = "not a batch" },
        };
    if (batch.reports.len == 0 or batch.reports.len > core.uplink.report_log.batch_reports_max)
        return .{ .malformed = "none or too many reports" };
    plane.batch_count += 1;
    return plane.apply(&batch);
}

fn unzip(arena: std.mem.Allocator, body: []const u8) error{OutOfMemory}!?[]const u8 {
    const window = try arena.alloc(u8, std.compress.flate.max_window_len);
    var reader: std.Io.Reader = .fixed(body);
    var decompress: std.compress.flate.Decompress = .init(&reader, .gzip, window);
    const size_max = core.uplink.report_log.batch_size_max;
    const limit = @min(size_max, body.len * batch_gzip_ratio_max) + 1;
    return decompress.reader.allocRemaining(arena, .limited(limit)) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.ReadFailed, error.StreamTooLong => null,
    };
}

fn apply(plane: *ReportPlane, batch: *const Batch) error{OutOfMemory}!Answer {
    var expected_seq = batch.fromSeq;
    for (batch.reports) |*report| {
        if (report.seq != expected_seq) return .{ .malformed = "not consecutive" };
        expected_seq = lastSeqOf(report) + 1;
    }
    const cursor = try plane.cursorOf(batch.bootEpoch);
    if (batch.fromSeq > cursor.acked_seq + 1) return .{ .gap = cursor.acked_seq + 1 };
    for (batch.reports) |*report| {
        const last_seq = lastSeqOf(report);
        if (last_seq <= cursor.acked_seq and plane.mutant != .apply_reports_again) continue;
        switch (report.type) {
            .boot => try plane.applyBoot(report),
            .gap => plane.lost_count += last_seq - @max(report.seq - 1, cursor.acked_seq),
            .withdrawn, .waiting, .discovered, .schedule_run => {},
        }
        cursor.acked_seq = @max(cursor.acked_seq, last_seq);
    }
    return .{ .acked = cursor.acked_seq };
}

fn applyBoot(plane: *ReportPlane, report: *const Report) error{OutOfMemory}!void {
    const boot = report.boot orelse return;
    plane.hash.update(&boot.id.bytes);
    plane.hash.update(std.mem.asBytes(&boot.revision));
    const found = try plane.boots.getOrPut(plane.gpa, boot.id.bytes);
    const applied = found.value_ptr;
    if (!found.found_existing) applied.* = .{ .revision = 0, .is_ready = false };
    const applies_again = plane.mutant == .apply_reports_again;
    if (applied.revision >= boot.revision and !applies_again) return;
    applied.revision = boot.revision;
    const is_ready =
        if (boot.outcome) |outcome| std.mem.eql(u8, outcome.kind, "ready") else false;
    if (is_ready and (!applied.is_ready or applies_again)) plane.ready_count += 1;
    applied.is_ready = is_ready;
}

fn cursorOf(plane: *ReportPlane, epoch: u64) error{OutOfMemory}!*Cursor {
    for (plane.cursors.items) |*cursor| if (cursor.epoch == epoch) return cursor;
    try plane.cursors.append(plane.gpa, .{ .epoch = epoch, .acked_seq = 0 });
    return &plane.cursors.items[plane.cursors.items.len - 1];
}

/// A gap stands for all reports up to its end.
fn lastSeqOf(report: *const Report) u64 {
    return if (report.type == .gap) @max(report.seq, report.untilSeq) else report.seq;
}
