//! `bootfarm-edge vdisk caches restore-copy`: makes the copy of a device's writes, which this edge
//! has from the edge that kept them, the device's write cache here. Only if this edge is the write
//! owner of the device by now: two edges with writes of one device would each have a part of them.
//! Whoever runs it names the edge that kept them: what another edge offers as writes of that device
//! never takes their place. The copy stays; works beside a running edge, but not while the device
//! runs.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const caches_export = @import("../caches_export.zig");
const caches_import = @import("../caches_import.zig");
const Call = @import("../subcommand.zig");
const output = @import("../output.zig");
const WriteOwner = @import("write_owner.zig");
const Uuid = base.Uuid;

const HeldCopy = store_module.HeldCopy;
const WriteLayer = store_module.WriteLayer;
const device_layers = store_module.device_layers;
const names = store_module.copy_names;

pub const Options = struct {
    device: ?Uuid = null,
    /// The edge that has kept the writes until now.
    from: ?Uuid = null,
    /// One of several copies of them.
    copy: ?Uuid = null,
    /// The vDisk of a private image above a plain file, which does not name it.
    vdisk: ?Uuid = null,
    /// Takes a private image instead of the persistent write cache.
    private: bool = false,
    /// Replaces the writes that the device has here.
    force: bool = false,
    data: ?[]const u8 = null,
};

pub fn make(call: *const Call, options: *const Options, store_path: []const u8) Call.Error!u8 {
    const device_id = try call.need(options.device, "--device ID");
    const from = try call.need(options.from, "--from EDGE, the edge that has kept the writes");
    var on = store_module.LinuxFiles.open(store_path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            store_path, store_module.files.sentence(err),
        });
    defer on.close();
    try checkOwner(call, device_id, store_path, options.data);
    const files = on.files();
    const lock = names.lock(files, .held) catch |err| return explain(call, device_id, err, 0);
    defer if (lock) |handle| files.close(handle);
    if (lock == null) return call.failBusy(
        "The edge is bringing a copy up to date; run the command again.",
        .{},
    );
    const found = try find(call, options, device_id, files);
    var dir_name: store_module.files.Name = undefined;
    const dir = found.dir(&dir_name);
    var list = HeldCopy.readList(call.gpa, files, dir) catch |err|
        return explain(call, device_id, err, 0);
    defer list.deinit(call.gpa);
    const binding = &list.head.binding;
    const is_plain = std.mem.allEqual(u8, &binding.version_root, 0);
    var below: caches_import.BaseVersion = undefined;
    if (!is_plain) try below.open(call, store_path, "The copy", binding);
    defer if (!is_plain) below.close(call.gpa);
    const name = try caches_import.nameOf(
        call,
        "The copy",
        binding,
        options.vdisk,
        if (is_plain) null else &below,
    );
    cancel.listen();
    const restored = bringBack(call, options, files, name, dir) catch |err| {
        if (err != error.Canceled) return @errorCast(err);
        host.log.info("It was interrupted; nothing was changed.", .{});
        return Call.exit_interrupted;
    };
    const size = restored.blocks * WriteLayer.block_size;
    const age_s = (host.sys.unixMs() -| list.header.moment_unix_ms) / std.time.ms_per_s;
    call.print(
        .{
            .imported = device_id,
            .edge = from,
            .version = binding.version_id,
            .writtenBytes = size,
            .unixMs = list.header.moment_unix_ms,
        },
        "restored the writes of {f} as edge {f} had them {d} s ago: {f} above version {f}",
        .{ device_id, from, age_s, output.Size{ .bytes = size }, binding.version_id },
    );
    return 0;
}

fn checkOwner(
    call: *const Call,
    device_id: Uuid,
    store_path: []const u8,
    data: ?[]const u8,
) Call.Error!void {
    var arena: std.heap.ArenaAllocator = .init(call.gpa);
    defer arena.deinit();
    // Only edges of a site have copies of others.
    const owner = try WriteOwner.load(call, arena.allocator(), store_path, data) orelse
        return call.fail(
            "The edge's data directory is not beside the store: name it with --data DIR. It says which edge keeps the device's writes.",
            .{},
        );
    return switch (owner.of(device_id)) {
        .own => {},
        .none => call.fail(
            "This edge is not the write owner of device {f}: make it that on the device's page first.",
            .{device_id},
        ),
        .other => |edge| call.fail(
            "The write owner of device {f} is edge {f} ({f}): make this edge the write owner on the device's page first. What the device has written since the copy is lost then.",
            .{ device_id, base.UntrustedText.init(edge.name), edge.id },
        ),
    };
}

fn find(
    call: *const Call,
    options: *const Options,
    device_id: Uuid,
    files: store_module.Files,
) Call.Error!HeldCopy.Walk.Found {
    const class: store_module.layer_head.Class =
        if (options.private) .private else .edge_persistent;
    var found: ?HeldCopy.Walk.Found = null;
    var walk: HeldCopy.Walk = .{ .files = files };
    while (walk.next() catch |err| return explain(call, device_id, err, 0)) |copy| {
        if (!copy.owner.eql(options.from.?)) continue;
        if (options.copy) |id| if (!copy.layer_id.eql(id)) continue;
        var name: store_module.files.Name = undefined;
        const dir = copy.dir(&name);
        HeldCopy.complete(call.gpa, files, dir) catch |err| return explain(call, device_id, err, 0);
        var list = HeldCopy.readList(call.gpa, files, dir) catch |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            // `caches copies` names those that cannot be read.
            else => continue,
        };
        defer list.deinit(call.gpa);
        const binding = &list.head.binding;
        if (binding.class != class or !binding.device_id.eql(device_id)) continue;
        if (found != null) return call.fail(
            "There are several copies of the writes of device {f}; choose one with --copy ID, see bootfarm-edge vdisk caches copies.",
            .{device_id},
        );
        found = copy;
    }
    return found orelse call.fail(
        "There is no copy of class {t} of the writes of device {f} from edge {f} here; see bootfarm-edge vdisk caches copies.",
        .{ class, device_id, options.from.? },
    );
}

fn bringBack(
    call: *const Call,
    options: *const Options,
    files: store_module.Files,
    name: Uuid,
    dir: []const u8,
) (Call.Error || error{Canceled})!store_module.layer_file.Contents {
    const device_id = options.device.?;
    var layer_name: store_module.files.Name = undefined;
    const place: caches_import.Place = .{
        .files = files,
        .dir = device_layers.dirOf(name, &layer_name),
        .is_replaced = options.force,
    };
    place.check() catch |err| return caches_import.explainPlace(call, device_id, err);
    var made_name: store_module.files.Name = undefined;
    const made = try caches_import.prepare(call, files, device_id, name, &made_name);
    errdefer WriteLayer.remove(files, made) catch {};
    var line: output.ProgressLine = .init(call.is_json);
    defer line.end();
    var damaged_at: u64 = 0;
    const restored = HeldCopy.restore(
        call.gpa,
        files,
        dir,
        made,
        Call.randomId(),
        .{ .context = &line, .call = caches_export.onProgress },
        &damaged_at,
    ) catch |err| return if (err == error.Canceled)
        error.Canceled
    else
        explain(call, device_id, err, damaged_at);
    place.take(made) catch |err| return caches_import.explainPlace(call, device_id, err);
    return restored;
}

fn explain(
    call: *const Call,
    device_id: Uuid,
    problem: HeldCopy.RestoreError,
    damaged_at: u64,
) Call.Error {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.DamagedCopy => call.fail(
            "The copy of the writes of device {f} is damaged on this edge's disk, in the MiB at byte {d}. Nothing was changed.",
            .{ device_id, damaged_at },
        ),
        error.Damaged => call.fail(
            "The list of the copy of device {f} is damaged on this edge's disk. Nothing was changed.",
            .{device_id},
        ),
        error.NewerFormat, error.NewerFile => call.fail(
            "A later release has made the copy of device {f}; update bootfarm-edge.",
            .{device_id},
        ),
        error.NoSpace => call.fail("The store has no space left for the writes.", .{}),
        error.ReadOnly, error.Denied => call.fail("The store cannot be written by this user.", .{}),
        else => |other| call.fail("The writes of device {f} cannot be restored ({t}).", .{
            device_id, other,
        }),
    };
}
