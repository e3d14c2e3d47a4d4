//! Repairs what reads of devices find damaged: a thread that asks other edges of the site for the
//! right bytes (core/difference/repair_plan.zig says whom), writes them in their places
//! (store/repair.zig), and reads again. The device sees a slow read. A read waits for a few seconds
//! at most, and only a few reads wait: whatever else fails is answered with an error at once, and
//! the device asks again.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").peer_transfer;
const sys = @import("../sys.zig");
const log = @import("../log.zig");
const health = @import("../health.zig");
const PeerSource = @import("../difference/peer_source.zig");
const ReadWorkers = @import("../stream/read_workers.zig");
const SitePeers = @import("../difference/site_peers.zig");
const HeldDisk = @import("../stream/version_disk.zig").HeldDisk;
const assert = std.debug.assert;
const RepairPlan = core.difference.RepairPlan;
const Task = ReadWorkers.Task;

pub const Repairer = @This();

/// Reads of all shards that wait for a repair; fewer than the tasks of one shard, so that its
/// other reads are served.
const waiting_max = 4;
const cache_nodes = 64;
const cache_units = 8;
/// Another edge is near; one that is slower than this is no help for a read.
const limits: PeerSource.Limits = .{ .greeting_ms = 1_000, .record_ms = 2_000 };
const stack_size = 1 << 20;
/// Versions of which repairs are counted.
const counts_max = core.uplink.message.repairs_max;

gpa: std.mem.Allocator,
io: std.Io,
peers: *SitePeers,
/// Protects the fields up to `thread`.
mutex: std.Io.Mutex = .init,
given: std.Io.Condition = .init,
waiting: base.BoundedArray(Waiting, waiting_max) = .empty,
/// The thread has one of them.
is_busy: bool = false,
is_ending: bool = false,
counts: base.BoundedArray(Count, counts_max) = .empty,
thread: ?std.Thread = null,
reader: ReadWorkers.Reader,
source: PeerSource,
plan: RepairPlan = .{},
generation: u64 = 0,
said: std.EnumSet(RepairPlan.Refusal) = .empty,

const Waiting = struct { workers: *ReadWorkers, task: *Task };

/// What was repaired of a version since the start of the edge.
pub const Count = struct {
    version_id: base.Uuid,
    repaired: u64 = 0,
    /// Places that no edge could repair.
    failed: u64 = 0,
    last_unix_ms: u64 = 0,
};

pub fn create(
    gpa: std.mem.Allocator,
    io: std.Io,
    peers: *SitePeers,
) error{OutOfMemory}!*Repairer {
    const repairer = try gpa.create(Repairer);
    errdefer gpa.destroy(repairer);
    repairer.* = .{
        .gpa = gpa,
        .io = io,
        .peers = peers,
        .reader = try .init(gpa, cache_nodes, cache_units),
        .source = .{ .peers = peers, .limits = limits },
    };
    return repairer;
}

/// Runs until `destroy`, or until the process ends.
pub fn start(repairer: *Repairer) std.Thread.SpawnError!void {
    repairer.thread = try std.Thread.spawn(.{ .stack_size = stack_size }, runAll, .{repairer});
}

/// Reads that wait go back unrepaired; their `ReadWorkers` still exist.
pub fn destroy(repairer: *Repairer) void {
    repairer.mutex.lockUncancelable(repairer.io);
    repairer.is_ending = true;
    repairer.given.signal(repairer.io);
    repairer.mutex.unlock(repairer.io);
    if (repairer.thread) |thread| thread.join();
    for (repairer.waiting.constSlice()) |waiting| waiting.workers.end(waiting.task);
    repairer.source.deinit();
    repairer.reader.deinit(repairer.gpa);
    repairer.gpa.destroy(repairer);
}

pub fn repairs(repairer: *Repairer) ReadWorkers.Repairs {
    return .{ .context = repairer, .take = take };
}

/// Called by the threads that read.
fn take(context: *anyopaque, workers: *ReadWorkers, task: *Task) bool {
    const repairer: *Repairer = @ptrCast(@alignCast(context));
    if (task.disk == .file) return false;
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    const is_full = repairer.waiting.count + @intFromBool(repairer.is_busy) >= waiting_max;
    if (repairer.is_ending or is_full) return false;
    repairer.waiting.appendAssumeCapacity(.{ .workers = workers, .task = task });
    repairer.given.signal(repairer.io);
    return true;
}

/// Copies what was repaired of which version.
pub fn countsNow(repairer: *Repairer) base.BoundedArray(Count, counts_max) {
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    return repairer.counts;
}

fn runAll(repairer: *Repairer) void {
    while (repairer.next()) |waiting| {
        const task = waiting.task;
        // Another read may have had the same place repaired.
        if (repairer.mend(task)) task.result = repairer.reader.fill(task);
        waiting.workers.end(task);
    }
}

fn next(repairer: *Repairer) ?Waiting {
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    repairer.is_busy = false;
    while (!repairer.is_ending and repairer.waiting.count == 0)
        repairer.given.waitUncancelable(repairer.io, &repairer.mutex);
    if (repairer.is_ending) return null;
    const first = repairer.waiting.constSlice()[0];
    const rest = repairer.waiting.slice();
    std.mem.copyForwards(Waiting, rest[0 .. rest.len - 1], rest[1..]);
    _ = repairer.waiting.pop();
    repairer.is_busy = true;
    return first;
}

/// Returns whether everything that the read needs of its version is sound now.
fn mend(repairer: *Repairer, task: *const Task) bool {
    repairer.takeSite();
    const version = &task.disk.version;
    for (task.parts.constSlice()) |*part| {
        if (part.is_own) continue;
        const tree = repairer.reader.treeOf(version);
        const end = (part.offset + part.size - 1) / store.block.block_size + 1;
        var at = part.offset / store.block.block_size;
        while (store.repair.find(&tree, at, end) catch return false) |damage| {
            if (!repairer.mendPlace(version, &damage)) return false;
            at = damage.index;
        }
    }
    return true;
}

/// The edges of the state in force.
fn takeSite(repairer: *Repairer) void {
    const current = repairer.peers.after(repairer.generation) orelse return;
    repairer.generation = current.generation;
    var ids: base.BoundedArray(base.Uuid, RepairPlan.edges_max) = .empty;
    if (current.site) |*site| for (site.edges.constSlice(), 0..) |*edge, index| {
        if (index == site.own_index or edge.endpoint == null) continue;
        ids.append(edge.id) catch break;
    };
    repairer.plan.setEdges(ids.constSlice());
}

fn mendPlace(
    repairer: *Repairer,
    version: *const HeldDisk.Version,
    damage: *const store.repair.Damage,
) bool {
    // The rest of a tree is not repaired place by place.
    if (damage.level != null) return false;
    const place: RepairPlan.Place =
        .{ .version = version.id, .level = damage.level, .index = damage.index };
    if (repairer.plan.begin(place, nowMs())) |refusal| {
        repairer.say(refusal);
        return false;
    }
    while (repairer.plan.next(nowMs())) |edge| {
        var bytes: store.block.Block = undefined;
        const outcome = repairer.ask(edge, &place, damage, &bytes);
        repairer.plan.onOutcome(outcome, nowMs());
        const offset = place.index * store.block.block_size;
        switch (outcome) {
            .right => {
                const is_written = repairer.write(damage, &bytes);
                repairer.count(version.id, if (is_written) .repaired else .failed);
                if (is_written) log.info(
                    "version {f}: the damaged block at byte {d} is repaired from edge {f}",
                    .{ version.id, offset, edge },
                );
                return is_written;
            },
            .wrong => log.info(
                "edge {f} sent wrong bytes for the block at byte {d} of version {f}: it is not " ++
                    "asked for an hour. Check its store with bootfarm-edge vdisk verify",
                .{ edge, offset, version.id },
            ),
            .unknown, .damaged, .unreachable_edge => {},
        }
    }
    repairer.count(version.id, .failed);
    return false;
}

fn ask(
    repairer: *Repairer,
    edge: base.Uuid,
    place: *const RepairPlan.Place,
    damage: *const store.repair.Damage,
    bytes: *store.block.Block,
) RepairPlan.Outcome {
    const request: wire.Request = .{ .content = .{
        .version = place.version,
        .what = .block,
        .index = place.index,
    } };
    return switch (repairer.source.get(edge, request, bytes)) {
        .taken => if (std.mem.eql(u8, &store.block.hashOf(bytes), &damage.entry.hash))
            .right
        else
            .wrong,
        .wrong => .wrong,
        .unknown, .absent => .unknown,
        .refused => .damaged,
        .unreachable_source => .unreachable_edge,
        .later, .gone => unreachable,
    };
}

fn write(
    repairer: *Repairer,
    damage: *const store.repair.Damage,
    bytes: *const store.block.Block,
) bool {
    store.repair.writeBlock(&repairer.reader.files.?.data, &damage.entry, bytes) catch |err| {
        log.info("a damaged block of the store cannot be written again: the store {s}", .{
            switch (err) {
                error.Wrong => unreachable,
                error.Locked => "is cut short, and another process appends to it",
                else => |other| store.files.sentence(other),
            },
        });
        return false;
    };
    return true;
}

fn count(
    repairer: *Repairer,
    version_id: base.Uuid,
    what: enum { repaired, failed },
) void {
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    var oldest: ?*Count = null;
    const counted = for (repairer.counts.slice()) |*known| {
        if (known.version_id.eql(version_id)) break known;
        if (oldest == null or known.last_unix_ms < oldest.?.last_unix_ms) oldest = known;
    } else blk: {
        const new: Count = .{ .version_id = version_id };
        repairer.counts.append(new) catch {
            oldest.?.* = new;
            break :blk oldest.?;
        };
        break :blk &repairer.counts.slice()[repairer.counts.count - 1];
    };
    switch (what) {
        .repaired => counted.repaired += 1,
        .failed => counted.failed += 1,
    }
    counted.last_unix_ms = sys.unixMs();
}

/// Once each.
fn say(repairer: *Repairer, refusal: RepairPlan.Refusal) void {
    if (repairer.said.contains(refusal)) return;
    repairer.said.insert(refusal);
    switch (refusal) {
        .too_many => log.info(
            "more blocks of the store are damaged than are repaired at once: 16 a second are",
            .{},
        ),
        .again => log.info(
            "a block of the store was repaired three times and is damaged again: the store's " ++
                "disk fails. Replace it",
            .{},
        ),
        .worn => log.info(
            "{d} blocks of the store were damaged within a day: its disk fails, and no more of " ++
                "them are repaired. Replace it",
            .{RepairPlan.day_max},
        ),
    }
    if (refusal != .too_many) health.set(.store_failing, true);
}

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

test {
    _ = @import("repairer_test.zig");
}
