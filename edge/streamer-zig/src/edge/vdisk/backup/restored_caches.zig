//! The write caches of a backup become layers of the store that is restored.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const caches_export = @import("../caches_export.zig");
const Call = @import("../subcommand.zig");
const Directory = @import("directory.zig");
const output = @import("../output.zig");
const Io = std.Io;
const Uuid = base.Uuid;

const device_layers = store_module.device_layers;
const layer_file = store_module.layer_file;
const Store = store_module.Store;
const WriteLayer = store_module.WriteLayer;

pub const Restored = struct { count: u64 = 0, problems: u64 = 0 };

const Problem = layer_file.ImportError || error{ OtherBase, NoBase, NotOpened };

/// Nobody has the store yet.
pub fn restore(
    call: *const Call,
    directory: *const Directory,
    to: *Store,
    to_path: []const u8,
) (Call.Error || error{Canceled})!Restored {
    var restored: Restored = .{};
    var on = directory.on;
    const files = on.files();
    var name: store_module.files.Name = undefined;
    var at: []const u8 = "";
    while (files.nextName(Directory.caches_name, at, &name) catch |err|
        return Directory.explain(call, directory.path, err)) |found|
    {
        at = found;
        const layer = Uuid.parse(
            std.mem.cutSuffix(u8, found, Directory.cache_suffix) orelse continue,
        ) catch continue;
        if (restoreOne(call, directory, to, layer)) |_| {
            restored.count += 1;
        } else |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            error.Canceled => return error.Canceled,
            error.NoSpace, error.ReadOnly, error.Denied => |other| {
                const problem: store_module.files.Error = other;
                return Directory.explain(call, to_path, problem);
            },
            else => |other| {
                restored.problems += 1;
                const why = sentence(other);
                call.print(
                    .{ .cache = layer, .problem = why },
                    "write cache {f}: {s}",
                    .{ layer, why },
                );
            },
        }
    }
    return restored;
}

fn restoreOne(
    call: *const Call,
    directory: *const Directory,
    to: *Store,
    layer: Uuid,
) Problem!void {
    const io = call.init.io;
    const path = try directory.cachePath(
        call.init.arena.allocator(),
        &layer.toText(),
        Directory.cache_suffix,
    );
    const file = Io.Dir.cwd().openFile(io, path, .{}) catch return error.NotOpened;
    defer file.close(io);
    var buffer: [64 << 10]u8 = undefined;
    var reader: Io.File.Reader = .initStreaming(file, io, &buffer);
    const head: layer_file.FileHead = try .take(&reader.interface);
    const binding = &head.head.binding;
    // What lies below is known by its root; a plain file has none.
    if (!std.mem.allEqual(u8, &binding.version_root, 0)) {
        const manifest = to.manifestOf(binding.version_id) catch return error.NoBase;
        if (!std.mem.eql(u8, &manifest.root.hash, &binding.version_root) or
            manifest.disk_size != binding.disk_size) return error.OtherBase;
    }
    var name: store_module.files.Name = undefined;
    const dir = device_layers.dirOf(layer, &name);
    // What an interrupted restore has left.
    try WriteLayer.remove(to.files, dir);
    var line: output.ProgressLine = .init(call.is_json);
    defer line.end();
    errdefer WriteLayer.remove(to.files, dir) catch {};
    const contents = try layer_file.importLayer(
        call.gpa,
        to.files,
        dir,
        &reader.interface,
        &head,
        Call.randomId(),
        .{ .context = &line, .call = caches_export.onProgress },
    );
    try to.files.syncDir(device_layers.parent);
    const size = contents.blocks * WriteLayer.block_size;
    call.print(
        .{ .imported = binding.device_id, .version = binding.version_id, .writtenBytes = size },
        "restored the writes of {f}: {f} above version {f}",
        .{ binding.device_id, output.Size{ .bytes = size }, binding.version_id },
    );
}

fn sentence(problem: Problem) []const u8 {
    return switch (problem) {
        error.NoBase => "the version below it is not in the backup",
        error.OtherBase => "it belongs above other bytes than those of its version",
        error.NotOpened, error.ReadFileFailed => "it cannot be read from the backup",
        error.NotACache, error.DamagedFile => "its file in the backup is damaged",
        error.NewerFile, error.NewerFormat => "a later release has made it; update bootfarm-edge",
        else => "it cannot be written: the store's disk reports an error",
    };
}
