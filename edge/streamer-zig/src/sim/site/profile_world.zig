//! The world of a simulated edge's `ProfileWorker`: its jobs take time, its files are on the edge's
//! disk, and a crash loses what it had to do.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const Disk = @import("disk.zig");
const Fabric = @import("network.zig").Network;
const LogFiles = @import("log_files.zig");
const SimFiles = @import("../kit/sim_files.zig");
const assert = std.debug.assert;

const Event = agent.profiles.Event;
const Job = agent.profiles.Job;

pub const ProfileWorld = @This();

const jobs_max = 4;

gpa: std.mem.Allocator,
fabric: *Fabric,
/// The edge's index in the site.
edge: u8,
on: *SimFiles,
disk: *Disk,
worker: *agent.ProfileWorker(ProfileWorld),
jobs: base.BoundedArray(Job, jobs_max) = .empty,
events: base.BoundedArray(Event, agent.profile_worker.events_of_job_max) = .empty,

pub fn deinit(world: *ProfileWorld) void {
    for (world.events.constSlice()) |event| switch (event) {
        .published => |published| world.gpa.free(published.document),
        .merged, .looked => {},
    };
    world.gpa.destroy(world.worker);
    world.* = undefined;
}

/// Returns false if the worker has enough to do.
pub fn give(world: *ProfileWorld, job: Job) bool {
    world.jobs.append(job) catch return false;
    if (world.jobs.count == 1) world.planNext();
    return true;
}

fn planNext(world: *ProfileWorld) void {
    world.fabric.plan(world.fabric.now_us + world.disk.latencyUs(), .{ .profile_job = world.edge });
}

/// The time of the next job has come; it waits until the agent has taken what the last one did.
pub fn runJob(world: *ProfileWorld) void {
    if (world.jobs.count == 0) return;
    if (world.events.count > 0) return world.planNext();
    const job = world.jobs.buffer[0];
    world.jobs.count -= 1;
    std.mem.copyForwards(
        Job,
        world.jobs.buffer[0..world.jobs.count],
        world.jobs.buffer[1..][0..world.jobs.count],
    );
    world.worker.run(job);
    if (world.jobs.count > 0) world.planNext();
}

pub fn takeEvent(world: *ProfileWorld) ?Event {
    if (world.events.count == 0) return null;
    const event = world.events.buffer[0];
    world.events.count -= 1;
    std.mem.copyForwards(
        Event,
        world.events.buffer[0..world.events.count],
        world.events.buffer[1..][0..world.events.count],
    );
    return event;
}

// What `ProfileWorker` requires of its world.

pub fn files(world: *ProfileWorld) store.Files {
    return world.on.files();
}

pub fn unixMs(world: *ProfileWorld) u64 {
    return LogFiles.unix_ms_at_0 + world.fabric.now_us / std.time.us_per_ms;
}

pub fn log(_: *ProfileWorld, comptime _: []const u8, _: anytype) void {}

pub fn send(world: *ProfileWorld, event: Event) void {
    world.events.appendAssumeCapacity(event);
}

/// The simulated versions are in no store: nothing is carried from one to another.
pub fn openStore(_: *ProfileWorld) ?store.Store {
    return null;
}

pub fn closeStore(_: *ProfileWorld, _: *store.Store) void {}

pub fn warm(_: *ProfileWorld, _: base.Uuid) void {}
pub fn onLearned(_: *ProfileWorld, _: base.Uuid) void {}

pub fn onInventory(_: *ProfileWorld, inventory: *const core.profile.Inventory) void {
    assert(inventory.count <= core.profile.Inventory.profiles_max);
}
