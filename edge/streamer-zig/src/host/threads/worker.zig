//! A thread that does in order what the packet loop may not wait for: whatever writes, syncs or
//! replaces a file, or writes to a pipe that nobody may be reading. The loop gives it jobs with a
//! copy of their bytes and never waits: a worker that is full refuses a job, and the caller decides
//! what becomes of it. The lock is held only to copy a job in and to swap two buffers.

const std = @import("std");
const Io = std.Io;
const assert = std.debug.assert;

pub const Worker = @This();

io: Io,
/// Protects the fields below.
mutex: Io.Mutex = .init,
/// There are jobs, or the thread is to end.
given: Io.Condition = .init,
/// No job is left.
idle: Io.Condition = .init,
/// Jobs are added to the first one while the thread works through the second.
buffers: [2][]align(header_align) u8,
size: usize = 0,
is_busy: bool = false,
is_ending: bool = false,
/// Turns so far.
turns: u64 = 0,
thread: ?std.Thread = null,

/// What a job does. `run` gets all jobs of one context that were given one behind the other, so
/// that it can write them together; it takes every one of them.
pub const Task = struct {
    context: *anyopaque,
    run: *const fn (context: *anyopaque, jobs: *Jobs) void,
};

const Header = struct { task: Task, size: usize };
const header_align = @alignOf(Header);

pub fn init(io: Io, size_max: usize) error{OutOfMemory}!Worker {
    assert(size_max % header_align == 0);
    var worker: Worker = .{ .io = io, .buffers = undefined };
    worker.buffers[0] = try map(size_max);
    errdefer std.posix.munmap(@alignCast(worker.buffers[0]));
    worker.buffers[1] = try map(size_max);
    return worker;
}

/// Pages that are never used take no memory; an allocator would touch them all.
fn map(size: usize) error{OutOfMemory}![]align(std.heap.page_size_min) u8 {
    return std.posix.mmap(null, size, .{
        .READ = true,
        .WRITE = true,
    }, .{ .TYPE = .PRIVATE, .ANONYMOUS = true }, -1, 0) catch error.OutOfMemory;
}

/// Does what is left, and ends the thread.
pub fn deinit(worker: *Worker) void {
    worker.finish();
    if (worker.thread) |thread| {
        worker.mutex.lockUncancelable(worker.io);
        worker.is_ending = true;
        worker.given.signal(worker.io);
        worker.mutex.unlock(worker.io);
        thread.join();
    }
    for (worker.buffers) |buffer| std.posix.munmap(@alignCast(buffer));
    worker.* = undefined;
}

/// The worker must not move afterwards. Until then, jobs wait for `finish`.
pub fn start(worker: *Worker) std.Thread.SpawnError!void {
    worker.thread = try std.Thread.spawn(.{ .stack_size = 512 << 10 }, runAll, .{worker});
}

/// Copies the parts of a job, one behind the other; returns false if the worker is full. `reserve`:
/// so many bytes stay free for jobs that matter more.
pub fn give(worker: *Worker, task: Task, parts: []const []const u8, reserve: usize) bool {
    var bytes: usize = 0;
    for (parts) |part| bytes += part.len;
    const total = @sizeOf(Header) + std.mem.alignForward(usize, bytes, header_align);
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    const buffer = worker.buffers[0];
    if (worker.size + total + reserve > buffer.len) return false;
    var at = worker.size;
    @memcpy(
        buffer[at..][0..@sizeOf(Header)],
        std.mem.asBytes(&Header{ .task = task, .size = bytes }),
    );
    at += @sizeOf(Header);
    for (parts) |part| {
        @memcpy(buffer[at..][0..part.len], part);
        at += part.len;
    }
    worker.size += total;
    assert(worker.size <= buffer.len);
    worker.given.signal(worker.io);
    return true;
}

/// Returns once everything that was given is done: at the end of a program, and in tests.
pub fn finish(worker: *Worker) void {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    while (worker.size > 0 or worker.is_busy) {
        if (worker.thread == null) worker.turn() else worker.idle.waitUncancelable(
            worker.io,
            &worker.mutex,
        );
    }
}

/// Returns the number of the turn that the thread is in; null: it waits for jobs.
pub fn busyTurn(worker: *Worker) ?u64 {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    return if (worker.is_busy) worker.turns else null;
}

fn runAll(worker: *Worker) void {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    while (true) {
        while (worker.size == 0) {
            if (worker.is_ending) return;
            worker.given.waitUncancelable(worker.io, &worker.mutex);
        }
        worker.turn();
    }
}

/// Does everything that has been given so far. The lock is held before and after.
fn turn(worker: *Worker) void {
    assert(!worker.is_busy);
    std.mem.swap([]align(header_align) u8, &worker.buffers[0], &worker.buffers[1]);
    var jobs: Jobs = .{ .rest = worker.buffers[1][0..worker.size] };
    worker.size = 0;
    worker.is_busy = true;
    worker.turns += 1;
    worker.mutex.unlock(worker.io);
    while (jobs.rest.len > 0) {
        const task = jobs.header().task;
        jobs.task = task;
        task.run(task.context, &jobs);
    }
    worker.mutex.lockUncancelable(worker.io);
    worker.is_busy = false;
    if (worker.size == 0) worker.idle.broadcast(worker.io);
}

/// Jobs of one context. A copy goes through them once more.
pub const Jobs = struct {
    rest: []align(header_align) const u8,
    task: Task = undefined,

    /// Returns the bytes of the next job; null if the next one is another context's.
    pub fn next(jobs: *Jobs) ?[]const u8 {
        if (jobs.rest.len == 0) return null;
        const found = jobs.header();
        if (found.task.context != jobs.task.context) return null;
        const bytes = jobs.rest[@sizeOf(Header)..][0..found.size];
        const total = @sizeOf(Header) + std.mem.alignForward(usize, found.size, header_align);
        jobs.rest = @alignCast(jobs.rest[total..]);
        return bytes;
    }

    fn header(jobs: *const Jobs) Header {
        return std.mem.bytesToValue(Header, jobs.rest[0..@sizeOf(Header)]);
    }
};

const testing = std.testing;

const Record = struct {
    numbers: [16]u8 = undefined,
    count: usize = 0,
    calls: usize = 0,

    fn task(record: *Record) Task {
        return .{ .context = record, .run = run };
    }

    fn run(context: *anyopaque, jobs: *Jobs) void {
        const record: *Record = @ptrCast(@alignCast(context));
        record.calls += 1;
        while (jobs.next()) |bytes| for (bytes) |byte| {
            record.numbers[record.count] = byte;
            record.count += 1;
        };
    }
};

test "jobs are done in order, and those of one context in one call" {
    var worker: Worker = try .init(testing.io, 4096);
    defer worker.deinit();
    var one: Record = .{};
    var other: Record = .{};
    try testing.expect(worker.give(one.task(), &.{ "\x01", "\x02\x03" }, 0));
    try testing.expect(worker.give(one.task(), &.{"\x04"}, 0));
    try testing.expect(worker.give(other.task(), &.{"\x07"}, 0));
    try testing.expect(worker.give(one.task(), &.{"\x05"}, 0));
    worker.finish();
    try testing.expectEqualSlices(u8, &.{ 1, 2, 3, 4, 5 }, one.numbers[0..one.count]);
    try testing.expectEqual(2, one.calls);
    try testing.expectEqual(1, other.calls);
}

test "a full worker refuses a job, and one that matters more finds the reserve" {
    var worker: Worker = try .init(testing.io, 4096);
    defer worker.deinit();
    var record: Record = .{};
    var count: usize = 0;
    while (worker.give(record.task(), &.{"\x01"}, 4096 - 10 * 32)) count += 1;
    try testing.expect(count > 0);
    try testing.expect(count < 16);
    try testing.expect(worker.give(record.task(), &.{"\x02"}, 0));
    worker.finish();
    try testing.expectEqual(count + 1, record.count);
    try testing.expect(worker.give(record.task(), &.{"\x03"}, 4096 - 10 * 32));
}

test "a thread does what is given while it works, and ends when it is done" {
    var worker: Worker = try .init(testing.io, 4096);
    var record: Record = .{};
    try worker.start();
    for (1..9) |number| {
        const byte: [1]u8 = .{@intCast(number)};
        while (!worker.give(record.task(), &.{&byte}, 0)) worker.finish();
    }
    worker.deinit();
    const numbers = record.numbers[0..record.count];
    try testing.expectEqualSlices(u8, &.{ 1, 2, 3, 4, 5, 6, 7, 8 }, numbers);
}
