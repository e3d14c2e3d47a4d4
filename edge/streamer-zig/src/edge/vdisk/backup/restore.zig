//! `bootfarm-edge vdisk restore`: makes a store of a backup, in an empty directory. Everything is
//! read back and compared. The directory becomes a store at the very end; until then the same
//! command continues.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const Call = @import("../subcommand.zig");
const CopyRun = @import("copy_run.zig");
const Directory = @import("directory.zig");
const open_store = @import("../open_store.zig");
const output = @import("../output.zig");
const restored_caches = @import("restored_caches.zig");
const Io = std.Io;
const Uuid = base.Uuid;

const Files = store_module.Files;
const Lineage = store_module.backup_record.Lineage;
const LinuxFiles = store_module.LinuxFiles;
const Store = store_module.Store;

pub const Options = struct {
    positional: ?[]const u8 = null,
    rate: CopyRun.Rate = .{},
    /// Takes the whole versions of a backup that was never completed.
    incomplete: bool = false,
};

/// Names the backup that a directory is being restored from.
const marker_name = "restoring";
/// The lost store may have given these counters to versions after the backup. None is used twice.
const counters_skipped = 1_000_000;

pub fn make(call: *const Call, options: *const Options, path: []const u8) Call.Error!u8 {
    const from_path = options.positional orelse
        return call.fail("vdisk restore needs the directory of the backup.", .{});
    cancel.listen();
    var directory: Directory = try .openToRead(call, from_path);
    defer directory.close();
    const record = try Directory.readRecord(call, from_path, directory.on.files()) orelse
        return call.fail("{s} is not a backup of bootfarm-edge vdisk backup.", .{from_path});
    if (record.completed_unix_ms == 0 and !options.incomplete) return call.fail(
        "The backup {s} was never completed: run the backup again. If its store is lost, --incomplete restores the versions that are whole.",
        .{from_path},
    );
    Io.Dir.cwd().createDirPath(call.init.io, path) catch return call.fail(
        "The directory {s} cannot be created; choose one that this user may create.",
        .{path},
    );
    var on = LinuxFiles.open(path) catch |err| return Directory.explain(call, path, err);
    defer on.close();
    const lineage: Lineage = .{
        .id = Call.randomId(),
        .restored_from = record.lineage,
        .sequence = record.sequence,
    };
    _ = try prepare(call, on.files(), path, marker_name, &lineage);
    var from_call = call.*;
    var opened: open_store.OpenStore = undefined;
    from_call.opened = &opened;
    try opened.open(call.gpa, directory.store_path, call.complaint);
    defer opened.close(call.gpa);
    const completed: output.Instant = .{ .unix_ms = record.completed_unix_ms };
    if (record.completed_unix_ms > 0 and !call.is_json)
        host.log.info("Restoring the backup of {f}.", .{completed});
    if (record.is_interrupted and record.completed_unix_ms > 0) host.log.info(
        "A later backup was interrupted: versions that it has added are restored too, and those deleted since {f} are still there.",
        .{completed},
    );
    if (record.problems > 0) host.log.info(
        "The last backup could not copy {d} versions or write caches of the store; it named them.",
        .{record.problems},
    );
    return copy(&from_call, &directory, on.files(), path, options) catch |err| {
        if (err != error.Canceled) return @errorCast(err);
        host.log.info("{s} was interrupted; the same command continues it.", .{call.name});
        return Call.exit_interrupted;
    };
}

/// Refuses a directory with anything in it, except for what the same command has left. Returns
/// whether it has.
pub fn prepare(
    call: *const Call,
    files: Files,
    path: []const u8,
    comptime marker: []const u8,
    lineage: *const Lineage,
) Call.Error!bool {
    const found = Lineage.readNamed(files, marker) catch |err| return switch (err) {
        error.Damaged, error.TooNew => call.fail(
            "{s} has the rest of a restore or move of another release; empty it, or choose another directory.",
            .{path},
        ),
        else => |other| Directory.explain(call, path, other),
    };
    if (found) |other| {
        if (other.restored_from.eql(lineage.restored_from) and
            other.sequence == lineage.sequence) return true;
        return call.fail(
            "{s} has the rest of another interrupted restore or move, or of one of an earlier state; empty it, or choose another directory.",
            .{path},
        );
    }
    var name: store_module.files.Name = undefined;
    var at: []const u8 = "";
    while (files.nextName("", at, &name) catch |err|
        return Directory.explain(call, path, err)) |each|
    {
        at = each;
        if (std.mem.eql(u8, each, "lost+found") or std.mem.eql(u8, each, marker ++ ".new"))
            continue;
        return call.fail(
            "{s} is not empty; choose an empty directory, and then start the edge with it as its store.",
            .{path},
        );
    }
    lineage.writeNamed(files, marker) catch |err| return Directory.explain(call, path, err);
    return false;
}

fn copy(
    call: *const Call,
    directory: *const Directory,
    files: Files,
    path: []const u8,
    options: *const Options,
) (Call.Error || error{Canceled})!u8 {
    const from = call.store();
    var to = from.openCopy(call.gpa, files) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => |other| Directory.explain(call, path, other),
    };
    defer to.close(call.gpa);
    var copying: CopyRun = .init(call, directory.store_path, path, options.rate);
    const result = try copying.run(from, &to, .{});
    const caches = try restored_caches.restore(call, directory, &to, path);
    finish(&to) catch |err| return Directory.explain(call, path, err);
    const problems = result.problems + caches.problems;
    const written: output.Size = .{ .bytes = result.copied_bytes };
    const checked: output.Size = .{ .bytes = result.checked_bytes };
    call.print(
        .{
            .restored = path,
            .store = to.id,
            .versions = result.versions,
            .caches = caches.count,
            .writtenBytes = result.copied_bytes,
            .checkedBytes = result.checked_bytes,
            .problems = problems,
        },
        "restored {d} versions and the writes of {d} devices to {s}: {f} written, {f} read back",
        .{
            result.versions, caches.count, path, written, checked,
        },
    );
    if (problems > 0) return call.fail(
        "{d} versions or write caches named above are damaged in the backup {s} and were not restored; the store {s} has the others.",
        .{ problems, directory.path, path },
    );
    return 0;
}

/// Makes a store of the directory.
fn finish(to: *Store) store_module.files.Error!void {
    const files = to.files;
    const counter = try store_module.counter_file.read(files) orelse 0;
    try store_module.counter_file.write(files, counter +| counters_skipped);
    const lineage = Lineage.readNamed(files, marker_name) catch return error.DiskFailed;
    try (lineage orelse return error.NotFound).write(files);
    try to.allowChanges();
    try to.finishCopy();
    try files.remove(marker_name);
    try files.syncDir("");
}
