//! Garbage collection: frees what no version refers to. Files keep their size and offsets; a freed
//! range becomes a hole, and an unused file is removed unless it is the last of its kind. Each step
//! has a byte budget, so the caller controls the rate. Killing it at any moment is harmless.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const FileSet = @import("files/file_set.zig");
const Files = @import("files/files.zig");
const former_versions = @import("files/former_versions.zig");
const Checkpoint = @import("import/checkpoint.zig");
const LocationMap = @import("tree/location_map.zig");
const simulated = @import("simulated.zig");
const store_dir = @import("files/store_dir.zig");
const Usage = @import("usage.zig");

const Change = store_dir.Change;
const Handle = Files.Handle;
const Location = block.Location;

/// `Unfinished`: the checkpoint of an import cannot be read, or does not say where its blocks are;
/// they would be freed.
pub const Error = Usage.Error || error{Unfinished};

pub const Collection = @This();

/// Holds the store's change lock until the collection ends.
change: *Change,
usage: Usage,
/// Unfinished imports may have written from these locations on: nothing is freed there.
until: std.EnumArray(FileSet.Kind, Location),
kind: FileSet.Kind = .extents,
/// The current file and the position in it; 0 starts the next file.
file: block.FileNumber = 0,
handle: ?Handle = null,
at: u64 = 0,
size: u64 = 0,
is_used: bool = false,
/// Bytes; for a removed file, the space that it took.
freed: u64 = 0,
/// Bytes of the files examined so far.
seen: u64 = 0,

pub fn begin(gpa: std.mem.Allocator, change: *Change) Error!Collection {
    return beginAtRate(gpa, change, null);
}

/// Like `begin`; `rate_limit` also limits the rate while usage is counted.
pub fn beginAtRate(
    gpa: std.mem.Allocator,
    change: *Change,
    rate_limit: ?Usage.RateLimit,
) Error!Collection {
    _ = try former_versions.drop(change.store.files, null);
    var usage: Usage = try .ofAtRate(gpa, change.store, rate_limit);
    errdefer usage.deinit();
    return .{ .change = change, .until = try takeImports(&usage, change.store), .usage = usage };
}

/// No import begins or ends meanwhile, since that needs the change lock. Running ones append
/// behind where they began.
fn takeImports(usage: *Usage, store: *store_dir.Store) Error!std.EnumArray(FileSet.Kind, Location) {
    const end_of_all: Location = .{
        .file = std.math.maxInt(block.FileNumber),
        .block = std.math.maxInt(u40),
    };
    var until: std.EnumArray(FileSet.Kind, Location) = .initFill(end_of_all);
    if (simulated.has(.import_is_freed)) return until;
    var id: ?base.Uuid = null;
    while (try Checkpoint.next(store.files, id)) |found| {
        id = found;
        const checkpoint = Checkpoint.read(store.files, found) catch |err| switch (err) {
            // The import removed its checkpoint itself.
            error.NoImport => continue,
            error.Damaged, error.TooNew => return error.Unfinished,
            else => |other| return other,
        };
        if (checkpoint.data_from.file == 0 or
            checkpoint.nodes_from.file == 0) return error.Unfinished;
        until.set(.extents, least(until.get(.extents), checkpoint.data_from));
        until.set(.nodes, least(until.get(.nodes), checkpoint.nodes_from));
        // Its parent may be deleted before the import resumes.
        try usage.count(store, checkpoint.root, checkpoint.root_level);
    }
    return until;
}

/// Locations are ordered by file, then by block.
fn least(a: Location, b: Location) Location {
    return @bitCast(@min(@as(u64, @bitCast(a)), @as(u64, @bitCast(b))));
}

pub fn end(collection: *Collection) void {
    if (collection.handle) |handle| collection.change.store.files.close(handle);
    collection.usage.deinit();
    collection.* = undefined;
}

/// Examines up to `budget` bytes of files; returns false at the end.
pub fn step(collection: *Collection, budget: u64) Error!bool {
    const files = collection.change.store.files;
    var left = budget;
    while (left > 0) {
        const handle = collection.handle orelse {
            if (!try collection.openNext()) return false;
            continue;
        };
        const begin_at = collection.at;
        // Skips ranges that were freed before or never written.
        const data_at = try files.nextData(handle, begin_at) orelse collection.size;
        const first = @min(data_at / block.block_size * block.block_size, collection.size);
        collection.at = @max(begin_at, first);
        if (collection.at >= collection.size) {
            try collection.closeFile(handle);
            continue;
        }
        const end_at = @min(collection.size, collection.at + @max(left, block.block_size));
        left -|= try collection.freeIn(handle, end_at);
    }
    return true;
}

/// Frees the unused ranges between `at` and `end_at`, each as one piece; returns the number of
/// bytes examined.
fn freeIn(collection: *Collection, handle: Handle, end_at: u64) Error!u64 {
    const files = collection.change.store.files;
    const map = collection.mapOfKind();
    const begin_at = collection.at;
    var unused_from = begin_at;
    while (collection.at < end_at) : (collection.at += block.block_size) {
        const place: Location =
            .{ .file = collection.file, .block = @intCast(collection.at / block.block_size) };
        const use = map.useOf(place);
        if (use == .none or (simulated.has(.shared_is_freed) and use == .more)) continue;
        collection.is_used = true;
        try collection.free(files, handle, unused_from, collection.at);
        unused_from = collection.at + block.block_size;
    }
    try collection.free(files, handle, unused_from, @min(collection.at, collection.size));
    collection.seen += collection.at - begin_at;
    return collection.at - begin_at;
}

fn free(collection: *Collection, files: Files, handle: Handle, from: u64, to: u64) Error!void {
    if (from >= to) return;
    const before = try files.allocated(handle);
    try files.punch(handle, from, to - from);
    collection.freed += before -| try files.allocated(handle);
}

fn mapOfKind(collection: *const Collection) *const LocationMap {
    return switch (collection.kind) {
        .extents => &collection.usage.data,
        .nodes => &collection.usage.nodes,
    };
}

fn setOfKind(collection: *Collection) *FileSet {
    const store = collection.change.store;
    return switch (collection.kind) {
        .extents => &store.data,
        .nodes => &store.nodes,
    };
}

/// Returns false after the last file.
fn openNext(collection: *Collection) Error!bool {
    const files = collection.change.store.files;
    while (true) {
        const set = collection.setOfKind();
        collection.file = try set.next(collection.file) orelse switch (collection.kind) {
            .extents => {
                collection.kind = .nodes;
                collection.file = 0;
                continue;
            },
            .nodes => return false,
        };
        const until = collection.until.get(collection.kind);
        if (collection.file > until.file) continue;
        var name: Files.Name = undefined;
        const handle = try files.open(set.nameOf(collection.file, &name), .write);
        errdefer files.close(handle);
        const size = try files.size(handle);
        const is_last = collection.file == until.file;
        collection.size = if (is_last) @min(size, until.offset()) else size;
        collection.handle = handle;
        collection.at = 0;
        collection.is_used = is_last;
        return true;
    }
}

fn closeFile(collection: *Collection, handle: Handle) Error!void {
    const files = collection.change.store.files;
    const set = collection.setOfKind();
    files.close(handle);
    collection.handle = null;
    // The next block is appended to the last file: its number and size keep locations from
    // being used twice.
    if (collection.is_used or try set.next(collection.file) == null) return;
    set.forget(collection.file);
    var name: Files.Name = undefined;
    try files.remove(set.nameOf(collection.file, &name));
    try files.syncDir(collection.kind.dir());
}
