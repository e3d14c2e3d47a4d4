//! Runs the agent's `ProfileWorker` in a thread with the lowest priority, and in its pauses reads
//! ahead into this machine's memory what the next boots will need. Invariant: the packet loop never
//! waits for the thread; the lock is held only for copies.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const Warmer = @import("profile_warmer.zig");
const log_lines = @import("../log.zig");
const sys = @import("../sys.zig");
const Io = std.Io;

const Event = agent.profiles.Event;
const Job = agent.profiles.Job;
const Worker = agent.ProfileWorker(ProfileThread);

const jobs_max = 128;
/// The thread begins no job whose events may not fit: it waits for the loop to take some.
const events_max = 2 * agent.profile_worker.events_of_job_max;

pub const ProfileThread = @This();

gpa: std.mem.Allocator,
io: Io,
/// The store's directory.
on: store.LinuxFiles,
worker: *Worker,
warmer: Warmer = .{},
/// Protects the fields below.
mutex: Io.Mutex = .init,
condition: Io.Condition = .init,
jobs: [jobs_max]Job = undefined,
jobs_first: u16 = 0,
jobs_count: u16 = 0,
events: [events_max]Event = undefined,
events_first: u16 = 0,
events_count: u16 = 0,
inventory: core.profile.Inventory = .{},
/// Grows with each change of `inventory`.
changes: u64 = 0,
/// Bytes read into this machine's memory ahead of boots.
warmed_bytes: u64 = 0,

pub fn create(gpa: std.mem.Allocator, io: Io, dir_fd: i32) error{OutOfMemory}!*ProfileThread {
    const thread = try gpa.create(ProfileThread);
    errdefer gpa.destroy(thread);
    thread.* = .{ .gpa = gpa, .io = io, .on = .fromFd(dir_fd), .worker = try gpa.create(Worker) };
    thread.worker.* = .{ .world = thread, .gpa = gpa };
    return thread;
}

/// Runs the thread until the process ends.
pub fn start(thread: *ProfileThread) std.Thread.SpawnError!void {
    const spawned = try std.Thread.spawn(.{ .stack_size = 1 << 20 }, runAll, .{thread});
    spawned.detach();
}

/// For a thread that was never started.
pub fn destroy(thread: *ProfileThread) void {
    while (thread.takeEvent()) |event| switch (event) {
        .published => |published| thread.gpa.free(published.document),
        .merged, .looked => {},
    };
    thread.warmer.deinit();
    thread.gpa.destroy(thread.worker);
    thread.gpa.destroy(thread);
}

/// Runs all jobs in the calling thread, if none was started.
pub fn doAll(thread: *ProfileThread) void {
    while (thread.jobs_count > 0 or !thread.warmer.isIdle()) thread.turn(false);
}

/// Returns false if the thread has enough to do.
pub fn give(thread: *ProfileThread, job: Job) bool {
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    if (thread.jobs_count == jobs_max) return false;
    thread.jobs[(thread.jobs_first + thread.jobs_count) % jobs_max] = job;
    thread.jobs_count += 1;
    thread.condition.signal(thread.io);
    return true;
}

pub fn takeEvent(thread: *ProfileThread) ?Event {
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    if (thread.events_count == 0) return null;
    const event = thread.events[thread.events_first];
    thread.events_first = (thread.events_first + 1) % events_max;
    thread.events_count -= 1;
    // It may have waited for room.
    if (thread.hasRoom()) thread.condition.signal(thread.io);
    return event;
}

/// Returns the inventory to a caller that knows the one of `changes`; null if it has not changed.
pub fn inventoryAfter(thread: *ProfileThread, changes: u64, into: *core.profile.Inventory) ?u64 {
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    if (thread.changes == changes) return null;
    into.* = thread.inventory;
    return thread.changes;
}

pub fn warmedBytes(thread: *ProfileThread) u64 {
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    return thread.warmed_bytes;
}

fn runAll(thread: *ProfileThread) void {
    Warmer.lowerPriority();
    while (true) thread.turn(thread.warmer.isIdle());
}

/// Runs one job, or warms one piece.
fn turn(thread: *ProfileThread, waits: bool) void {
    if (thread.takeJob(waits)) |job| return thread.worker.run(job);
    if (thread.warmer.isIdle()) return;
    const bytes = thread.warmer.step(&thread.worker.profile, &thread.worker.buffer);
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    thread.warmed_bytes += bytes;
}

fn takeJob(thread: *ProfileThread, waits: bool) ?Job {
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    while (thread.jobs_count == 0 or !thread.hasRoom()) {
        if (!waits) return null;
        thread.condition.waitUncancelable(thread.io, &thread.mutex);
    }
    defer {
        thread.jobs_first = (thread.jobs_first + 1) % jobs_max;
        thread.jobs_count -= 1;
    }
    return thread.jobs[thread.jobs_first];
}

/// The lock is held.
fn hasRoom(thread: *const ProfileThread) bool {
    return thread.events_count + agent.profile_worker.events_of_job_max <= events_max;
}

// What `ProfileWorker` requires of its world.

pub fn files(thread: *ProfileThread) store.Files {
    return thread.on.files();
}

pub fn unixMs(_: *ProfileThread) u64 {
    return sys.unixMs();
}

pub fn log(_: *ProfileThread, comptime format: []const u8, arguments: anytype) void {
    log_lines.info(format, arguments);
}

pub fn send(thread: *ProfileThread, event: Event) void {
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    thread.events[(thread.events_first + thread.events_count) % events_max] = event;
    thread.events_count += 1;
    std.debug.assert(thread.events_count <= events_max);
}

pub fn openStore(thread: *ProfileThread) ?store.Store {
    return Warmer.openStore(thread.gpa, thread.on.files());
}

pub fn closeStore(thread: *ProfileThread, opened: *store.Store) void {
    opened.close(thread.gpa);
}

pub fn warm(thread: *ProfileThread, version_id: base.Uuid) void {
    thread.warmer.begin(thread.gpa, thread.on.files(), version_id, .opened);
}

pub fn onLearned(thread: *ProfileThread, version_id: base.Uuid) void {
    thread.warmer.begin(thread.gpa, thread.on.files(), version_id, .learned);
}

pub fn onInventory(thread: *ProfileThread, inventory: *const core.profile.Inventory) void {
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    thread.inventory = inventory.*;
    thread.changes += 1;
}
