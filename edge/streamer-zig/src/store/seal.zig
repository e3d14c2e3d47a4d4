//! Seals a write layer: makes a version of it without copying, by turning the layer's data file
//! into a file of extents. The written blocks are hashed, nodes are written for them, and then the
//! version appears at once.
//!
//! Each step is durable before the next: rename the layer's `data`, so that nobody can write it any
//! more; write nodes; write a record of the pending change to the store; move the file among the
//! extents; write the manifest; remove the rest of the layer; remove the record. If interrupted
//! before the record, sealing again resumes. If interrupted after it, the next change of the store
//! finishes the job (pending_seal.zig).

const std = @import("std");
const base = @import("base");
const Appender = @import("files/appender.zig");
const block = @import("block.zig");
const BlockSource = @import("block_source.zig");
const FileSet = @import("files/file_set.zig");
const Files = @import("files/files.zig");
const layer_head = @import("layers/head.zig");
const LayerSums = @import("layers/sums.zig");
const LayerMap = @import("layers/map.zig");
const manifest_module = @import("tree/manifest.zig");
const node_cache = @import("tree/node_cache.zig");
const pending_seal = @import("pending_seal.zig");
const simulated = @import("simulated.zig");
const store_dir = @import("files/store_dir.zig");
const TreeBuilder = @import("tree/builder.zig");
const WriteLayer = @import("layers/write_layer.zig");
const assert = std.debug.assert;
const Sha256 = base.Sha256;
const Uuid = base.Uuid;

const Change = store_dir.Change;
const Handle = Files.Handle;
const Manifest = manifest_module.Manifest;
const Store = store_dir.Store;

/// `NotSealable`: a write cache, neither a maintenance version nor a private image. `InUse`: its
/// device is writing. `OtherParent`: it is above another version. `Lost`, `DamagedLayer`: the layer
/// is incomplete; no version is made of it. `Cancelled`: the progress callback stopped it.
/// `NoBoot`: returned by `Request.boot`.
pub const Error = store_dir.Error || store_dir.VersionError || node_cache.Error ||
    error{
        NotSealable,
        InUse,
        OtherParent,
        Lost,
        DamagedLayer,
        NewerLayer,
        Cancelled,
        NoBoot,
        OutOfMemory,
    };

pub const Request = struct {
    /// The layer is in `layers/<version>`; this becomes the version's id.
    version: Uuid,
    number: u32,
    created_unix_ms: u64,
    kernel: ?manifest_module.BootFile = null,
    initrd: ?manifest_module.BootFile = null,
    command_line: []const u8 = "",
    /// Replaces the three fields above: reads the disk, which nobody writes then, and returns what
    /// the version boots with.
    boot: ?Boot = null,
};

pub const Boot = struct {
    context: *anyopaque,
    find: *const fn (context: *anyopaque, disk: *const BlockSource) error{
        NoBoot,
        OutOfMemory,
    }!BootConfig,

    pub const BootConfig = struct {
        kernel: ?manifest_module.BootFile,
        initrd: ?manifest_module.BootFile,
        command_line: []const u8,
    };
};

/// Called now and then with the bytes done and the total; false stops the job.
pub const Progress = struct {
    context: *anyopaque,
    tell: *const fn (context: *anyopaque, done: u64, total: u64) bool,
};

/// Blocks that are read and hashed at once.
const piece_blocks = 64;

/// Seals the layer. On failure the layer is unchanged, and its device can keep writing.
/// `parent` is the version below the layer; open, so that it cannot be deleted.
pub fn seal(
    gpa: std.mem.Allocator,
    change: *Change,
    parent: *const store_dir.OpenVersion,
    wanted: *const Request,
    progress: ?Progress,
) Error!Manifest {
    const store = change.store;
    const files = store.files;
    var dir_buffer: Files.Name = undefined;
    const dir = pending_seal.layerDir(wanted.version, &dir_buffer);
    const head = WriteLayer.readHead(files, dir) catch |err| return layerError(err);
    try checkBinding(&head, parent, wanted);
    const data = try takeData(files, dir);
    defer files.close(data);
    var is_recorded = false;
    errdefer if (!is_recorded) giveBack(files, wanted.version) catch {};
    var map = try loadMap(gpa, files, dir, &head);
    defer map.deinit(gpa);
    const sums = try loadSums(files, dir, &head);
    defer if (sums) |known| files.close(known.handle);
    const parts: LayerParts = .{ .head = head, .map = map, .data = data, .sums = sums };
    const boot = try findBoot(wanted, files, parent, parts);

    // A running import also creates files: the number is taken before anything refers to it.
    const made_file = try store.data.make();
    files.close(made_file.handle);
    const file = made_file.file;
    errdefer if (!is_recorded) giveFileBack(&store.data, file);
    var nodes: Appender = try .init(gpa, &store.nodes, store.options.file_size_max);
    defer nodes.deinit(gpa);
    const block_count = parent.manifest.blockCount();
    var builder: TreeBuilder = .init(&store.cache, &nodes, parent.manifest.root, block_count);
    try addBlocks(files, &parts, file, &builder, block_count, progress);
    const root = try builder.finish();
    try nodes.sync();
    try files.sync(data);

    var made = parent.manifest;
    made.version = wanted.version;
    made.parent = parent.manifest.version;
    made.number = wanted.number;
    made.counter = try change.nextCounter();
    made.created_unix_ms = wanted.created_unix_ms;
    made.root = root;
    made.kernel = boot.kernel;
    made.initrd = boot.initrd;
    made.command_line = @TypeOf(made.command_line).fromSlice(boot.command_line) catch
        return error.Malformed;
    const record: pending_seal.Record = .{
        .file = file,
        .version = wanted.version,
        .manifest = manifest_module.encode(&made, try change.key()),
    };
    // From here on the record may be on the disk, even if this call fails.
    is_recorded = true;
    try files.replace(pending_seal.record_name, &record.encode());
    try pending_seal.finish(files, &record);
    return made;
}

fn giveFileBack(set: *FileSet, file: block.FileNumber) void {
    var name: Files.Name = undefined;
    // Empty and unreferenced: if left behind, the next appender uses it.
    set.files.remove(set.nameOf(file, &name)) catch {};
}

const LayerParts =
    struct { head: layer_head.Head, map: LayerMap, data: Handle, sums: ?LayerSums };

fn findBoot(
    wanted: *const Request,
    files: Files,
    parent: *const store_dir.OpenVersion,
    taken: LayerParts,
) error{ NoBoot, OutOfMemory }!Boot.BootConfig {
    const boot = wanted.boot orelse
        return .{
            .kernel = wanted.kernel,
            .initrd = wanted.initrd,
            .command_line = wanted.command_line,
        };
    var below = parent.reader;
    var layer: WriteLayer = .{
        .files = files,
        .below = below.source(),
        .head = taken.head,
        .map = taken.map,
        .data = taken.data,
        .map_file = null,
        .sums = taken.sums,
    };
    return boot.find(boot.context, &layer.source());
}

/// Returns the data file of an interrupted attempt to its layer. Requires the store's lock and no
/// record.
pub fn giveBack(files: Files, version: Uuid) Files.Error!void {
    var dir_buffer: Files.Name = undefined;
    var names: [2]Files.Name = undefined;
    const dir = pending_seal.layerDir(version, &dir_buffer);
    const sealed =
        std.mem.print(&names[0], "{s}/" ++ pending_seal.sealed_name, .{dir}) catch unreachable;
    const data = std.mem.print(&names[1], "{s}/data", .{dir}) catch unreachable;
    if (files.open(data, .read)) |handle|
        return files.close(handle)
    else |err| if (err != error.NotFound) return err;
    files.rename(sealed, data) catch |err| return if (err == error.NotFound) {} else err;
    try files.syncDir(dir);
}

/// Removes the layer of a version that is not sealed. Requires the store's lock. Throws `InUse`.
pub fn removeLayer(files: Files, version: Uuid) (Files.Error || error{InUse})!void {
    var name: Files.Name = undefined;
    try giveBack(files, version);
    try WriteLayer.remove(files, pending_seal.layerDir(version, &name));
}

/// Returns the layer with the least id above `above`: of a version in maintenance or a write cache
/// (`layerBytes` tells them apart).
pub fn nextLayer(files: Files, above: ?Uuid) Files.Error!?Uuid {
    var name: Files.Name = undefined;
    var at_buffer: Files.Name = undefined;
    var at: []const u8 = if (above) |id| std.mem.print(&at_buffer, "{f}", .{id}) catch
        unreachable else "";
    while (try files.nextName("layers", at, &name)) |found| {
        @memcpy(at_buffer[0..found.len], found);
        at = at_buffer[0..found.len];
        return Uuid.parse(found) catch continue;
    }
    return null;
}

/// Returns the bytes of the layer of a version in maintenance; null if there is none or it cannot
/// be read.
pub fn layerBytes(files: Files, version: Uuid) Files.Error!?u64 {
    var names: [2]Files.Name = undefined;
    const dir = pending_seal.layerDir(version, &names[0]);
    const head = WriteLayer.readHead(files, dir) catch return null;
    if (head.binding.class != .maintenance or !head.binding.version_id.eql(version)) return null;
    for ([_][]const u8{ "data", pending_seal.sealed_name }) |part| {
        const path = std.mem.print(&names[1], "{s}/{s}", .{ dir, part }) catch unreachable;
        const handle = files.open(path, .read) catch |err|
            if (err == error.NotFound) continue else return err;
        defer files.close(handle);
        return try files.allocated(handle);
    }
    return null;
}

fn checkBinding(
    head: *const layer_head.Head,
    parent: *const store_dir.OpenVersion,
    wanted: *const Request,
) Error!void {
    switch (head.binding.class) {
        .maintenance, .private => {},
        .edge, .edge_persistent => return error.NotSealable,
    }
    if (!head.binding.version_id.eql(wanted.version)) return error.OtherParent;
    if (!std.mem.eql(u8, &head.binding.version_root, &parent.manifest.root.hash))
        return error.OtherParent;
    if (head.binding.disk_size != parent.manifest.disk_size) return error.OtherParent;
}

/// Renames the data file, so that no device can write to it.
fn takeData(files: Files, dir: []const u8) Error!Handle {
    var names: [2]Files.Name = undefined;
    const data = std.mem.print(&names[0], "{s}/data", .{dir}) catch unreachable;
    const sealed =
        std.mem.print(&names[1], "{s}/" ++ pending_seal.sealed_name, .{dir}) catch unreachable;
    const handle = files.open(data, .write) catch |err| {
        if (err != error.NotFound) return err;
        // An earlier attempt renamed it and may have been killed before that was durable.
        const taken = files.open(sealed, .write) catch |again|
            return if (again == error.NotFound) error.Lost else again;
        errdefer files.close(taken);
        try files.syncDir(dir);
        return taken;
    };
    errdefer files.close(handle);
    if (!try files.tryLock(handle, true)) return error.InUse;
    try files.rename(data, sealed);
    try files.syncDir(dir);
    return handle;
}

fn loadMap(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    head: *const layer_head.Head,
) Error!LayerMap {
    var name: Files.Name = undefined;
    const path = std.mem.print(&name, "{s}/map", .{dir}) catch unreachable;
    const handle = files.open(path, .read) catch |err|
        return if (err == error.NotFound) error.Lost else err;
    defer files.close(handle);
    var map: LayerMap = try .init(gpa, head.binding.disk_size, head.layer_id);
    errdefer map.deinit(gpa);
    map.load(files, handle) catch |err|
        return if (err == error.Damaged) error.DamagedLayer else @errorCast(err);
    return map;
}

/// Null: a release without checksums has written the layer.
fn loadSums(files: Files, dir: []const u8, head: *const layer_head.Head) Error!?LayerSums {
    if (!head.has_sums) return null;
    var name: Files.Name = undefined;
    const path = std.mem.print(&name, "{s}/sums", .{dir}) catch unreachable;
    const handle = files.open(path, .write) catch |err|
        return if (err == error.NotFound) error.Lost else err;
    errdefer files.close(handle);
    return LayerSums.load(files, handle, head.layer_id, head.binding.disk_size) catch |err|
        return if (err == error.Damaged) error.DamagedLayer else @errorCast(err);
}

fn addBlocks(
    files: Files,
    layer: *const LayerParts,
    file: block.FileNumber,
    builder: *TreeBuilder,
    block_count: u64,
    progress: ?Progress,
) Error!void {
    const map = &layer.map;
    var piece: [piece_blocks]block.Block = undefined;
    var hashes: [piece_blocks]block.Hash = undefined;
    var done: u64 = 0;
    const total = map.owned.count() * block.block_size;
    var next = map.nextOwned(0);
    while (next) |first| {
        if (first >= block_count) break;
        if (simulated.has(.seal_without_last) and map.nextOwned(first + 1) == null) break;
        const count = map.runLength(first, @min(piece_blocks, block_count - first));
        const bytes = std.mem.sliceAsBytes(piece[0..@intCast(count)]);
        if (!try files.readWhole(layer.data, bytes, first * block.block_size)) return error.Lost;
        if (layer.sums) |*sums|
            if (try sums.judge(files, first, bytes, .waiting) != .ok) return error.DamagedLayer;
        block.hashAll(bytes, hashes[0..@intCast(count)]);
        for (piece[0..@intCast(count)], 0..) |*one, index| {
            const at = first + index;
            try builder.put(at, if (block.isZeros(one)) .zeros else .{
                .hash = hashes[index],
                .location = .{ .file = file, .block = @intCast(at) },
            });
        }
        done += bytes.len;
        if (progress) |told| if (!told.tell(told.context, done, total)) return error.Cancelled;
        next = map.nextOwned(first + count);
    }
}

fn layerError(err: (Files.Error || layer_head.Problem)) Error {
    return switch (err) {
        error.Damaged => error.DamagedLayer,
        error.NewerFormat => error.NewerLayer,
        else => |other| @errorCast(other),
    };
}
