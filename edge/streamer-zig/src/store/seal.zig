//! Seals a write layer: makes a version of it without copying, by turning the layer's data file
//! into a file of extents. The written blocks are hashed, nodes are written for them, and then the
//! version appears at once.
//!
//! Each step is durable before the next: rename the layer's `data`, so that nobody can write it any
//! more; write nodes; write a record of the pending change to the store; move the file among the
//! extents; write the manifest; remove the rest of the layer; remove the record. If interrupted
//! before the record, sealing again resumes. If interrupted after it, the next change of the store
//! finishes the job (`recover`).

const std = @import("std");
const base = @import("base");
const appender_module = @import("files/appender.zig");
const block = @import("block.zig");
const block_source = @import("block_source.zig");
const file_set = @import("files/file_set.zig");
const files_module = @import("files/files.zig");
const layer_head = @import("layers/head.zig");
const LayerMap = @import("layers/map.zig");
const manifest_module = @import("tree/manifest.zig");
const node_cache = @import("tree/node_cache.zig");
const simulated = @import("simulated.zig");
const store_dir = @import("files/store_dir.zig");
const tree_builder = @import("tree/builder.zig");
const WriteLayer = @import("layers/write_layer.zig");
const assert = std.debug.assert;
const Sha256 = base.Sha256;
const Uuid = base.Uuid;

const Appender = appender_module.Appender;
const BlockSource = block_source.BlockSource;
const Change = store_dir.Change;
const Files = files_module.Files;
const Handle = files_module.Handle;
const Manifest = manifest_module.Manifest;
const Store = store_dir.Store;
const TreeBuilder = tree_builder.TreeBuilder;

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

const sealed_name = "sealed";
const record_name = "sealing";
/// Blocks that are read and hashed at once.
const piece_blocks = 64;

/// Seals the layer. On failure the layer is unchanged, and its device can keep writing.
///
///
///
/// @param parent the version below the layer; open, so that it cannot be deleted
pub fn seal(
    gpa: std.mem.Allocator,
    change: *Change,
    parent: *const store_dir.OpenVersion,
    wanted: *const Request,
    progress: ?Progress,
) Error!Manifest {
    const store = change.store;
    const files = store.files;
    var dir_buffer: files_module.Name = undefined;
    const dir = layerDir(wanted.version, &dir_buffer);
    const head = WriteLayer.readHead(files, dir) catch |err| return layerError(err);
    try checkBinding(&head, parent, wanted);
    const data = try takeData(files, dir);
    defer files.close(data);
    var is_recorded = false;
    errdefer if (!is_recorded) giveBack(files, wanted.version) catch {};
    var map = try loadMap(gpa, files, dir, &head);
    defer map.deinit(gpa);
    const boot = try findBoot(wanted, files, parent, .{ .head = head, .map = map, .data = data });

    // A running import also creates files: the number is taken before anything refers to it.
    const made_file = try store.data.make();
    files.close(made_file.handle);
    const file = made_file.file;
    errdefer if (!is_recorded) giveFileBack(&store.data, file);
    var nodes: Appender = try .init(gpa, &store.nodes, store.options.file_size_max);
    defer nodes.deinit(gpa);
    const block_count = parent.manifest.blockCount();
    var builder: TreeBuilder = .init(&store.cache, &nodes, parent.manifest.root, block_count);
    try addBlocks(files, data, file, &map, &builder, block_count, progress);
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
    const record: Record = .{
        .file = file,
        .version = wanted.version,
        .manifest = manifest_module.encode(&made, try change.key()),
    };
    // From here on the record may be on the disk, even if this call fails.
    is_recorded = true;
    try store_dir.replaceFile(files, record_name, &record.encode());
    try finish(files, &record);
    return made;
}

fn giveFileBack(set: *file_set.FileSet, file: u24) void {
    var name: files_module.Name = undefined;
    // Empty and unreferenced: if left behind, the next appender uses it.
    set.files.remove(set.nameOf(file, &name)) catch {};
}

const LayerParts = struct { head: layer_head.Head, map: LayerMap, data: Handle };

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
    };
    return boot.find(boot.context, &layer.source());
}

/// Returns the data file of an interrupted attempt to its layer. Requires the store's lock and no
/// record.
pub fn giveBack(files: Files, version: Uuid) files_module.Error!void {
    var dir_buffer: files_module.Name = undefined;
    var names: [2]files_module.Name = undefined;
    const dir = layerDir(version, &dir_buffer);
    const sealed = std.mem.print(&names[0], "{s}/" ++ sealed_name, .{dir}) catch unreachable;
    const data = std.mem.print(&names[1], "{s}/data", .{dir}) catch unreachable;
    if (files.open(data, .read)) |handle|
        return files.close(handle)
    else |err| if (err != error.NotFound) return err;
    files.rename(sealed, data) catch |err| return if (err == error.NotFound) {} else err;
    try files.syncDir(dir);
}

/// Removes the layer of a version that is not sealed. Requires the store's lock. Throws `InUse`.
pub fn removeLayer(files: Files, version: Uuid) (files_module.Error || error{InUse})!void {
    var name: files_module.Name = undefined;
    try giveBack(files, version);
    try WriteLayer.remove(files, layerDir(version, &name));
}

/// Returns the layer with the least id above `above`: of a version in maintenance or a write cache
/// (`layerBytes` tells them apart).
pub fn nextLayer(files: Files, above: ?Uuid) files_module.Error!?Uuid {
    var name: files_module.Name = undefined;
    var at_buffer: files_module.Name = undefined;
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
pub fn layerBytes(files: Files, version: Uuid) files_module.Error!?u64 {
    var names: [2]files_module.Name = undefined;
    const dir = layerDir(version, &names[0]);
    const head = WriteLayer.readHead(files, dir) catch return null;
    if (head.binding.class != .maintenance or !head.binding.version_id.eql(version)) return null;
    for ([_][]const u8{ "data", sealed_name }) |part| {
        const path = std.mem.print(&names[1], "{s}/{s}", .{ dir, part }) catch unreachable;
        const handle = files.open(path, .read) catch |err|
            if (err == error.NotFound) continue else return err;
        defer files.close(handle);
        return try files.allocated(handle);
    }
    return null;
}

/// Finishes what a crash interrupted. Every change of the store begins with this.
pub fn recover(files: Files) (files_module.Error || error{RecordDamaged})!void {
    const handle = files.open(record_name, .read) catch |err|
        return if (err == error.NotFound) {} else err;
    var bytes: [Record.size]u8 = undefined;
    {
        defer files.close(handle);
        if (!try files.readWhole(handle, &bytes, 0)) return error.RecordDamaged;
    }
    try finish(files, &(Record.decode(&bytes) orelse return error.RecordDamaged));
}

/// Each step may have been done already.
fn finish(files: Files, record: *const Record) files_module.Error!void {
    var dir_buffer: files_module.Name = undefined;
    var names: [2]files_module.Name = undefined;
    const dir = layerDir(record.version, &dir_buffer);
    const set: file_set.FileSet = .init(files, .extents);
    const from = std.mem.print(&names[0], "{s}/" ++ sealed_name, .{dir}) catch unreachable;
    files.rename(from, set.nameOf(record.file, &names[1])) catch |err|
        if (err != error.NotFound) return err;
    try files.syncDir(file_set.Kind.extents.dir());
    const manifest_name = store_dir.manifestName(record.version, &names[0]);
    if (files.open(manifest_name, .read)) |there| files.close(there) else |err| {
        if (err != error.NotFound) return err;
        if (!simulated.has(.recovery_without_manifest)) try store_dir.replaceFile(
            files,
            manifest_name,
            &record.manifest,
        );
    }
    for ([_][]const u8{ "head", "head.new", "map", "removed" }) |part| {
        const name = std.mem.print(&names[0], "{s}/{s}", .{ dir, part }) catch unreachable;
        files.remove(name) catch |err| if (err != error.NotFound) return err;
    }
    files.remove(dir) catch |err| if (err != error.NotFound) return err;
    try files.syncDir("layers");
    files.remove(record_name) catch |err| if (err != error.NotFound) return err;
    try files.syncDir("");
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
    if (!std.mem.eql(
        u8,
        &head.binding.version_root,
        &parent.manifest.root.hash,
    )) return error.OtherParent;
    if (head.binding.disk_size != parent.manifest.disk_size) return error.OtherParent;
}

/// Renames the data file, so that no device can write to it.
fn takeData(files: Files, dir: []const u8) Error!Handle {
    var names: [2]files_module.Name = undefined;
    const data = std.mem.print(&names[0], "{s}/data", .{dir}) catch unreachable;
    const sealed = std.mem.print(&names[1], "{s}/" ++ sealed_name, .{dir}) catch unreachable;
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
    var name: files_module.Name = undefined;
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

fn addBlocks(
    files: Files,
    data: Handle,
    file: u24,
    map: *const LayerMap,
    builder: *TreeBuilder,
    block_count: u64,
    progress: ?Progress,
) Error!void {
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
        if (!try files.readWhole(data, bytes, first * block.block_size)) return error.Lost;
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

fn layerError(err: (files_module.Error || layer_head.Problem)) Error {
    return switch (err) {
        error.Damaged => error.DamagedLayer,
        error.NewerFormat => error.NewerLayer,
        else => |other| @errorCast(other),
    };
}

/// Path below the store's directory.
pub fn layerDir(version: Uuid, into: *files_module.Name) []const u8 {
    return std.mem.print(into, "layers/{f}", .{version}) catch unreachable;
}

/// The pending change: enough to finish it.
const Record = struct {
    file: u24,
    version: Uuid,
    manifest: manifest_module.Bytes,

    const magic = "BFSEAL\x00\x01".*;
    const size = magic.len + 4 + 16 + manifest_module.file_size + Sha256.digest_length;

    fn encode(record: *const Record) [size]u8 {
        var bytes: [size]u8 = undefined;
        var writer: base.ByteWriter = .init(&bytes);
        writer.bytes(&magic) catch unreachable;
        writer.int(u32, record.file) catch unreachable;
        writer.bytes(&record.version.bytes) catch unreachable;
        writer.bytes(&record.manifest) catch unreachable;
        Sha256.hash(writer.written(), bytes[writer.position..][0..Sha256.digest_length], .{});
        return bytes;
    }

    fn decode(bytes: *const [size]u8) ?Record {
        const end = size - Sha256.digest_length;
        var digest: [Sha256.digest_length]u8 = undefined;
        Sha256.hash(bytes[0..end], &digest, .{});
        if (!std.mem.eql(
            u8,
            &digest,
            bytes[end..],
        ) or !std.mem.startsWith(u8, bytes, &magic)) return null;
        var cursor: base.Cursor = .init(bytes[magic.len..]);
        const file = std.math.cast(u24, cursor.int(u32) catch unreachable) orelse return null;
        const version: Uuid = .fromBytes((cursor.array(16) catch unreachable).*);
        return .{
            .file = file,
            .version = version,
            .manifest = (cursor.array(manifest_module.file_size) catch unreachable).*,
        };
    }
};
