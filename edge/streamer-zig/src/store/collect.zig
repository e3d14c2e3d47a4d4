//! Garbage collection: frees what no version refers to. Files keep their size and their offsets; what is freed becomes a hole, and a file
//! without any use goes, unless it is the last of its kind. It frees as much at a time as it is told, so that whoever runs it keeps
//! the rate; killed at any moment, it has freed less.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const file_set = @import("files/file_set.zig");
const files_module = @import("files/files.zig");
const import_checkpoint = @import("import/checkpoint.zig");
const place_map = @import("tree/place_map.zig");
const simulated = @import("simulated.zig");
const store_dir = @import("files/store_dir.zig");
const usage_module = @import("usage.zig");

const Change = store_dir.Change;
const FileSet = file_set.FileSet;
const Handle = files_module.Handle;
const Location = block.Location;
const PlaceMap = place_map.PlaceMap;
const Usage = usage_module.Usage;

/// `Unfinished`: how far an import is cannot be read, or does not say what it wrote; that would be freed.
pub const Error = usage_module.Error || error{Unfinished};

pub const Collection = struct {
    /// Holds the right to change the store as long as it goes on.
    change: *Change,
    usage: Usage,
    /// From there on imports that are not done may have written: nothing is freed there.
    until: std.EnumArray(file_set.Kind, Location),
    kind: file_set.Kind = .extents,
    /// The file that is looked at, and how far; 0: the next one begins.
    file: u24 = 0,
    handle: ?Handle = null,
    at: u64 = 0,
    size: u64 = 0,
    is_used: bool = false,
    /// Bytes; of whole files what they took.
    freed: u64 = 0,
    /// Bytes of the files that were looked at.
    seen: u64 = 0,

    pub fn begin(gpa: std.mem.Allocator, change: *Change) Error!Collection {
        return beginAtRate(gpa, change, null);
    }

    /// `rest`: waits while it is counted, too.
    pub fn beginAtRate(gpa: std.mem.Allocator, change: *Change, rest: ?usage_module.Rest) Error!Collection {
        var usage: Usage = try .ofAtRate(gpa, change.store, rest);
        errdefer usage.deinit();
        return .{ .change = change, .until = try takeImports(&usage, change.store), .usage = usage };
    }

    /// None begins or ends meanwhile, which needs the right to change the store; those that run go on behind where they began.
    fn takeImports(usage: *Usage, store: *store_dir.Store) Error!std.EnumArray(file_set.Kind, Location) {
        const end_of_all: Location = .{ .file = std.math.maxInt(u24), .block = std.math.maxInt(u40) };
        var until: std.EnumArray(file_set.Kind, Location) = .initFill(end_of_all);
        if (simulated.has(.import_is_freed)) return until;
        var id: ?base.Uuid = null;
        while (try import_checkpoint.next(store.files, id)) |found| {
            id = found;
            const checkpoint = import_checkpoint.Checkpoint.read(store.files, found) catch |err| switch (err) {
                // It was given up by itself.
                error.NoImport => continue,
                error.Damaged, error.TooNew => return error.Unfinished,
                else => |other| return other,
            };
            if (checkpoint.data_from.file == 0 or checkpoint.nodes_from.file == 0) return error.Unfinished;
            until.set(.extents, least(until.get(.extents), checkpoint.data_from));
            until.set(.nodes, least(until.get(.nodes), checkpoint.nodes_from));
            // Of a parent that may go before it goes on.
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

    /// Looks at up to `budget` bytes of files; false: that was all.
    pub fn step(collection: *Collection, budget: u64) Error!bool {
        const files = collection.change.store.files;
        var left = budget;
        while (left > 0) {
            const handle = collection.handle orelse {
                if (!try collection.openNext()) return false;
                continue;
            };
            const begin_at = collection.at;
            // What was freed before, or never written, is passed at once.
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

    /// Frees what is not used between `at` and `end_at`, in pieces as large as they are; returns how much was looked at.
    fn freeIn(collection: *Collection, handle: Handle, end_at: u64) Error!u64 {
        const files = collection.change.store.files;
        const map = collection.mapOfKind();
        const begin_at = collection.at;
        var unused_from = begin_at;
        while (collection.at < end_at) : (collection.at += block.block_size) {
            const place: Location = .{ .file = collection.file, .block = @intCast(collection.at / block.block_size) };
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

    fn free(collection: *Collection, files: files_module.Files, handle: Handle, from: u64, to: u64) Error!void {
        if (from >= to) return;
        const before = try files.allocated(handle);
        try files.punch(handle, from, to - from);
        collection.freed += before -| try files.allocated(handle);
    }

    fn mapOfKind(collection: *const Collection) *const PlaceMap {
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

    /// False: there is no further file.
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
            var name: files_module.Name = undefined;
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
        // The last file is where the next block is appended: its number and its size keep places from being used twice.
        if (collection.is_used or try set.next(collection.file) == null) return;
        set.forget(collection.file);
        var name: files_module.Name = undefined;
        try files.remove(set.nameOf(collection.file, &name));
        try files.syncDir(collection.kind.dir());
    }
};
