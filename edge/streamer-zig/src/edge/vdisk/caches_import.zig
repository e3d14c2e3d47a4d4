//! `bootfarm-edge vdisk caches import`: brings back what `caches export` wrote. The layer is made
//! beside the others and gets its place when all of the file was checked, so that an interrupted or
//! refused import changes nothing. Works beside a running edge, but not while the device runs.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("cancel.zig");
const caches_export = @import("caches_export.zig");
const Call = @import("subcommand.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Io = std.Io;
const Uuid = base.Uuid;

const device_layers = store_module.device_layers;
const layer_file = store_module.layer_file;
const WriteLayer = store_module.WriteLayer;

pub const Options = struct {
    positional: ?[]const u8 = null,
    /// The vDisk of a private image above a plain file, which does not name it.
    vdisk: ?Uuid = null,
    /// Replaces the writes that the device has here.
    force: bool = false,
};

/// Layers on their way, by the name that they get.
const parent = "caches-import";

pub fn make(call: *const Call, options: *const Options, store_path: []const u8) Call.Error!u8 {
    const path = options.positional orelse
        return call.fail("vdisk caches import needs the file to import.", .{});
    var on = store_module.LinuxFiles.open(store_path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            store_path, store_module.files.sentence(err),
        });
    defer on.close();
    const io = call.init.io;
    const file = Io.Dir.cwd().openFile(io, path, .{}) catch |err|
        return call.fail("{s} cannot be opened ({t}).", .{ path, err });
    defer file.close(io);
    var buffer: [64 << 10]u8 = undefined;
    var reader: Io.File.Reader = .initStreaming(file, io, &buffer);
    const found = layer_file.FileHead.take(&reader.interface) catch |err|
        return explain(call, path, err);
    const binding = &found.head.binding;
    if (binding.class != .edge_persistent and binding.class != .private) return call.fail(
        "{s} has writes of class {t}, which are not imported.",
        .{ path, binding.class },
    );
    // What lies below is known by its root; a plain file has none.
    const is_plain = std.mem.allEqual(u8, &binding.version_root, 0);
    var base_version: BaseVersion = undefined;
    if (!is_plain) try base_version.open(call, store_path, path, binding);
    defer if (!is_plain) base_version.close(call.gpa);
    const below = if (is_plain) null else &base_version;
    const name = try nameOf(call, path, binding, options.vdisk, below);
    var dir: store_module.files.Name = undefined;
    const place: Place = .{
        .files = on.files(),
        .dir = device_layers.dirOf(name, &dir),
        .is_replaced = options.force,
    };
    place.check() catch |err| return explainPlace(call, binding.device_id, err);
    cancel.listen();
    const imported = importFile(call, &place, path, &reader.interface, &found, name) catch |err| {
        if (err != error.Canceled) return @errorCast(err);
        host.log.info("The import was interrupted; nothing was changed.", .{});
        return Call.exit_interrupted;
    };
    const size = imported.blocks * WriteLayer.block_size;
    call.print(
        .{ .imported = binding.device_id, .version = binding.version_id, .writtenBytes = size },
        "imported the writes of {f}: {f} above version {f}",
        .{ binding.device_id, output.Size{ .bytes = size }, binding.version_id },
    );
    return 0;
}

/// Returns the name that a layer gets in this store. `path` names in messages what it comes from,
/// `below` is null above a plain file.
pub fn nameOf(
    call: *const Call,
    path: []const u8,
    binding: *const WriteLayer.Binding,
    vdisk: ?Uuid,
    below: ?*const BaseVersion,
) Call.Error!Uuid {
    const vdisk_id: Uuid = vdisk orelse
        if (below) |version| version.opened.manifest.vdisk else .zero;
    if (binding.class == .private and vdisk_id.eql(.zero)) return call.fail(
        "{s} is a private image above a plain file; name its vDisk with --vdisk ID.",
        .{path},
    );
    return device_layers.nameOf(
        .{ .class = binding.class, .device_id = binding.device_id, .vdisk_id = vdisk_id },
    );
}

/// The version below the writes, which nobody deletes meanwhile. Must not move.
pub const BaseVersion = struct {
    store: open_store.OpenStore,
    opened: store_module.OpenVersion,

    pub fn open(
        below: *BaseVersion,
        call: *const Call,
        store_path: []const u8,
        path: []const u8,
        binding: *const WriteLayer.Binding,
    ) Call.Error!void {
        try below.store.open(call.gpa, store_path, call.complaint);
        errdefer below.store.close(call.gpa);
        const id = binding.version_id;
        below.opened = below.store.store.openVersion(id) catch |err|
            return open_store.explainVersion(store_path, id, err, call.complaint);
        errdefer below.opened.close();
        const manifest = &below.opened.manifest;
        if (!std.mem.eql(u8, &manifest.root.hash, &binding.version_root) or
            manifest.disk_size != binding.disk_size)
            return call.fail(
                "{s} belongs above other bytes than those of version {f} in {s}: the version has another root hash.",
                .{ path, id, store_path },
            );
    }

    pub fn close(below: *BaseVersion, gpa: std.mem.Allocator) void {
        below.opened.close();
        below.store.close(gpa);
    }
};

/// Where the layer goes.
pub const Place = struct {
    files: store_module.Files,
    dir: []const u8,
    is_replaced: bool,

    const Error = store_module.files.Error || error{InUse};

    /// `Exists`: the device has writes here, which are not to be replaced. `InUse`: it runs.
    pub fn check(place: *const Place) Error!void {
        var name: store_module.files.Name = undefined;
        const data = std.mem.print(&name, "{s}/data", .{place.dir}) catch unreachable;
        const handle = place.files.open(data, .write) catch |err|
            return if (err == error.NotFound) {} else err;
        defer place.files.close(handle);
        if (!try place.files.tryLock(handle, true)) return error.InUse;
        if (!place.is_replaced) return error.Exists;
    }

    /// Gives a complete layer its name. A crash in between leaves the device without writes: the
    /// same import again brings them.
    pub fn take(place: *const Place, from: []const u8) Error!void {
        try place.check();
        try WriteLayer.remove(place.files, place.dir);
        place.files.makeDir(device_layers.parent) catch |err| if (err != error.Exists) return err;
        try place.files.rename(from, place.dir);
        try place.files.syncDir(device_layers.parent);
        try place.files.syncDir(parent);
        try place.files.syncDir("");
    }
};

fn importFile(
    call: *const Call,
    place: *const Place,
    path: []const u8,
    from: *Io.Reader,
    found: *const layer_file.FileHead,
    name: Uuid,
) (Call.Error || error{Canceled})!layer_file.Contents {
    const files = place.files;
    const device_id = found.head.binding.device_id;
    var buffer: store_module.files.Name = undefined;
    const made = try prepare(call, files, device_id, name, &buffer);
    errdefer WriteLayer.remove(files, made) catch {};
    var line: output.ProgressLine = .init(call.is_json);
    defer line.end();
    const imported = layer_file.importLayer(
        call.gpa,
        files,
        made,
        from,
        found,
        Call.randomId(),
        .{ .context = &line, .call = caches_export.onProgress },
    ) catch |err| return if (err == error.Canceled) error.Canceled else explain(call, path, err);
    place.take(made) catch |err| return explainPlace(call, device_id, err);
    return imported;
}

/// Returns the directory where a layer is made until it gets its name.
pub fn prepare(
    call: *const Call,
    files: store_module.Files,
    device_id: Uuid,
    name: Uuid,
    into: *store_module.files.Name,
) Call.Error![]const u8 {
    const made = std.mem.print(into, parent ++ "/{f}", .{name}) catch unreachable;
    files.makeDir(parent) catch |err| if (err != error.Exists)
        return explainPlace(call, device_id, err);
    // What an interrupted import left.
    WriteLayer.remove(files, made) catch |err| return if (err == error.InUse) call.failBusy(
        "Another process imports the writes of device {f}; wait until it ends.",
        .{device_id},
    ) else explainPlace(call, device_id, err);
    return made;
}

fn explain(call: *const Call, path: []const u8, problem: layer_file.ImportError) Call.Error {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.NotACache => call.fail("{s} is not a file of bootfarm-edge vdisk caches export.", .{
            path,
        }),
        error.NewerFile => call.fail(
            "A later release has made {s}; update bootfarm-edge.",
            .{path},
        ),
        error.DamagedFile => call.fail(
            "{s} is damaged or incomplete: its checksums do not match. Nothing was imported.",
            .{path},
        ),
        error.ReadFileFailed => call.fail(
            "{s} cannot be read: its disk reports an error.",
            .{path},
        ),
        error.NoSpace => call.fail("The store has no space left for the writes in {s}.", .{path}),
        error.ReadOnly, error.Denied => call.fail("The store cannot be written by this user.", .{}),
        else => |other| call.fail("The writes in {s} cannot be kept: the store fails ({t}).", .{
            path, other,
        }),
    };
}

pub fn explainPlace(call: *const Call, device_id: Uuid, problem: Place.Error) Call.Error {
    return switch (problem) {
        error.InUse => call.fail(
            "The device {f} is running, or its edge has heard from it in the last half minute: shut it down first.",
            .{device_id},
        ),
        error.Exists => call.fail(
            "The device {f} has writes here already; --force replaces them. Nothing was imported.",
            .{device_id},
        ),
        else => |other| call.fail("The writes of device {f} cannot be kept: the store {s}.", .{
            device_id, store_module.files.sentence(other),
        }),
    };
}
