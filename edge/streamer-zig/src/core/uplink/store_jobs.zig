//! The control plane's jobs for this edge's store: which run, at most one per queue, their
//! progress, their results, and which of these are not reported yet. Pure. A finished job stays
//! until the desired state no longer lists it, so that none is executed twice and no result is
//! lost; the caller stores results on disk when `isEndChanged`.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const difference_order = @import("difference_order.zig");
const store_job = @import("store_job.zig");
const assert = std.debug.assert;

const Queue = store_job.Queue;
const Order = desired_state.StoreJob;

/// While a job runs and makes progress.
const progress_interval_ms = 5_000;

/// Delay before a job that another process blocked is started again.
const busy_interval_ms = 3_000;

pub const Stage = enum { waiting, running, done, failed };

pub const Job = struct {
    id: base.Uuid,
    /// Known as long as it is ordered.
    queue: Queue = .changes,
    stage: Stage = .waiting,
    done_bytes: u64 = 0,
    total_bytes: u64 = 0,
    message: store_job.Message = .empty,
    made: store_job.Made = .empty,
    /// What a `pack` has made.
    packed_difference: ?difference_order.Packed = null,
    is_ordered: bool = true,
    /// The control plane has stored its end.
    is_settled: bool = false,
    /// Something is to be reported about it.
    has_update: bool = false,
    /// Another process held the lock that it needs.
    not_before_ms: u64 = 0,
    /// A process was started for it.
    was_begun: bool = false,

    fn isOver(job: *const Job) bool {
        return job.stage == .done or job.stage == .failed;
    }
};

pub const StoreJobs = @This();

jobs: base.BoundedArray(Job, jobs_max) = .empty,
/// A result differs from the one on disk.
is_end_changed: bool = false,
/// A job has started, made a step or ended since the last message.
is_urgent: bool = false,

pub const jobs_max = desired_state.store_jobs_max;
/// Further ones are sent with the next message.
const told_max = 32;
/// Size of a report: less than 512 bytes around its message and the created version.
const report_size_max = 512 + 2 * store_job.message_size_max + store_job.made_size_max;
const untold_size_max = told_max * report_size_max;
pub const over_size_max = jobs_max * report_size_max;

/// Takes the jobs of the desired state. One that is no longer listed is forgotten, even if it
/// runs.
pub fn update(jobs: *StoreJobs, orders: []const Order) void {
    for (jobs.jobs.slice()) |*job| job.is_ordered = false;
    for (orders) |*order| if (jobs.find(order.id)) |job| {
        job.is_ordered = true;
        job.queue = store_job.queueOf(order);
    };
    var kept: u32 = 0;
    for (jobs.jobs.slice()) |*job| {
        if (job.is_ordered) {
            jobs.jobs.buffer[kept] = job.*;
            kept += 1;
        } else if (job.isOver()) jobs.is_end_changed = true;
    }
    assert(kept <= jobs.jobs.count);
    jobs.jobs.count = kept;
    for (orders) |*order| if (jobs.find(order.id) == null)
        jobs.jobs.append(.{ .id = order.id, .queue = store_job.queueOf(order) }) catch break;
    assert(jobs.jobs.count <= jobs_max);
}

/// Returns the job to start in this queue, in the control plane's order; null: none, or one is
/// running.
pub fn next(jobs: *StoreJobs, queue: Queue, orders: []const Order, now_ms: u64) ?base.Uuid {
    if (jobs.running(queue) != null) return null;
    for (orders) |*order| if (jobs.find(order.id)) |job|
        if (job.queue == queue and job.stage == .waiting and now_ms >= job.not_before_ms)
            return job.id;
    return null;
}

/// No job can start; `why`: what all of them wait for.
pub fn block(jobs: *StoreJobs, why: store_job.Message) void {
    assert(why.count > 0);
    for (jobs.jobs.slice()) |*job| {
        if (job.stage != .waiting) continue;
        if (std.mem.eql(u8, job.message.constSlice(), why.constSlice())) continue;
        job.message = why;
        job.has_update = true;
        jobs.is_urgent = true;
    }
}

/// A running job is started again later; `why`: who holds the lock.
pub fn postpone(jobs: *StoreJobs, id: base.Uuid, now_ms: u64, why: store_job.Message) void {
    const job = jobs.find(id) orelse return;
    assert(job.stage == .running);
    job.stage = .waiting;
    job.not_before_ms = now_ms + busy_interval_ms;
    if (std.mem.eql(u8, job.message.constSlice(), why.constSlice())) return;
    job.message = why;
    job.has_update = true;
    jobs.is_urgent = true;
}

pub fn begin(jobs: *StoreJobs, id: base.Uuid) void {
    const job = jobs.find(id).?;
    assert(job.stage == .waiting);
    assert(jobs.running(job.queue) == null);
    job.stage = .running;
    job.was_begun = true;
    // The reason is reported until it makes progress.
    if (job.not_before_ms > 0) return;
    job.message = .empty;
    job.has_update = true;
    jobs.is_urgent = true;
}

/// Progress of a running job.
pub fn progress(jobs: *StoreJobs, id: base.Uuid, done_bytes: u64, total_bytes: u64) void {
    const job = jobs.find(id) orelse return;
    assert(job.stage == .running);
    job.has_update = job.has_update or done_bytes != job.done_bytes or
        total_bytes != job.total_bytes;
    if (job.done_bytes == 0 and done_bytes > 0) jobs.is_urgent = true;
    job.done_bytes = done_bytes;
    job.total_bytes = total_bytes;
    job.message = .empty;
}

/// What a running job does besides its progress.
pub fn note(jobs: *StoreJobs, id: base.Uuid, message: store_job.Message) void {
    const job = jobs.find(id) orelse return;
    assert(job.stage == .running);
    job.message = message;
}

pub const Done = struct {
    made: store_job.Made = .empty,
    packed_difference: ?difference_order.Packed = null,
    /// For a person.
    did: store_job.Message = .empty,
};

pub const End = union(enum) { done: Done, failed: store_job.Message };

/// End of a running job, or of one that could not start.
pub fn end(jobs: *StoreJobs, id: base.Uuid, how: End) void {
    const job = jobs.find(id) orelse return;
    assert(!job.isOver());
    switch (how) {
        .done => |done| {
            job.stage = .done;
            job.made = done.made;
            job.packed_difference = done.packed_difference;
            job.message = done.did;
            // Progress is printed now and then, and not at the very end.
            job.done_bytes = @max(job.done_bytes, job.total_bytes);
        },
        .failed => |message| {
            job.stage = .failed;
            job.message = message;
        },
    }
    job.has_update = true;
    jobs.is_end_changed = true;
    jobs.is_urgent = true;
}

pub fn running(jobs: *StoreJobs, queue: Queue) ?*Job {
    for (jobs.jobs.slice()) |*job| if (job.stage == .running and job.queue == queue) return job;
    return null;
}

/// Tells whether the result of a process is still wanted.
pub fn isRunning(jobs: *StoreJobs, id: base.Uuid) bool {
    const job = jobs.find(id) orelse return false;
    return job.stage == .running;
}

pub fn find(jobs: *StoreJobs, id: base.Uuid) ?*Job {
    for (jobs.jobs.slice()) |*job| if (job.id.eql(id)) return job;
    return null;
}

/// Tells whether a message is due, given the time since the last one.
pub fn isDue(jobs: *const StoreJobs, since_ms: u64) bool {
    if (jobs.is_urgent) return true;
    if (since_ms < progress_interval_ms) return false;
    for (jobs.jobs.constSlice()) |*job| if (isReportable(job)) return true;
    return false;
}

/// Unsettled ends are reported repeatedly, and changes once.
fn isReportable(job: *const Job) bool {
    return switch (job.stage) {
        .waiting, .running => job.has_update,
        .done, .failed => !job.is_settled,
    };
}

const Which = enum { unreported, over };

/// Writes a JSON array of `storeJobReport`.
pub fn writeReports(
    jobs: *const StoreJobs,
    writer: *std.Io.Writer,
    which: Which,
) std.Io.Writer.Error!void {
    try writer.writeByte('[');
    var count: u32 = 0;
    for (jobs.jobs.constSlice()) |*job| {
        const is_wanted = switch (which) {
            .unreported => isReportable(job),
            .over => job.isOver(),
        };
        if (!is_wanted) continue;
        if (which == .unreported and count == told_max) break;
        if (count > 0) try writer.writeByte(',');
        count += 1;
        // A waiting job was started before, or says what it waits for.
        const state: Stage = if (job.stage == .waiting) .running else job.stage;
        try writer.print(
            "{{\"id\":\"{f}\",\"state\":\"{t}\",\"progressBytes\":{d},\"totalBytes\":{d}",
            .{ job.id, state, job.done_bytes, job.total_bytes },
        );
        if (job.stage == .waiting and !job.was_begun) try writer.writeAll(",\"isWaiting\":true");
        if (job.message.count > 0)
            try writer.print(",\"message\":{f}", .{std.json.fmt(job.message.constSlice(), .{})});
        if (job.made.count > 0) try writer.print(",\"made\":{s}", .{job.made.constSlice()});
        if (job.packed_difference) |*done| try writer.print(
            ",\"packed\":{{\"sizeBytes\":{d},\"listSha256\":\"{x}\"}}",
            .{ done.size, &done.list_sha256 },
        );
        try writer.writeByte('}');
    }
    try writer.writeByte(']');
}

/// The message with `writeReports` was accepted; `settled`: the reports that the control plane
/// has stored. A running one among them is abandoned: the control plane does not know it, or
/// knows its end.
pub fn onReported(jobs: *StoreJobs, settled: []const base.Uuid) void {
    assert(jobs.jobs.count <= jobs_max);
    jobs.is_urgent = false;
    for (jobs.jobs.slice()) |*job| job.has_update = false;
    for (settled) |id| {
        const job = jobs.find(id) orelse continue;
        if (job.isOver()) job.is_settled = true;
        if (job.stage == .running) jobs.abandon(job);
    }
}

/// No process works on it any more; the order stands, unless it is gone.
fn abandon(jobs: *StoreJobs, job: *Job) void {
    assert(job.stage == .running);
    job.* = .{
        .id = job.id,
        .queue = job.queue,
        .stage = .failed,
        .message = store_job.messageOf("cancelled"),
        .is_ordered = job.is_ordered,
        .is_settled = true,
    };
    jobs.is_end_changed = true;
}

const JournalEntry = struct {
    id: base.Uuid,
    state: enum { done, failed },
    progressBytes: u64,
    totalBytes: u64,
    message: []const u8 = "",
    made: ?std.json.Value = null,
    @"packed": ?struct { sizeBytes: u64, listSha256: []const u8 } = null,
};

/// Restores the output of `writeReports(.over)` of an earlier process. An unreadable job is
/// executed again, which is harmless.
pub fn restore(jobs: *StoreJobs, arena: std.mem.Allocator, text: []const u8) error{Malformed}!void {
    const kept = std.json.parseFromSliceLeaky([]const JournalEntry, arena, text, .{
        .ignore_unknown_fields = true,
    }) catch
        return error.Malformed;
    if (kept.len > jobs_max) return error.Malformed;
    for (kept) |*entry| {
        if (jobs.find(entry.id) != null) continue;
        var job: Job = .{
            .id = entry.id,
            .stage = if (entry.state == .done) .done else .failed,
            .done_bytes = entry.progressBytes,
            .total_bytes = entry.totalBytes,
            .message = store_job.messageOf(entry.message),
        };
        if (entry.made) |made| {
            var line: [store_job.line_size_max]u8 = undefined;
            var writer: std.Io.Writer = .fixed(&line);
            writer.print("{f}", .{std.json.fmt(made, .{})}) catch return error.Malformed;
            job.made = try store_job.parseMade(writer.buffered());
        }
        if (entry.@"packed") |done| {
            var list_sha256: [32]u8 = undefined;
            if (done.listSha256.len != 2 * list_sha256.len) return error.Malformed;
            _ = std.fmt.hexToBytes(&list_sha256, done.listSha256) catch return error.Malformed;
            job.packed_difference = .{ .size = done.sizeBytes, .list_sha256 = list_sha256 };
        }
        assert(job.isOver());
        jobs.jobs.appendAssumeCapacity(job);
    }
}

const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

fn testOrder(number: u8) Order {
    return .{ .id = uuid(number), .kind = "merge" };
}

fn testImport(number: u8) Order {
    return .{ .id = uuid(number), .kind = "import" };
}

fn reports(jobs: *const StoreJobs, buffer: []u8) ![]const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    try jobs.writeReports(&writer, .unreported);
    return writer.buffered();
}

test "jobs run one after another in order, and each once" {
    var jobs: StoreJobs = .{};
    const orders = [_]Order{ testOrder(2), testOrder(1) };
    jobs.update(&orders);
    try testing.expectEqual(uuid(2), jobs.next(.changes, &orders, 0).?);
    jobs.begin(uuid(2));
    try testing.expectEqual(null, jobs.next(.changes, &orders, 0));
    jobs.end(uuid(2), .{ .done = .{} });
    // The state lists it until the control plane knows its end.
    jobs.update(&orders);
    try testing.expectEqual(uuid(1), jobs.next(.changes, &orders, 0).?);
    jobs.end(uuid(1), .{ .failed = store_job.messageOf("no") });
    try testing.expectEqual(null, jobs.next(.changes, &orders, 0));
    jobs.update(&.{});
    try testing.expectEqual(0, jobs.jobs.count);
}

test "an end is reported until it is settled, progress when it has changed" {
    var jobs: StoreJobs = .{};
    var buffer: [1024]u8 = undefined;
    jobs.update(&.{testOrder(1)});
    try testing.expect(!jobs.isDue(60_000));
    jobs.begin(uuid(1));
    try testing.expect(jobs.isDue(0));
    jobs.onReported(&.{});
    try testing.expect(!jobs.isDue(60_000));
    jobs.progress(uuid(1), 4, 10);
    try testing.expect(jobs.isDue(0));
    jobs.onReported(&.{});
    jobs.progress(uuid(1), 5, 10);
    try testing.expect(!jobs.isDue(4_999));
    try testing.expect(jobs.isDue(5_000));
    jobs.onReported(&.{});
    jobs.progress(uuid(1), 5, 10);
    try testing.expect(!jobs.isDue(5_000));
    jobs.end(uuid(1), .{ .failed = store_job.messageOf("a \"b\"") });
    try testing.expect(jobs.isDue(0));
    const id = uuid(1).toText();
    const expected = "[{\"id\":\"" ++ id ++
        "\",\"state\":\"failed\",\"progressBytes\":5,\"totalBytes\":10,\"message\":\"a \\\"b\\\"\"}]";
    try testing.expectEqualStrings(expected, try reports(&jobs, &buffer));
    // An answer that does not settle it.
    jobs.onReported(&.{uuid(7)});
    try testing.expect(jobs.isDue(5_000));
    jobs.onReported(&.{uuid(1)});
    try testing.expect(!jobs.isDue(60_000));
    try testing.expectEqualStrings("[]", try reports(&jobs, &buffer));
}

test "a blocked job is started again later, others before it, and reports why" {
    var jobs: StoreJobs = .{};
    var buffer: [1024]u8 = undefined;
    const orders = [_]Order{ testOrder(1), testOrder(2) };
    jobs.update(&orders);
    jobs.begin(uuid(1));
    jobs.onReported(&.{});
    jobs.postpone(uuid(1), 5_000, store_job.messageOf("`vdisk gc` has it"));
    try testing.expect(jobs.isDue(0));
    const id = uuid(1).toText();
    const expected = "[{\"id\":\"" ++ id ++
        "\",\"state\":\"running\",\"progressBytes\":0,\"totalBytes\":0,\"message\":\"`vdisk gc` has it\"}]";
    try testing.expectEqualStrings(expected, try reports(&jobs, &buffer));
    try testing.expectEqual(uuid(2), jobs.next(.changes, &orders, 5_000).?);
    try testing.expectEqual(uuid(1), jobs.next(.changes, &orders, 5_000 + busy_interval_ms).?);
    // The control plane has ended it meanwhile.
    jobs.onReported(&.{uuid(1)});
    jobs.update(&.{testOrder(2)});
    try testing.expectEqual(null, jobs.find(uuid(1)));
}

test "jobs that wait for a store say so until they start" {
    var jobs: StoreJobs = .{};
    var buffer: [1024]u8 = undefined;
    jobs.update(&.{testOrder(1)});
    jobs.block(store_job.messageOf("there is no store"));
    try testing.expect(jobs.isDue(0));
    const id = uuid(1).toText();
    const head = "[{\"id\":\"" ++ id ++
        "\",\"state\":\"running\",\"progressBytes\":0,\"totalBytes\":0";
    try testing.expectEqualStrings(
        head ++ ",\"isWaiting\":true,\"message\":\"there is no store\"}]",
        try reports(&jobs, &buffer),
    );
    jobs.onReported(&.{});
    jobs.block(store_job.messageOf("there is no store"));
    try testing.expect(!jobs.isDue(60_000));
    jobs.begin(uuid(1));
    try testing.expectEqualStrings(head ++ "}]", try reports(&jobs, &buffer));
}

test "a cancelled job stops, and is forgotten if it waits" {
    var jobs: StoreJobs = .{};
    jobs.update(&.{ testOrder(1), testOrder(2) });
    jobs.begin(uuid(1));
    jobs.update(&.{testOrder(1)});
    try testing.expect(jobs.isRunning(uuid(1)));
    jobs.update(&.{testOrder(3)});
    try testing.expect(!jobs.isRunning(uuid(1)));
    try testing.expectEqual(null, jobs.find(uuid(1)));
    try testing.expectEqual(uuid(3), jobs.next(.changes, &.{testOrder(3)}, 0).?);
    jobs.begin(uuid(3));
    // The control plane reports it before its state does.
    jobs.onReported(&.{uuid(3)});
    try testing.expect(!jobs.isRunning(uuid(3)));
    jobs.update(&.{testOrder(3)});
    try testing.expectEqual(null, jobs.next(.changes, &.{testOrder(3)}, 0));
}

test "jobs that read an image run beside those that change the store, one of each at a time" {
    var jobs: StoreJobs = .{};
    const orders = [_]Order{ testImport(1), testImport(2), testOrder(3), testOrder(4) };
    jobs.update(&orders);
    try testing.expectEqual(uuid(1), jobs.next(.images, &orders, 0).?);
    jobs.begin(uuid(1));
    try testing.expectEqual(null, jobs.next(.images, &orders, 0));
    try testing.expectEqual(uuid(3), jobs.next(.changes, &orders, 0).?);
    jobs.begin(uuid(3));
    try testing.expectEqual(null, jobs.next(.changes, &orders, 0));
    jobs.progress(uuid(1), 7, 9);
    try testing.expectEqual(0, jobs.find(uuid(3)).?.done_bytes);
    // The end of one is not that of the other.
    jobs.end(uuid(3), .{ .done = .{} });
    try testing.expect(jobs.isRunning(uuid(1)));
    try testing.expectEqual(uuid(4), jobs.next(.changes, &orders, 0).?);
    jobs.begin(uuid(4));
    jobs.onReported(&.{uuid(1)});
    try testing.expect(!jobs.isRunning(uuid(1)));
    try testing.expect(jobs.isRunning(uuid(4)));
    try testing.expectEqual(uuid(2), jobs.next(.images, &orders, 0).?);
}

test "ends are restored after a start, and a job that was running is started again" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const orders = [_]Order{ testOrder(1), testOrder(2), testOrder(3) };
    var jobs: StoreJobs = .{};
    jobs.update(&orders);
    jobs.begin(uuid(1));
    const made =
        "{\"versionId\":\"11111111-1111-4111-8111-111111111111\",\"root\":\"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\",\"counter\":3,\"sizeBytes\":4096,\"note\":\"Büro\"}";
    jobs.end(uuid(1), .{ .done = .{ .made = try store_job.parseMade(made) } });
    const not_a_line = made[0 .. made.len - 2] ++ "\\n\"}";
    try testing.expectError(error.Malformed, store_job.parseMade(not_a_line));
    jobs.begin(uuid(2));
    try testing.expect(jobs.is_end_changed);
    var buffer: [2048]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try jobs.writeReports(&writer, .over);
    var again: StoreJobs = .{};
    try again.restore(arena.allocator(), writer.buffered());
    again.update(&orders);
    try testing.expectEqual(uuid(2), again.next(.changes, &orders, 0).?);
    try testing.expectEqualStrings(made, again.find(uuid(1)).?.made.constSlice());
    try testing.expect(again.isDue(progress_interval_ms));
    for ([_][]const u8{ "", "{}", "[{}]", "[{\"id\":\"x\"}]" }) |text| {
        var empty: StoreJobs = .{};
        try testing.expectError(error.Malformed, empty.restore(arena.allocator(), text));
    }
}

test "the difference that a job has packed is reported, also after a start" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var jobs: StoreJobs = .{};
    const orders = [_]Order{.{ .id = uuid(1), .kind = "pack" }};
    jobs.update(&orders);
    jobs.begin(uuid(1));
    const done: difference_order.Packed = .{ .size = 9, .list_sha256 = @splat(0xab) };
    jobs.end(uuid(1), .{ .done = .{ .packed_difference = done } });
    var buffer: [2048]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try jobs.writeReports(&writer, .over);
    const digits = comptime std.fmt.bytesToHex(@as([32]u8, @splat(0xab)), .lower);
    const expected = ",\"packed\":{\"sizeBytes\":9,\"listSha256\":\"" ++ digits ++ "\"}}]";
    try testing.expect(std.mem.endsWith(u8, writer.buffered(), expected));
    var again: StoreJobs = .{};
    try again.restore(arena.allocator(), writer.buffered());
    try testing.expectEqual(done, again.find(uuid(1)).?.packed_difference.?);
}

test "a full list of jobs is accepted while others are over" {
    var jobs: StoreJobs = .{};
    var first: [StoreJobs.jobs_max]Order = undefined;
    var second: [StoreJobs.jobs_max]Order = undefined;
    for (&first, &second, 1..) |*one, *other, number| {
        one.* = testOrder(@intCast(number));
        other.* = testOrder(@intCast(number + 100));
    }
    jobs.update(&first);
    for (&first) |*one| jobs.end(one.id, .{ .done = .{} });
    jobs.update(&second);
    try testing.expectEqual(StoreJobs.jobs_max, jobs.jobs.count);
    try testing.expectEqual(second[0].id, jobs.next(.changes, &second, 0).?);
}
