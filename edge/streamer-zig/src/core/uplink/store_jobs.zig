//! The jobs that the control plane has for this edge's store: which run, one of each queue at most, how far they are, what became of those
//! that are over, and what of that it has not been told yet. Pure. A job that is over stays until the desired state names it no more, so that none is
//! done twice and no end is lost; whoever keeps this on disk asks `isEndChanged`.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const store_job = @import("store_job.zig");
const assert = std.debug.assert;

const Queue = store_job.Queue;
const Order = desired_state.StoreJob;

/// While one runs and comes further.
pub const progress_interval_ms = 5_000;

/// Until a job is begun again that another process kept waiting.
pub const busy_interval_ms = 3_000;

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
    is_ordered: bool = true,
    /// The control plane keeps its end.
    is_settled: bool = false,
    /// Something is to be said of it.
    is_news: bool = false,
    /// Another process had what it needs.
    not_before_ms: u64 = 0,

    fn isOver(job: *const Job) bool {
        return job.stage == .done or job.stage == .failed;
    }
};

pub const StoreJobs = struct {
    jobs: base.BoundedArray(Job, jobs_max) = .empty,
    /// What has ended is not on disk as it is here.
    is_end_changed: bool = false,
    /// A job has begun, come somewhere or ended since the last message.
    is_urgent: bool = false,

    pub const jobs_max = desired_state.store_jobs_max;
    /// Others come with the next message.
    const told_max = 32;
    /// Of a report: less than 512 bytes around its message and what it made.
    const report_size_max = 512 + 2 * store_job.message_size_max + store_job.made_size_max;
    pub const untold_size_max = told_max * report_size_max;
    pub const over_size_max = jobs_max * report_size_max;

    /// What the desired state orders now. One that is gone from it is forgotten, also where it runs.
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
        jobs.jobs.count = kept;
        for (orders) |*order| if (jobs.find(order.id) == null)
            jobs.jobs.append(.{ .id = order.id, .queue = store_job.queueOf(order) }) catch break;
    }

    /// What is to be begun in this queue, in the order of the control plane; null: nothing, or one runs in it.
    pub fn next(jobs: *StoreJobs, queue: Queue, orders: []const Order, now_ms: u64) ?base.Uuid {
        if (jobs.running(queue) != null) return null;
        for (orders) |*order| if (jobs.find(order.id)) |job|
            if (job.queue == queue and job.stage == .waiting and now_ms >= job.not_before_ms) return job.id;
        return null;
    }

    /// One that runs is begun again later; `why`: who has what it needs.
    pub fn postpone(jobs: *StoreJobs, id: base.Uuid, now_ms: u64, why: store_job.Message) void {
        const job = jobs.find(id) orelse return;
        assert(job.stage == .running);
        job.stage = .waiting;
        job.not_before_ms = now_ms + busy_interval_ms;
        if (std.mem.eql(u8, job.message.constSlice(), why.constSlice())) return;
        job.message = why;
        job.is_news = true;
        jobs.is_urgent = true;
    }

    pub fn begin(jobs: *StoreJobs, id: base.Uuid) void {
        const job = jobs.find(id).?;
        assert(job.stage == .waiting);
        assert(jobs.running(job.queue) == null);
        job.stage = .running;
        // What it waited for is said until it comes further.
        if (job.not_before_ms > 0) return;
        job.is_news = true;
        jobs.is_urgent = true;
    }

    /// Of one that runs.
    pub fn progress(jobs: *StoreJobs, id: base.Uuid, done_bytes: u64, total_bytes: u64) void {
        const job = jobs.find(id) orelse return;
        assert(job.stage == .running);
        job.is_news = job.is_news or done_bytes != job.done_bytes or total_bytes != job.total_bytes;
        if (job.done_bytes == 0 and done_bytes > 0) jobs.is_urgent = true;
        job.done_bytes = done_bytes;
        job.total_bytes = total_bytes;
        job.message = .empty;
    }

    pub const End = union(enum) { done: store_job.Made, failed: store_job.Message };

    /// Of one that runs, or that could not be begun.
    pub fn end(jobs: *StoreJobs, id: base.Uuid, how: End) void {
        const job = jobs.find(id) orelse return;
        assert(!job.isOver());
        switch (how) {
            .done => |made| {
                job.stage = .done;
                job.made = made;
                job.message = .empty;
            },
            .failed => |message| {
                job.stage = .failed;
                job.message = message;
            },
        }
        job.is_news = true;
        jobs.is_end_changed = true;
        jobs.is_urgent = true;
    }

    pub fn running(jobs: *StoreJobs, queue: Queue) ?*Job {
        for (jobs.jobs.slice()) |*job| if (job.stage == .running and job.queue == queue) return job;
        return null;
    }

    /// Whether somebody still waits for what a process does.
    pub fn isRunning(jobs: *StoreJobs, id: base.Uuid) bool {
        const job = jobs.find(id) orelse return false;
        return job.stage == .running;
    }

    pub fn find(jobs: *StoreJobs, id: base.Uuid) ?*Job {
        for (jobs.jobs.slice()) |*job| if (job.id.eql(id)) return job;
        return null;
    }

    /// Whether a message is due, by the time since the last one.
    pub fn isDue(jobs: *const StoreJobs, since_ms: u64) bool {
        if (jobs.is_urgent) return true;
        if (since_ms < progress_interval_ms) return false;
        for (jobs.jobs.constSlice()) |*job| if (isTold(job)) return true;
        return false;
    }

    /// What is to be said again until it is settled, and what is new.
    fn isTold(job: *const Job) bool {
        return switch (job.stage) {
            .waiting, .running => job.is_news,
            .done, .failed => !job.is_settled,
        };
    }

    const Which = enum { untold, over };

    /// A JSON array of `storeJobReport`.
    pub fn writeReports(jobs: *const StoreJobs, writer: *std.Io.Writer, which: Which) std.Io.Writer.Error!void {
        try writer.writeByte('[');
        var count: u32 = 0;
        for (jobs.jobs.constSlice()) |*job| {
            const is_wanted = switch (which) {
                .untold => isTold(job),
                .over => job.isOver(),
            };
            if (!is_wanted) continue;
            if (which == .untold and count == told_max) break;
            if (count > 0) try writer.writeByte(',');
            count += 1;
            // One that waits and has something to say was begun before.
            const state: Stage = if (job.stage == .waiting) .running else job.stage;
            try writer.print("{{\"id\":\"{f}\",\"state\":\"{t}\",\"progressBytes\":{d},\"totalBytes\":{d}", .{
                job.id, state, job.done_bytes, job.total_bytes,
            });
            if (job.message.count > 0) try writer.print(",\"message\":{f}", .{std.json.fmt(job.message.constSlice(), .{})});
            if (job.made.count > 0) try writer.print(",\"made\":{s}", .{job.made.constSlice()});
            try writer.writeByte('}');
        }
        try writer.writeByte(']');
    }

    /// The message with `writeReports` has been taken; `settled`: what the control plane need not hear again. One of these that runs is
    /// abandoned: the control plane does not know it, or knows its end.
    pub fn told(jobs: *StoreJobs, settled: []const base.Uuid) void {
        jobs.is_urgent = false;
        for (jobs.jobs.slice()) |*job| job.is_news = false;
        for (settled) |id| {
            const job = jobs.find(id) orelse continue;
            if (job.isOver()) job.is_settled = true;
            if (job.stage == .running) jobs.abandon(job);
        }
    }

    /// Nobody works for it any more; the order stands, unless it is gone.
    fn abandon(jobs: *StoreJobs, job: *Job) void {
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

    const Kept = struct {
        id: base.Uuid,
        state: enum { done, failed },
        progressBytes: u64,
        totalBytes: u64,
        message: []const u8 = "",
        made: ?std.json.Value = null,
    };

    /// What `writeReports(.over)` wrote before the last end of the edge. What cannot be read is done again, which is harmless.
    pub fn restore(jobs: *StoreJobs, arena: std.mem.Allocator, text: []const u8) error{Malformed}!void {
        const kept = std.json.parseFromSliceLeaky([]const Kept, arena, text, .{ .ignore_unknown_fields = true }) catch
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
            jobs.jobs.appendAssumeCapacity(job);
        }
    }
};

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
    try jobs.writeReports(&writer, .untold);
    return writer.buffered();
}

test "jobs are done one after another in their order, and each once" {
    var jobs: StoreJobs = .{};
    const orders = [_]Order{ testOrder(2), testOrder(1) };
    jobs.update(&orders);
    try testing.expectEqual(uuid(2), jobs.next(.changes, &orders, 0).?);
    jobs.begin(uuid(2));
    try testing.expectEqual(null, jobs.next(.changes, &orders, 0));
    jobs.end(uuid(2), .{ .done = .empty });
    // The state names it until the control plane knows its end.
    jobs.update(&orders);
    try testing.expectEqual(uuid(1), jobs.next(.changes, &orders, 0).?);
    jobs.end(uuid(1), .{ .failed = store_job.messageOf("no") });
    try testing.expectEqual(null, jobs.next(.changes, &orders, 0));
    jobs.update(&.{});
    try testing.expectEqual(0, jobs.jobs.count);
}

test "an end is said until it is settled, progress when it has moved" {
    var jobs: StoreJobs = .{};
    var buffer: [1024]u8 = undefined;
    jobs.update(&.{testOrder(1)});
    try testing.expect(!jobs.isDue(60_000));
    jobs.begin(uuid(1));
    try testing.expect(jobs.isDue(0));
    jobs.told(&.{});
    try testing.expect(!jobs.isDue(60_000));
    jobs.progress(uuid(1), 4, 10);
    try testing.expect(jobs.isDue(0));
    jobs.told(&.{});
    jobs.progress(uuid(1), 5, 10);
    try testing.expect(!jobs.isDue(4_999));
    try testing.expect(jobs.isDue(5_000));
    jobs.told(&.{});
    jobs.progress(uuid(1), 5, 10);
    try testing.expect(!jobs.isDue(5_000));
    jobs.end(uuid(1), .{ .failed = store_job.messageOf("a \"b\"") });
    try testing.expect(jobs.isDue(0));
    const id = uuid(1).toText();
    const expected = "[{\"id\":\"" ++ id ++ "\",\"state\":\"failed\",\"progressBytes\":5,\"totalBytes\":10,\"message\":\"a \\\"b\\\"\"}]";
    try testing.expectEqualStrings(expected, try reports(&jobs, &buffer));
    // An answer that does not settle it.
    jobs.told(&.{uuid(7)});
    try testing.expect(jobs.isDue(5_000));
    jobs.told(&.{uuid(1)});
    try testing.expect(!jobs.isDue(60_000));
    try testing.expectEqualStrings("[]", try reports(&jobs, &buffer));
}

test "a job that another process keeps waiting is begun again later, others before it, and says why" {
    var jobs: StoreJobs = .{};
    var buffer: [1024]u8 = undefined;
    const orders = [_]Order{ testOrder(1), testOrder(2) };
    jobs.update(&orders);
    jobs.begin(uuid(1));
    jobs.told(&.{});
    jobs.postpone(uuid(1), 5_000, store_job.messageOf("`vdisk gc` has it"));
    try testing.expect(jobs.isDue(0));
    const id = uuid(1).toText();
    const expected = "[{\"id\":\"" ++ id ++ "\",\"state\":\"running\",\"progressBytes\":0,\"totalBytes\":0,\"message\":\"`vdisk gc` has it\"}]";
    try testing.expectEqualStrings(expected, try reports(&jobs, &buffer));
    try testing.expectEqual(uuid(2), jobs.next(.changes, &orders, 5_000).?);
    try testing.expectEqual(uuid(1), jobs.next(.changes, &orders, 5_000 + busy_interval_ms).?);
    // The control plane has ended it meanwhile.
    jobs.told(&.{uuid(1)});
    jobs.update(&.{testOrder(2)});
    try testing.expectEqual(null, jobs.find(uuid(1)));
}

test "a job that is taken back runs no more, and is forgotten where it waits" {
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
    // The control plane says so before its state does.
    jobs.told(&.{uuid(3)});
    try testing.expect(!jobs.isRunning(uuid(3)));
    jobs.update(&.{testOrder(3)});
    try testing.expectEqual(null, jobs.next(.changes, &.{testOrder(3)}, 0));
}

test "what reads an image runs beside what changes the store, and one of each at a time" {
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
    jobs.end(uuid(3), .{ .done = .empty });
    try testing.expect(jobs.isRunning(uuid(1)));
    try testing.expectEqual(uuid(4), jobs.next(.changes, &orders, 0).?);
    jobs.begin(uuid(4));
    jobs.told(&.{uuid(1)});
    try testing.expect(!jobs.isRunning(uuid(1)));
    try testing.expect(jobs.isRunning(uuid(4)));
    try testing.expectEqual(uuid(2), jobs.next(.images, &orders, 0).?);
}

test "ends are found again after a start, and what ran is begun again" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const orders = [_]Order{ testOrder(1), testOrder(2), testOrder(3) };
    var jobs: StoreJobs = .{};
    jobs.update(&orders);
    jobs.begin(uuid(1));
    const made = "{\"versionId\":\"11111111-1111-4111-8111-111111111111\",\"root\":\"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\",\"counter\":3,\"sizeBytes\":4096}";
    jobs.end(uuid(1), .{ .done = try store_job.parseMade(made) });
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

test "a state with as many jobs as one may have is taken while others are over" {
    var jobs: StoreJobs = .{};
    var first: [StoreJobs.jobs_max]Order = undefined;
    var second: [StoreJobs.jobs_max]Order = undefined;
    for (&first, &second, 1..) |*one, *other, number| {
        one.* = testOrder(@intCast(number));
        other.* = testOrder(@intCast(number + 100));
    }
    jobs.update(&first);
    for (&first) |*one| jobs.end(one.id, .{ .done = .empty });
    jobs.update(&second);
    try testing.expectEqual(StoreJobs.jobs_max, jobs.jobs.count);
    try testing.expectEqual(second[0].id, jobs.next(.changes, &second, 0).?);
}
