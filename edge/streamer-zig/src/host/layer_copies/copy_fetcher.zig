//! Keeps copies of other edges' write layers (docs/decisions/0088-copies-of-write-layers.md): asks
//! each edge of the site what it offers, fetches the areas that differ of the layers whose second
//! edge this one is, and removes copies that nobody can need any more. A separate thread at the
//! lowest priority; whatever goes wrong, the copy stays as it was, and the next turn continues.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").peer_transfer;
const sys = @import("../sys.zig");
const log = @import("../log.zig");
const copy_space = @import("copy_space.zig");
const PeerSource = @import("../difference/peer_source.zig");
const SitePeers = @import("../difference/site_peers.zig");
const linux = std.os.linux;
const AreaList = store.AreaList;
const HeldCopy = store.HeldCopy;
const message = core.uplink.message;
const names = store.copy_names;
const Uuid = base.Uuid;

pub const CopyFetcher = @This();

/// Of one edge; more of its layers have no copy.
pub const layers_max = 1024;
const turn_ms = 15_000;
/// Edges that the state names since are asked at once.
const look_ms = 1_000;
/// A slow edge delays the copies of others by so much; its own continue with the next turn.
const edge_limit_ms_usual = 30 * std.time.ms_per_min;
/// A copy that has not changed gets a later moment only if it is later by this: it costs its list.
const renewal_step_ms = std.time.ms_per_min;
const lowest_nice = 19;
const idle_class = 3 << 13;

gpa: std.mem.Allocator,
peers: *SitePeers,
store_path: []const u8,
/// Bytes of the store's file system that copies leave free; null: the usual.
reserve_bytes: ?u64 = null,
source: PeerSource,
/// What one edge offers.
offers: []wire.CopySummary,
offer_count: u32 = 0,
area: *[AreaList.area_size]u8,
/// For each edge, in each turn.
edge_limit_ms: u64 = edge_limit_ms_usual,
/// Copies that had come whole when the edge was killed are brought over.
is_complete: bool = false,
/// The last problem, so that it is logged once and not with each turn.
problem: ?Problem = null,
mutex: std.Io.Mutex = .init,
/// For the heartbeat, under the mutex.
of_edges: OfEdges = .empty,
/// For the metrics.
held_count: std.atomic.Value(u32) = .init(0),
/// 0: there is none.
oldest_unix_ms: std.atomic.Value(u64) = .init(0),
/// Copies that this edge is to have, and could not bring up to date in its last turn.
behind_count: std.atomic.Value(u32) = .init(0),

const OfEdges = base.BoundedArray(message.CacheCopies, message.cache_copies_max);

const Problem = enum { no_space, disk, list, older, memory };

pub const Options = struct {
    peers: *SitePeers,
    store_path: []const u8,
    reserve_bytes: ?u64 = null,
};

pub fn create(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!*CopyFetcher {
    const fetcher = try gpa.create(CopyFetcher);
    errdefer gpa.destroy(fetcher);
    const offers = try gpa.alloc(wire.CopySummary, layers_max);
    errdefer gpa.free(offers);
    fetcher.* = .{
        .gpa = gpa,
        .peers = options.peers,
        .store_path = options.store_path,
        .reserve_bytes = options.reserve_bytes,
        .source = .{ .peers = options.peers },
        .offers = offers,
        .area = try gpa.create([AreaList.area_size]u8),
    };
    return fetcher;
}

pub fn destroy(fetcher: *CopyFetcher) void {
    fetcher.source.deinit();
    fetcher.gpa.free(fetcher.offers);
    fetcher.gpa.destroy(fetcher.area);
    fetcher.gpa.destroy(fetcher);
}

/// What is kept of which edge, as of the last turn; those of more edges are left out.
pub fn ofEdges(
    fetcher: *CopyFetcher,
    into: *[message.cache_copies_max]message.CacheCopies,
) []const message.CacheCopies {
    const io = fetcher.peers.io;
    fetcher.mutex.lockUncancelable(io);
    defer fetcher.mutex.unlock(io);
    const known = fetcher.of_edges.constSlice();
    @memcpy(into[0..known.len], known);
    return into[0..known.len];
}

/// Runs until the process ends.
pub fn start(fetcher: *CopyFetcher) std.Thread.SpawnError!void {
    const thread = try std.Thread.spawn(.{ .stack_size = 1 << 20 }, run, .{fetcher});
    thread.detach();
}

fn run(fetcher: *CopyFetcher) void {
    // Of this thread alone.
    _ = linux.syscall3(.setpriority, 0, 0, lowest_nice);
    _ = linux.syscall3(.ioprio_set, 1, 0, idle_class);
    const step: std.Io.Duration = .fromMilliseconds(look_ms);
    var generation: u64 = 0;
    var passed_ms: u64 = turn_ms;
    while (true) {
        if (fetcher.peers.after(generation)) |current| {
            generation = current.generation;
            passed_ms = turn_ms;
        }
        if (passed_ms >= turn_ms) {
            fetcher.turn();
            passed_ms = 0;
        }
        fetcher.peers.io.sleep(step, .awake) catch return;
        passed_ms += look_ms;
    }
}

/// Asks every other edge of the site once.
pub fn turn(fetcher: *CopyFetcher) void {
    var on = store.LinuxFiles.open(fetcher.store_path) catch return;
    defer on.close();
    var step: Turn = .{ .fetcher = fetcher, .files = on.files(), .store_fd = on.dir_fd };
    if (!fetcher.is_complete) fetcher.is_complete = step.completeAll();
    if (fetcher.peers.current()) |site| {
        step.site = site;
        for (site.edges.constSlice()) |*edge|
            if (!edge.id.eql(site.own_id)) step.ask(edge.id);
        fetcher.source.drop();
    }
    step.tell() catch step.note(.disk);
    if (step.problem == null) fetcher.problem = null;
}

/// One turn, with the store open.
const Turn = struct {
    fetcher: *CopyFetcher,
    files: store.Files,
    store_fd: i32,
    site: ?core.site.Edges = null,
    problem: ?Problem = null,
    behind: u32 = 0,
    /// When the next edge is asked.
    until_ms: u64 = 0,
    /// Of one edge.
    fetched_count: u32 = 0,
    fetched_bytes: u64 = 0,

    fn ask(step: *Turn, owner: Uuid) void {
        const fetcher = step.fetcher;
        step.until_ms = nowMs() +| fetcher.edge_limit_ms;
        // An edge that does not answer may be gone for ever: its copies stay.
        if (!step.takeOffers(owner)) return;
        step.fetched_count = 0;
        step.fetched_bytes = 0;
        for (fetcher.offers[0..fetcher.offer_count]) |*offer| {
            if (!step.isSecond(owner, offer.layer)) continue;
            if (!step.keep(owner, offer)) step.behind += 1;
        }
        if (step.fetched_count > 0) log.info(
            "Copies of {d} write caches of edge {f} were brought up to date: {d} bytes came.",
            .{ step.fetched_count, owner, step.fetched_bytes },
        );
        step.sweep(owner) catch step.note(.disk);
    }

    fn isSecond(step: *const Turn, owner: Uuid, layer: Uuid) bool {
        const site = &step.site.?;
        const second = core.layer_copies.second_edge.ofSite(layer, owner, site);
        return if (second) |id| id.eql(site.own_id) else false;
    }

    /// Returns false if the edge has not told all.
    fn takeOffers(step: *Turn, owner: Uuid) bool {
        const fetcher = step.fetcher;
        fetcher.offer_count = 0;
        var above: Uuid = .zero;
        while (fetcher.offer_count < layers_max) {
            var page: [wire.copies_max * wire.CopySummary.size]u8 = undefined;
            var size: usize = 0;
            const request: wire.Request = .{ .copies = above };
            switch (fetcher.source.getSome(owner, request, &page, &size)) {
                .taken => {},
                .unknown => return true,
                else => return false,
            }
            if (size % wire.CopySummary.size != 0) return false;
            const count = size / wire.CopySummary.size;
            for (0..count) |index| {
                const bytes = page[index * wire.CopySummary.size ..][0..wire.CopySummary.size];
                const offer: wire.CopySummary = .parse(bytes);
                // Otherwise it would never end.
                if (std.mem.order(u8, &offer.layer.bytes, &above.bytes) != .gt) return false;
                above = offer.layer;
                if (fetcher.offer_count == layers_max) break;
                fetcher.offers[fetcher.offer_count] = offer;
                fetcher.offer_count += 1;
            }
            if (count < wire.copies_max) return true;
        }
        return true;
    }

    /// Returns whether the copy is what its owner offers.
    fn keep(step: *Turn, owner: Uuid, offer: *const wire.CopySummary) bool {
        var name: store.files.Name = undefined;
        const dir = names.heldDir(owner, offer.layer_id, &name);
        const now = sys.unixMs();
        // An edge whose clock is ahead makes no copy younger than it is.
        const moment = @min(offer.moment_unix_ms, now);
        if (HeldCopy.readHeader(step.files, dir)) |header| {
            if (std.mem.eql(u8, &header.digest, &offer.sha256)) {
                const former = header.moment_unix_ms;
                if (former > now or former + renewal_step_ms <= moment)
                    step.renew(dir, moment) catch |err| return step.fail(err);
                return true;
            }
            // A disk that was set back has its own copies of then, until it makes new ones.
            if (header.moment_unix_ms <= now and offer.moment_unix_ms < header.moment_unix_ms) {
                step.note(.older);
                return false;
            }
        } else |_| {}
        return step.fetch(owner, offer, moment, dir) catch |err| step.fail(err);
    }

    fn renew(step: *Turn, dir: []const u8, moment_unix_ms: u64) AreaList.ReadError!void {
        const lock = try names.lock(step.files, .held) orelse return;
        defer step.files.close(lock);
        try HeldCopy.renew(step.fetcher.gpa, step.files, dir, moment_unix_ms);
    }

    fn hasSpace(step: *const Turn, bytes: u64) bool {
        return copy_space.has(step.store_fd, step.fetcher.reserve_bytes, bytes);
    }

    fn fetch(
        step: *Turn,
        owner: Uuid,
        offer: *const wire.CopySummary,
        moment_unix_ms: u64,
        dir: []const u8,
    ) AreaList.ReadError!bool {
        const fetcher, const files = .{ step.fetcher, step.files };
        const list = try step.fetchList(owner, offer, moment_unix_ms) orelse return false;
        var held: HeldCopy = blk: {
            var taken = list;
            const lock = names.lock(files, .held) catch |err| {
                taken.deinit(fetcher.gpa);
                return err;
            } orelse {
                taken.deinit(fetcher.gpa);
                return false;
            };
            defer files.close(lock);
            break :blk try .begin(fetcher.gpa, files, dir, taken);
        };
        defer held.deinit();
        var came: u64 = 0;
        for (held.list.entries()) |*entry| {
            if (!try held.needs(entry)) continue;
            if (nowMs() >= step.until_ms) return false;
            const size = entry.size();
            // Brought over, it takes its space twice for a moment.
            if (!step.hasSpace(2 * size)) return error.NoSpace;
            const bytes = fetcher.area[0..size];
            const request: wire.Request =
                .{ .copy_area = .{ .layer = offer.layer, .area = entry.index() } };
            if (fetcher.source.get(owner, request, bytes) != .taken) return false;
            // The owner has made a newer one meanwhile.
            if (!try held.put(entry, bytes)) return false;
            came += size;
        }
        const lock = try names.lock(files, .held) orelse return false;
        defer files.close(lock);
        try held.commit();
        step.fetched_count += 1;
        step.fetched_bytes += came;
        return true;
    }

    /// Null: it did not come, or is not what was offered.
    fn fetchList(
        step: *Turn,
        owner: Uuid,
        offer: *const wire.CopySummary,
        moment_unix_ms: u64,
    ) error{ OutOfMemory, NoSpace }!?AreaList {
        const gpa = step.fetcher.gpa;
        const header: AreaList.Header = .{
            .count = offer.entries,
            .moment_unix_ms = moment_unix_ms,
            .digest = offer.sha256,
        };
        if (header.count > AreaList.entries_max) {
            step.note(.list);
            return null;
        }
        // A list of areas of zeros has no areas to fetch.
        if (!step.hasSpace(2 * header.bodySize())) return error.NoSpace;
        const body = try gpa.alloc(u8, header.bodySize());
        defer gpa.free(body);
        const request: wire.Request = .{ .copy_list = offer.layer };
        if (step.fetcher.source.get(owner, request, body) != .taken) return null;
        var list = AreaList.of(gpa, header, body) catch |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            error.Damaged, error.NewerFormat => {
                step.note(.list);
                return null;
            },
        };
        const binding = &list.head.binding;
        const is_copied = switch (binding.class) {
            // A device has one, whose name is its id.
            .edge_persistent => binding.device_id.eql(offer.layer),
            .private => true,
            .edge, .maintenance => false,
        };
        if (is_copied and list.head.layer_id.eql(offer.layer_id)) return list;
        list.deinit(gpa);
        step.note(.list);
        return null;
    }

    /// Removes copies of layers that the owner has no more, or that another edge keeps, once they
    /// are old.
    fn sweep(step: *Turn, owner: Uuid) store.files.Error!void {
        var parent: store.files.Name = undefined;
        var walk: names.Iterator =
            .{ .files = step.files, .dir = names.heldEdgeDir(owner, &parent) };
        while (try walk.next()) |layer_id| {
            const says: core.layer_copies.copy_life.Owner =
                if (step.isOffered(owner, layer_id)) .offers else .lacks;
            var name: store.files.Name = undefined;
            const dir = names.heldDir(owner, layer_id, &name);
            const header = HeldCopy.readHeader(step.files, dir) catch |err| {
                if (err == error.NotFound and says == .lacks) try step.removePart(dir);
                continue;
            };
            const moment = header.moment_unix_ms;
            if (core.layer_copies.copy_life.isKept(says, moment, sys.unixMs())) continue;
            const lock = try names.lock(step.files, .held) orelse return;
            defer step.files.close(lock);
            try HeldCopy.remove(step.files, dir);
            log.info(
                "The copy {f} of a write cache of edge {f} was removed: for 30 days that edge has not had the cache, or another edge has kept the copy.",
                .{ layer_id, owner },
            );
        }
    }

    fn isOffered(step: *const Turn, owner: Uuid, layer_id: Uuid) bool {
        const fetcher = step.fetcher;
        for (fetcher.offers[0..fetcher.offer_count]) |*offer|
            if (offer.layer_id.eql(layer_id)) return step.isSecond(owner, offer.layer);
        return false;
    }

    /// Nothing of it was ever whole, and the rest will not come.
    fn removePart(step: *const Turn, dir: []const u8) store.files.Error!void {
        if (!step.fetcher.is_complete) return;
        const lock = try names.lock(step.files, .held) orelse return;
        defer step.files.close(lock);
        try HeldCopy.remove(step.files, dir);
    }

    /// Returns false if some have to be looked at again.
    fn completeAll(step: *Turn) bool {
        const lock = names.lock(step.files, .held) catch null orelse return false;
        defer step.files.close(lock);
        var is_complete = true;
        var walk: HeldCopy.Walk = .{ .files = step.files };
        while (walk.next() catch return false) |found| {
            var name: store.files.Name = undefined;
            HeldCopy.complete(step.fetcher.gpa, step.files, found.dir(&name)) catch |err| {
                is_complete = step.fail(err);
            };
        }
        return is_complete;
    }

    fn fail(step: *Turn, problem: AreaList.ReadError) bool {
        // It may have come whole.
        step.fetcher.is_complete = false;
        step.note(switch (problem) {
            error.NoSpace => .no_space,
            error.OutOfMemory => .memory,
            error.Damaged, error.NewerFormat => .list,
            else => .disk,
        });
        return false;
    }

    fn note(step: *Turn, problem: Problem) void {
        step.problem = problem;
        if (step.fetcher.problem == problem) return;
        step.fetcher.problem = problem;
        log.info("Copies of other edges' write layers are not up to date: {s}.", .{
            switch (problem) {
                .no_space => "the store's disk keeps its last space for devices' writes; free some",
                .disk => "the store's disk reports an error",
                .list => "an edge offers a copy that this one cannot keep; update the older one",
                .older => "an edge offers one of an earlier time than it had; compare the clocks",
                .memory => "the edge has too little memory",
            },
        });
    }

    /// Counts what is here, of edges that are silent, too.
    fn tell(step: *Turn) store.files.Error!void {
        var count: u32 = 0;
        var oldest: u64 = 0;
        var of_edges: OfEdges = .empty;
        var walk: HeldCopy.Walk = .{ .files = step.files };
        while (try walk.next()) |found| {
            var name: store.files.Name = undefined;
            const dir = found.dir(&name);
            const header = HeldCopy.readHeader(step.files, dir) catch |err| {
                const is_gone = if (step.site) |*site| site.indexOf(found.owner) == null else false;
                if (err == error.NotFound and is_gone) try step.removePart(dir);
                continue;
            };
            const moment = header.moment_unix_ms;
            count += 1;
            if (oldest == 0 or moment < oldest) oldest = moment;
            // An edge's copies follow each other.
            const is_same = of_edges.count > 0 and
                of_edges.constSlice()[of_edges.count - 1].edgeId.eql(found.owner);
            if (is_same) {
                const last = &of_edges.buffer[of_edges.count - 1];
                last.count += 1;
                last.oldestUnixMs = @min(last.oldestUnixMs, moment);
            } else of_edges.append(
                .{ .edgeId = found.owner, .count = 1, .oldestUnixMs = moment },
            ) catch continue;
        }
        step.fetcher.setOfEdges(&of_edges);
        step.fetcher.held_count.store(count, .monotonic);
        step.fetcher.oldest_unix_ms.store(oldest, .monotonic);
        step.fetcher.behind_count.store(step.behind, .monotonic);
    }
};

fn setOfEdges(fetcher: *CopyFetcher, of_edges: *const OfEdges) void {
    const io = fetcher.peers.io;
    fetcher.mutex.lockUncancelable(io);
    defer fetcher.mutex.unlock(io);
    fetcher.of_edges = of_edges.*;
}

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

test {
    _ = @import("copy_fetcher_test.zig");
}
