//! Repairs what is found damaged: a thread that asks other edges of the site for the right bytes
//! (core/difference/repair_plan.zig says whom), and writes them in their places (store/repair.zig,
//! and store/unit_repair.zig for packed ones). A device's read is read again afterwards, and the
//! device sees a slow read. A read waits for a few seconds at most, and only a few reads wait:
//! whatever else fails is answered with an error at once, and the device asks again. Damage that
//! other edges, store jobs or verifications meet is repaired while no read waits.

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
const assert = std.debug.assert;
const RepairPlan = core.difference.RepairPlan;
const Part = store.unit_repair.Part;
const Task = ReadWorkers.Task;

pub const Repairer = @This();

/// Reads of all shards that wait for a repair; fewer than the tasks of one shard, so that its
/// other reads are served.
const waiting_max = 4;
/// Damage that no device waits for. What does not fit is found again when its version is verified
/// after the repair of the rest.
const reported_max = 512;
/// Versions that are to be verified again; further ones wait for their next verification.
const mended_max = 64;
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
store_path: []const u8,
/// Written to when nothing that was reported is left.
mended_fd: i32,
/// Protects the fields up to `thread`.
mutex: std.Io.Mutex = .init,
given: std.Io.Condition = .init,
waiting: base.BoundedArray(Waiting, waiting_max) = .empty,
reported: base.BoundedArray(Report, reported_max) = .empty,
/// Versions of which something was repaired.
mended: base.BoundedArray(base.Uuid, mended_max) = .empty,
/// The thread has one of `waiting`.
is_busy: bool = false,
is_ending: bool = false,
counts: base.BoundedArray(Count, counts_max) = .empty,
thread: ?std.Thread = null,
reader: ReadWorkers.Reader,
/// The unit that was read last, or is repaired.
unit: *store.UnitRepair,
source: PeerSource,
plan: RepairPlan = .{},
generation: u64 = 0,
said: std.EnumSet(RepairPlan.Refusal) = .empty,

const Waiting = struct { workers: *ReadWorkers, task: *Task };

/// A block of a version.
const Report = struct { version: base.Uuid, index: u64 };

const Work = union(enum) { read: Waiting, report: Report };

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
    peers: *SitePeers,
    store_path: []const u8,
    mended_fd: i32,
) error{OutOfMemory}!*Repairer {
    const repairer = try gpa.create(Repairer);
    errdefer gpa.destroy(repairer);
    const unit = try gpa.create(store.UnitRepair);
    errdefer gpa.destroy(unit);
    repairer.* = .{
        .gpa = gpa,
        .io = peers.io,
        .peers = peers,
        .store_path = store_path,
        .mended_fd = mended_fd,
        .reader = try .init(gpa, cache_nodes, cache_units),
        .unit = unit,
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
    repairer.gpa.destroy(repairer.unit);
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

/// Takes damage that no device waits for: from other threads, at any time.
pub fn report(repairer: *Repairer, version: base.Uuid, index: u64) void {
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    for (repairer.reported.constSlice()) |*known|
        if (known.index == index and known.version.eql(version)) return;
    repairer.reported.append(.{ .version = version, .index = index }) catch return;
    repairer.given.signal(repairer.io);
}

/// Returns a version of which something was repaired, and nothing more is reported for now.
pub fn takeMended(repairer: *Repairer) ?base.Uuid {
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    if (repairer.reported.count > 0) return null;
    return repairer.mended.pop();
}

/// Copies what was repaired of which version.
pub fn countsNow(repairer: *Repairer) base.BoundedArray(Count, counts_max) {
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    return repairer.counts;
}

fn runAll(repairer: *Repairer) void {
    while (repairer.next()) |work| switch (work) {
        .read => |waiting| {
            const task = waiting.task;
            // Another read may have had the same place repaired.
            if (repairer.mend(task)) task.result = repairer.reader.fill(task);
            waiting.workers.end(task);
        },
        .report => |reported| {
            repairer.mendReported(&reported);
            repairer.endReported(&reported);
        },
    };
}

/// Reads of devices come first. A report stays in its queue while it is worked on.
fn next(repairer: *Repairer) ?Work {
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    repairer.is_busy = false;
    while (!repairer.is_ending and repairer.waiting.count == 0 and repairer.reported.count == 0)
        repairer.given.waitUncancelable(repairer.io, &repairer.mutex);
    if (repairer.is_ending) return null;
    if (repairer.waiting.count == 0) return .{ .report = repairer.reported.constSlice()[0] };
    const first = repairer.waiting.constSlice()[0];
    const rest = repairer.waiting.slice();
    std.mem.copyForwards(Waiting, rest[0 .. rest.len - 1], rest[1..]);
    _ = repairer.waiting.pop();
    repairer.is_busy = true;
    return .{ .read = first };
}

/// Its version may have been deleted meanwhile.
fn mendReported(repairer: *Repairer, reported: *const Report) void {
    repairer.takeSite();
    var on = store.LinuxFiles.open(repairer.store_path) catch return;
    defer on.close();
    var opened = store.Store.open(repairer.gpa, on.files(), .{ .cache_nodes = cache_nodes }) catch
        return;
    defer opened.close(repairer.gpa);
    var version = opened.openVersion(reported.version) catch return;
    defer version.close();
    const block_count = store.block.blockCount(version.manifest.disk_size);
    if (reported.index >= block_count) return;
    const range: Range = .{ .first = reported.index, .end = reported.index + 1 };
    _ = repairer.mendRange(&version.reader, reported.version, range, .nobody);
}

fn endReported(repairer: *Repairer, reported: *const Report) void {
    repairer.mutex.lockUncancelable(repairer.io);
    defer repairer.mutex.unlock(repairer.io);
    const rest = repairer.reported.slice();
    assert(rest[0].version.eql(reported.version) and rest[0].index == reported.index);
    std.mem.copyForwards(Report, rest[0 .. rest.len - 1], rest[1..]);
    _ = repairer.reported.pop();
    if (repairer.reported.count == 0) sys.wake(repairer.mended_fd);
}

/// Returns whether everything that the read needs of its version is sound now.
fn mend(repairer: *Repairer, task: *const Task) bool {
    repairer.takeSite();
    const version = &task.disk.version;
    for (task.parts.constSlice()) |*part| {
        if (part.is_own) continue;
        var tree = repairer.reader.treeOf(version);
        const range: Range = .{
            .first = part.offset / store.block.block_size,
            .end = (part.offset + part.size - 1) / store.block.block_size + 1,
        };
        if (!repairer.mendRange(&tree, version.id, range, .device)) return false;
    }
    return true;
}

/// Blocks of a version.
const Range = struct { first: u64, end: u64 };

fn mendRange(
    repairer: *Repairer,
    tree: *store.VersionReader,
    version: base.Uuid,
    range: Range,
    waiter: RepairPlan.Waiter,
) bool {
    var at = range.first;
    while (store.repair.find(tree, repairer.unit, at, range.end) catch return false) |damage| {
        // The rest of a tree is not repaired place by place.
        if (damage.level != null) return false;
        const parts =
            store.unit_repair.partsOf(tree, .{ .index = damage.index, .entry = damage.entry });
        const data = tree.reading.data;
        if (!repairer.mendParts(data, version, parts.constSlice(), waiter)) return false;
        at = damage.index;
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

/// Repairs a block, or the blocks of a version in one unit, which are written together and count
/// as one place for the plan. Returns whether the first one is sound now.
fn mendParts(
    repairer: *Repairer,
    data: *store.file_set.FileSet,
    version: base.Uuid,
    parts: []const Part,
    waiter: RepairPlan.Waiter,
) bool {
    const place: RepairPlan.Place =
        .{ .version = version, .level = null, .index = parts[0].index };
    if (repairer.plan.begin(place, waiter, nowMs())) |refusal| {
        repairer.say(refusal);
        return false;
    }
    var got: Got = .{};
    while (repairer.plan.next(nowMs())) |edge| {
        const outcome = repairer.askAll(edge, version, parts, &got);
        repairer.plan.onOutcome(outcome, nowMs());
        switch (outcome) {
            .right => break,
            .wrong => log.info(
                "edge {f} sent wrong bytes for the block at byte {d} of version {f}: it is not " ++
                    "asked for an hour. Check its store with bootfarm-edge vdisk verify",
                .{ edge, got.index * store.block.block_size, version },
            ),
            .unknown, .damaged, .unreachable_edge => {},
        }
    }
    const is_mended = got.has_first and repairer.write(data, &got, parts);
    repairer.count(version, if (is_mended) .repaired else .failed, @max(got.count, 1));
    if (is_mended) log.info(
        "version {f}: the damaged {s} at byte {d} is repaired from edge {f}",
        .{
            version,
            if (parts[0].entry.location.is_packed) "packed unit" else "block",
            place.index * store.block.block_size,
            got.from.?,
        },
    );
    return is_mended;
}

/// What edges have sent of the blocks that are repaired together.
const Got = struct {
    /// Blocks.
    count: u64 = 0,
    has_first: bool = false,
    from: ?base.Uuid = null,
    /// The block that was asked for last.
    index: u64 = 0,
    /// Of a block that is not packed.
    bytes: store.block.Block = undefined,
};

/// Asks one edge for all blocks that are damaged. `right`: the first one is there, and what the
/// edge has of the others.
fn askAll(
    repairer: *Repairer,
    edge: base.Uuid,
    version: base.Uuid,
    parts: []const Part,
    got: *Got,
) RepairPlan.Outcome {
    for (parts, 0..) |*part, at| {
        const is_packed = part.entry.location.is_packed;
        if (is_packed and repairer.unit.isSound(&part.entry)) continue;
        got.index = part.index;
        const outcome = repairer.ask(edge, version, part, &got.bytes);
        if (outcome != .right) {
            if (at == 0 or outcome == .wrong) return outcome;
            if (outcome == .unreachable_edge) return .right;
            continue;
        }
        if (is_packed) repairer.unit.put(&part.entry, &got.bytes) catch unreachable;
        got.has_first = got.has_first or at == 0;
        got.count += 1;
        got.from = edge;
    }
    return .right;
}

fn ask(
    repairer: *Repairer,
    edge: base.Uuid,
    version: base.Uuid,
    part: *const Part,
    bytes: *store.block.Block,
) RepairPlan.Outcome {
    const request: wire.Request =
        .{ .content = .{ .version = version, .what = .block, .index = part.index } };
    return switch (repairer.source.get(edge, request, bytes)) {
        .taken => if (std.mem.eql(u8, &store.block.hashOf(bytes), &part.entry.hash))
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
    data: *store.file_set.FileSet,
    got: *const Got,
    parts: []const Part,
) bool {
    const entry = &parts[0].entry;
    const written = if (entry.location.is_packed)
        repairer.unit.write(data)
    else
        store.repair.writeBlock(data, entry, &got.bytes);
    written catch |err| {
        log.info("a damaged block of the store cannot be written again: the store {s}", .{
            switch (err) {
                error.Wrong => unreachable,
                error.Misfit => "has no place for it before other blocks of its packed unit are " ++
                    "repaired too",
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
    blocks: u64,
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
        .repaired => {
            counted.repaired += blocks;
            repairer.noteMended(version_id);
        },
        .failed => counted.failed += blocks,
    }
    counted.last_unix_ms = sys.unixMs();
}

/// Called with the mutex.
fn noteMended(repairer: *Repairer, version: base.Uuid) void {
    for (repairer.mended.constSlice()) |known| if (known.eql(version)) return;
    repairer.mended.append(version) catch {};
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
        .failed_lately => return,
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
