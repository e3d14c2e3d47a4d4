//! Threads that open versions for the packet loop: they open the files, compute the digests of
//! kernel and initramfs, and read what these and the disk say about themselves. They also read the
//! heads of private images.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const sys = @import("../sys.zig");
const private_images = @import("agent").private_images;
const version_table = @import("version_table.zig");
const PointerChannel = @import("../stream/pointer_channel.zig");
const VersionTable = version_table.VersionTable;
const assert = std.debug.assert;
const linux = std.os.linux;

const DesiredVersion = core.uplink.desired_state.Version;
const Problem = version_table.Problem;

pub const VersionOpener = @This();

const threads_count = 4;
/// Versions that are with threads at a time. One thread opens what nobody has asked for.
const works_max = 32;
/// The texts of two descriptions: paths, a root and a command line each.
const texts_size = 32 << 10;
/// Nodes of versions' trees in memory, for each thread: 256 KiB.
const cache_nodes = 64;

/// One version or image, from its order until the loop has heard of its end.
const Work = struct {
    is_busy: bool = false,
    /// The state that describes it is no longer in force.
    is_stale: bool = false,
    image: ?Image = null,
    /// From here on, of a version.
    described: DesiredVersion = undefined,
    below: ?DesiredVersion = null,
    texts: [texts_size]u8 = undefined,
    result: error{Problem}!version_table.Version = undefined,
    problem: Problem = undefined,

    const Image = struct { files: store.Files, name: base.Uuid, version: ?base.Uuid = null };

    fn copy(
        taken: *Work,
        gpa: std.mem.Allocator,
        described: *const DesiredVersion,
        below: ?*const DesiredVersion,
    ) error{OutOfMemory}!void {
        taken.described = try copyOf(gpa, described);
        taken.below = if (below) |version| try copyOf(gpa, version) else null;
    }
};

/// Null: the edge's directory has only plain files.
store_files: ?store.Files,
store_fd: i32,
given: PointerChannel,
ended: PointerChannel,
works: []Work,
threads: [threads_count]std.Thread = undefined,

pub fn init(
    gpa: std.mem.Allocator,
    store_files: ?store.Files,
    store_fd: i32,
) error{ OutOfMemory, SystemCallFailed }!VersionOpener {
    const works = try gpa.alloc(Work, works_max);
    errdefer gpa.free(works);
    for (works) |*work| work.is_busy = false;
    var given: PointerChannel = try .init(.thread, PointerChannel.count_usual);
    errdefer given.deinit();
    return .{
        .store_files = store_files,
        .store_fd = store_fd,
        .given = given,
        .ended = try .init(.loop, PointerChannel.count_usual),
        .works = works,
    };
}

/// Threads run until `deinit`, or until the process ends: `opener` must not move.
pub fn run(opener: *VersionOpener) std.Thread.SpawnError!void {
    for (&opener.threads) |*thread| thread.* = try std.Thread.spawn(
        .{ .stack_size = 1 << 20 },
        runAll,
        .{opener},
    );
}

/// After `run`: waits until the threads have done what they were given.
pub fn deinit(opener: *VersionOpener, gpa: std.mem.Allocator) void {
    opener.given.end();
    for (opener.threads) |thread| thread.join();
    while (opener.ended.receive(Work)) |ended| {
        if (ended.image != null) continue;
        var version = ended.result catch continue;
        version.close();
    }
    opener.given.deinit();
    opener.ended.deinit();
    gpa.free(opener.works);
    opener.* = undefined;
}

/// Has a thread open a version, unless one does already; if all have enough to do, the loop asks
/// again once one has ended.
pub fn start(
    opener: *VersionOpener,
    described: *const DesiredVersion,
    below: ?*const DesiredVersion,
) void {
    var free: ?*Work = null;
    for (opener.works) |*known| {
        if (!known.is_busy)
            free = known
        else if (known.image == null and known.described.id.eql(described.id))
            return;
    }
    const taken = free orelse return;
    // The desired state may be replaced meanwhile.
    var texts: std.heap.FixedBufferAllocator = .init(&taken.texts);
    taken.is_busy = true;
    taken.is_stale = false;
    taken.image = null;
    taken.described.id = described.id;
    taken.copy(texts.allocator(), described, below) catch {
        taken.problem = .not_described;
        taken.result = error.Problem;
        return opener.ended.send(Work, taken);
    };
    opener.given.send(Work, taken);
}

/// Has a thread read the head of a private image, unless one does already; false: all have enough
/// to do.
pub fn startImage(opener: *VersionOpener, files: store.Files, name: base.Uuid) bool {
    var free: ?*Work = null;
    for (opener.works) |*known| {
        if (!known.is_busy) {
            free = known;
        } else if (known.image) |*image| {
            if (image.name.eql(name)) return true;
        }
    }
    const taken = free orelse return false;
    taken.is_busy = true;
    taken.image = .{ .files = files, .name = name };
    opener.given.send(Work, taken);
    return true;
}

fn copyOf(gpa: std.mem.Allocator, from: *const DesiredVersion) error{OutOfMemory}!DesiredVersion {
    var version = from.*;
    version.diskPath = try gpa.dupe(u8, from.diskPath);
    if (from.kernelPath) |path| version.kernelPath = try gpa.dupe(u8, path);
    if (from.initrdPath) |path| version.initrdPath = try gpa.dupe(u8, path);
    version.commandLine = try gpa.dupe(u8, from.commandLine);
    if (version.manifest) |*manifest| manifest.root = try gpa.dupe(u8, manifest.root);
    return version;
}

pub fn isIdle(opener: *const VersionOpener) bool {
    for (opener.works) |*known| if (known.is_busy) return false;
    return true;
}

/// There is another desired state: what is being opened may be described differently.
pub fn onState(opener: *VersionOpener) void {
    for (opener.works) |*known| known.is_stale = true;
}

/// A descriptor that can be read when a version has been opened, or could not.
pub fn endedFd(opener: *const VersionOpener) i32 {
    return opener.ended.receiveFd();
}

/// The text of a problem is valid until the next call of `start`.
pub const Ended = union(enum) {
    version: struct { id: base.Uuid, problem: ?Problem },
    /// The version below it; null: there is no image, or it cannot be read.
    image: struct { name: base.Uuid, version: ?base.Uuid },
};

/// Takes the next version that has been opened into the table. One that a new state may describe
/// differently is closed: whoever waits for it asks again.
pub fn takeEnded(
    opener: *VersionOpener,
    table: *VersionTable,
    boots: *core.boot.Table,
) ?Ended {
    const ended = opener.ended.receive(Work) orelse return null;
    assert(ended.is_busy);
    ended.is_busy = false;
    if (ended.image) |*image|
        return .{ .image = .{ .name = image.name, .version = image.version } };
    const id = ended.described.id;
    const is_open = table.find(id) != null;
    const version = ended.result catch return .{
        .version = .{ .id = id, .problem = if (ended.is_stale or is_open) null else ended.problem },
    };
    if (is_open and !ended.is_stale) {
        table.replace(boots, version);
        return .{ .version = .{ .id = id, .problem = null } };
    }
    if (ended.is_stale) {
        var closing = version;
        closing.close();
        return .{ .version = .{ .id = id, .problem = null } };
    }
    const problem: ?Problem = if (table.take(boots, version)) null else |_| .full;
    return .{ .version = .{ .id = id, .problem = problem } };
}

fn runAll(opener: *VersionOpener) void {
    const gpa = std.heap.page_allocator;
    // The packet loop's store and its nodes are the loop's.
    var own: ?store.Store = null;
    defer if (own) |*opened| opened.close(gpa);
    while (opener.given.receive(Work)) |order| {
        if (order.image) |*image| {
            image.version = private_images.versionBelow(image.files, image.name);
            opener.ended.send(Work, order);
            continue;
        }
        if (own == null) if (opener.store_files) |files| {
            own = store.Store.open(gpa, files, .{ .cache_nodes = cache_nodes }) catch null;
        };
        order.result = version_table.openDescribed(
            if (own) |*opened| opened else null,
            opener.store_fd,
            &order.described,
            if (order.below) |*version| version else null,
            &order.problem,
        );
        opener.ended.send(Work, order);
    }
}

const testing = std.testing;

test "a thread opens what is described, or says why not, and the loop takes it" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "disk", .data = &@as([1024]u8, @splat(1)) });
    var table: VersionTable = try .init(testing.allocator, 1);
    defer table.deinit(testing.allocator);
    var boots: core.boot.Table = try .init(testing.allocator, .{ .capacity = 1 });
    defer boots.deinit(testing.allocator);
    var opener: VersionOpener = try .init(testing.allocator, null, tmp.dir.handle);
    try opener.run();
    defer opener.deinit(testing.allocator);
    var described: DesiredVersion = .{
        .id = .fromRandom(@splat(1)),
        .number = 1,
        .sizeBytes = 2048,
        .diskPath = "disk",
        .commandLine = "quiet",
    };
    const steps = [_]struct { size: u64, is_stale: bool = false, is_open: bool }{
        .{ .size = 2048, .is_open = false },
        .{ .size = 1024, .is_stale = true, .is_open = false },
        .{ .size = 1024, .is_open = true },
    };
    for (steps) |step| {
        described.sizeBytes = step.size;
        opener.start(&described, null);
        opener.start(&described, null);
        try testing.expect(!opener.isIdle());
        if (step.is_stale) opener.onState();
        sys.waitReadable(opener.endedFd(), 30_000);
        const ended = opener.takeEnded(&table, &boots).?.version;
        try testing.expectEqual(described.id, ended.id);
        const is_problem = !step.is_open and !step.is_stale;
        try testing.expectEqual(is_problem, ended.problem != null);
        try testing.expectEqual(step.is_open, table.find(described.id) != null);
        try testing.expect(opener.isIdle());
        try testing.expectEqual(null, opener.takeEnded(&table, &boots));
    }
}
