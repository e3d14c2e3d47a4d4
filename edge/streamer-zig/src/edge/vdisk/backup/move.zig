//! `bootfarm-edge vdisk move`: copies a store to another disk while its edge serves, then, while
//! nobody may change it, what is new and the writes of devices. The store's path is then a symbolic
//! link to the new place, and a reload of the edge brings its devices there without ending a boot.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const Call = @import("../subcommand.zig");
const CopyRun = @import("copy_run.zig");
const Directory = @import("directory.zig");
const FencedStore = @import("fenced_store.zig");
const moved_layers = @import("moved_layers.zig");
const output = @import("../output.zig");
const restore = @import("restore.zig");
const Io = std.Io;

const Lineage = store_module.backup_record.Lineage;
const LinuxFiles = store_module.LinuxFiles;
const Store = store_module.Store;

pub const Options = struct {
    positional: ?[]const u8 = null,
    rate: CopyRun.Rate = .{},
};

/// Names the store that a directory is being moved from.
const marker_name = "moving";

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const path = options.positional orelse
        return call.fail("vdisk move needs the new directory of the store.", .{});
    cancel.listen();
    const io, const cwd = .{ call.init.io, Io.Dir.cwd() };
    cwd.createDirPath(io, path) catch return call.fail(
        "The directory {s} cannot be created; choose one that this user may create.",
        .{path},
    );
    try Directory.refuseNested(call, path);
    var on = LinuxFiles.open(path) catch |err| return Directory.explain(call, path, err);
    defer on.close();
    const id = call.store().id;
    const marker: Lineage = .{ .id = id, .restored_from = id, .sequence = 0 };
    const continues = try restore.prepare(call, on.files(), path, marker_name, &marker);
    // A move that was interrupted behind its copies begins again.
    if (continues) FencedStore.reopen(call.files()) catch |err| return call.failStore(err);
    return move(call, on.files(), path, options.rate) catch |err| {
        if (err != error.Canceled) return @errorCast(err);
        host.log.info("{s} was interrupted; the same command continues it.", .{call.name});
        return Call.exit_interrupted;
    };
}

fn move(
    call: *const Call,
    files: store_module.Files,
    path: []const u8,
    rate: CopyRun.Rate,
) (Call.Error || error{Canceled})!u8 {
    const from = call.store();
    var to = from.openCopy(call.gpa, files) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => |other| Directory.explain(call, path, other),
    };
    defer to.close(call.gpa);
    try refuseImports(call);
    // A store that was moved already is refused before hours of copying.
    var probe = try call.lock();
    probe.end();
    var copying: CopyRun = .init(call, call.path(), path, rate);
    try expectWhole(call, &try copying.run(from, &to, .{}));
    const held_us = host.sys.monotonicUs();
    var change = try call.lock();
    defer change.end();
    try refuseImports(call);
    var in_use: store_module.layer_head.Head = undefined;
    var fenced = FencedStore.hold(call.gpa, call.files(), &in_use) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.InUse => call.failBusy(
            "All versions are copied. The device {f} runs, and keeps its writes in this store: shut such devices down, or stop the edge, and run the same command again; it then takes as long as the writes need.",
            .{in_use.binding.device_id},
        ),
        else => |other| call.failStore(other),
    };
    defer fenced.release();
    var last: CopyRun = .init(call, call.path(), path, .{});
    const result = try last.run(from, &to, .{});
    try expectWhole(call, &result);
    const layers = try copyLayers(call, files, path);
    fenced.close() catch |err| return call.failStore(err);
    finish(call, &to) catch |err| return Directory.explain(call, path, err);
    const is_linked = try link(call, path);
    files.remove(marker_name) catch |err| return Directory.explain(call, path, err);
    const held_ms = (host.sys.monotonicUs() - held_us) / std.time.us_per_ms;
    const hint = if (is_linked)
        "reload the edge (systemctl reload bootfarm-edge): its devices continue there"
    else
        "start the edge with it as its store";
    call.print(
        .{
            .moved = path,
            .versions = result.versions,
            .caches = layers,
            .heldMs = held_ms,
            .isLinked = is_linked,
        },
        "moved {d} versions and the writes of {d} devices to {s}, of which the store was held for {d} ms; {s}",
        .{ result.versions, layers, path, held_ms, hint },
    );
    return 0;
}

fn copyLayers(call: *const Call, to: store_module.Files, path: []const u8) Call.Error!u64 {
    return moved_layers.copyAll(call.gpa, call.files(), to) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.InUse => call.failBusy("{s} is in use already.", .{path}),
        error.SourceFailed => call.fail(
            "The writes of devices in {s} cannot be read: its disk reports an error.",
            .{call.path()},
        ),
        else => |other| Directory.explain(call, path, other),
    };
}

fn refuseImports(call: *const Call) Call.Error!void {
    const found = store_module.import_checkpoint.Checkpoint.next(call.files(), null) catch |err|
        return call.failStore(err);
    if (found) |id| return call.failBusy(
        "The import of version {f} is not finished: wait for it, resume it, or abandon it (bootfarm-edge vdisk import --store {s} --abandon {f}).",
        .{ id, call.path(), id },
    );
}

fn expectWhole(call: *const Call, result: *const store_module.StoreCopy.Result) Call.Error!void {
    if (result.problems > 0) return call.fail(
        "The store {s} stays where it is: {d} versions named above are damaged. Repair or delete them, and run the command again.",
        .{ call.path(), result.problems },
    );
}

/// Makes a store of the directory.
fn finish(call: *const Call, to: *Store) store_module.files.Error!void {
    const lineage = Lineage.readNamed(call.files(), store_module.backup_record.lineage_name) catch
        return error.DiskFailed;
    if (lineage) |own| try own.write(to.files);
    try to.allowChanges();
    try to.finishCopy();
}

/// Points the store's path to the new place, if it is a symbolic link. Atomic.
fn link(call: *const Call, path: []const u8) Call.Error!bool {
    const io, const cwd = .{ call.init.io, Io.Dir.cwd() };
    const arena = call.init.arena.allocator();
    const name = std.mem.trimEnd(u8, call.path(), "/");
    var buffer: [std.fs.max_path_bytes]u8 = undefined;
    _ = cwd.readLink(io, name, &buffer) catch return false;
    const size = cwd.realPathFile(io, path, &buffer) catch |err|
        return call.fail("{s} is complete, but its path cannot be read ({t}).", .{ path, err });
    const next = try std.fmt.allocPrint(arena, "{s}.next", .{name});
    cwd.deleteFile(io, next) catch {};
    cwd.symLink(io, buffer[0..size], next, .{}) catch |err| return call.fail(
        "{s} is complete, but {s} cannot be made ({t}): point {s} to it yourself.",
        .{ path, next, err, name },
    );
    cwd.rename(next, cwd, name, io) catch |err| return call.fail(
        "{s} is complete, but {s} cannot be replaced ({t}): point it there yourself.",
        .{ path, name, err },
    );
    return true;
}
