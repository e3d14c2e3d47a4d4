//! `bootfarm-edge vdisk backup`: copies a store, and what its devices have written, to a directory.
//! Works beside a running edge and changes of the store. The next backup to the same directory
//! copies what is new.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const caches_snapshot = @import("../caches_snapshot.zig");
const Call = @import("../subcommand.zig");
const CopyRun = @import("copy_run.zig");
const Directory = @import("directory.zig");
const output = @import("../output.zig");
const Uuid = base.Uuid;

const device_layers = store_module.device_layers;
const Lineage = store_module.backup_record.Lineage;
const Record = store_module.backup_record.Record;

pub const Options = struct {
    positional: ?[]const u8 = null,
    rate: CopyRun.Rate = .{},
    /// Compares all of the backup, and replaces what is damaged in it.
    check: bool = false,
    /// Keeps versions that the store no longer has.
    keep_deleted: bool = false,
};

const next_suffix = ".next";

const BackupRun = struct {
    call: *const Call,
    directory: *Directory,
    record: Record,
    /// Caches that are in the backup, and those that should be.
    caches: u64 = 0,
    lost_caches: u64 = 0,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const path = options.positional orelse
        return call.fail("vdisk backup needs a directory to write to.", .{});
    cancel.listen();
    var directory: Directory = try .openToWrite(call, path);
    defer directory.close();
    var running: BackupRun = .{
        .call = call,
        .directory = &directory,
        .record = try begin(call, &directory),
    };
    return copy(&running, options) catch |err| {
        if (err != error.Canceled) return @errorCast(err);
        host.log.info("{s} was interrupted; the same command continues it.", .{call.name});
        return Call.exit_interrupted;
    };
}

/// Notes that the backup is about to change. From here on only this store may continue it.
fn begin(call: *const Call, directory: *Directory) Call.Error!Record {
    const store = call.store();
    const path, const files = .{ directory.path, directory.on.files() };
    const lineage = Lineage.read(call.files(), store.id) catch |err| return switch (err) {
        error.Damaged, error.TooNew => call.fail(
            "The store {s} cannot be backed up: its file lineage is damaged, or of a later release.",
            .{call.path()},
        ),
        else => |other| call.failStore(other),
    };
    var record = try Directory.readRecord(call, path, files) orelse Record{
        .store = store.id,
        .lineage = lineage.id,
        .sequence = 0,
        .completed_unix_ms = 0,
        .is_interrupted = true,
        .versions = 0,
        .caches = 0,
        .problems = 0,
    };
    if (!record.store.eql(store.id)) return call.fail(
        "{s} has the backup of another store, {f}; choose another directory.",
        .{ path, record.store },
    );
    if (!record.isContinuedBy(store.id, &lineage)) return call.fail(
        "{s} has the backup of another copy of this store: one of them was restored, and both have changed since. Choose another directory.",
        .{path},
    );
    record.lineage = lineage.id;
    record.sequence += 1;
    record.is_interrupted = true;
    record.write(files) catch |err| return Directory.explain(call, path, err);
    return record;
}

fn copy(running: *BackupRun, options: *const Options) (Call.Error || error{Canceled})!u8 {
    const call, const directory = .{ running.call, running.directory };
    // Versions are copied afterwards, so that those below the writes are among them.
    try copyCaches(running);
    const to_files = directory.store_on.files();
    var to = call.store().openCopy(call.gpa, to_files) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => |other| Directory.explain(call, directory.path, other),
    };
    defer to.close(call.gpa);
    to.finishCopy() catch |err| return Directory.explain(call, directory.path, err);
    var copying: CopyRun = .init(call, call.path(), directory.path, options.rate);
    const result = try copying.run(call.store(), &to, .{
        .checks_all = options.check,
        .removes = !options.keep_deleted,
    });
    // Versions with packed units may have come.
    to.finishCopy() catch |err| return Directory.explain(call, directory.path, err);
    try takeCaches(running);
    nameUnfinished(call);
    const problems = result.problems + running.lost_caches;
    running.record.versions = result.versions;
    running.record.caches = running.caches;
    running.record.problems = problems;
    running.record.is_interrupted = false;
    running.record.completed_unix_ms = host.sys.unixMs();
    running.record.write(directory.on.files()) catch |err|
        return Directory.explain(call, directory.path, err);
    const written: output.Size = .{ .bytes = result.copied_bytes };
    const checked: output.Size = .{ .bytes = result.checked_bytes };
    call.print(
        .{
            .backup = directory.path,
            .versions = result.versions,
            .caches = running.caches,
            .writtenBytes = result.copied_bytes,
            .checkedBytes = result.checked_bytes,
            .problems = problems,
        },
        "backed up {d} versions and the writes of {d} devices to {s}: {f} written, {f} read back",
        .{
            result.versions, running.caches, directory.path, written, checked,
        },
    );
    if (problems > 0) return call.fail(
        "{d} versions or write caches named above are not in the backup {s}, or not as they are now. Repair them, or delete them, and run the command again.",
        .{ problems, directory.path },
    );
    return 0;
}

/// Writes the caches that outlive their process beside those of the last backup.
fn copyCaches(running: *BackupRun) (Call.Error || error{Canceled})!void {
    const call, const directory = .{ running.call, running.directory };
    const arena = call.init.arena.allocator();
    var walk: device_layers.LayerIterator = .{ .files = call.files() };
    while (walk.next() catch |err| return call.failStore(err)) |layer| {
        if (cancel.is_asked.load(.monotonic)) return error.Canceled;
        const name = try arena.dupe(u8, layer.name);
        const head = layer.head catch |err| {
            if (err == error.NotFound) continue;
            lose(running, name, "its header is damaged, or of a later release");
            continue;
        };
        switch (head.binding.class) {
            .edge_persistent, .private => {},
            .edge => continue,
            .maintenance => {
                call.print(
                    .{ .notBackedUp = head.binding.device_id, .why = "maintenance" },
                    "not in the backup: what device {f} writes for its maintenance version, until that is sealed",
                    .{head.binding.device_id},
                );
                continue;
            },
        }
        const file = try directory.cachePath(arena, name, Directory.cache_suffix ++ next_suffix);
        const snapshot: caches_snapshot.Options = .{
            .positional = file,
            .device = head.binding.device_id,
            .private = head.binding.class == .private,
            .vdisk = if (head.binding.class == .private)
                vdiskOf(call, head.binding.version_id)
            else
                null,
            .force = true,
        };
        const code = caches_snapshot.make(call, &snapshot, call.path()) catch |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            error.Wrong, error.Busy => {
                lose(running, name, call.complaint.text());
                continue;
            },
        };
        if (code != 0) return error.Canceled;
        running.caches += 1;
    }
}

/// A cache that cannot be backed up: the one of the last backup stays.
fn lose(running: *BackupRun, name: []const u8, why: []const u8) void {
    running.lost_caches += 1;
    running.call.print(
        .{ .cache = name, .problem = why },
        "write cache {s}: {s}",
        .{ name, why },
    );
}

fn vdiskOf(call: *const Call, version: Uuid) ?Uuid {
    const manifest = call.store().manifestOf(version) catch return null;
    return manifest.vdisk;
}

/// Gives the new caches their names, and removes those of devices that have none any more.
fn takeCaches(running: *BackupRun) Call.Error!void {
    const call, const directory = .{ running.call, running.directory };
    const files = directory.on.files();
    takeAll(call, files) catch |err| return Directory.explain(call, directory.path, err);
}

fn takeAll(call: *const Call, files: store_module.Files) store_module.files.Error!void {
    const Name = store_module.files.Name;
    var name: Name = undefined;
    var at_buffer: Name = undefined;
    var at: []const u8 = "";
    while (try files.nextName(Directory.caches_name, at, &name)) |found| {
        @memcpy(at_buffer[0..found.len], found);
        at = at_buffer[0..found.len];
        var buffers: [3]Name = undefined;
        const path = std.mem.print(
            &buffers[0],
            Directory.caches_name ++ "/{s}",
            .{at},
        ) catch continue;
        if (std.mem.cutSuffix(u8, path, next_suffix)) |to| {
            try files.rename(path, to);
            continue;
        }
        // An interrupted backup has left it.
        if (std.mem.endsWith(u8, path, next_suffix ++ ".part")) try files.remove(path);
        const layer = std.mem.cutSuffix(u8, at, Directory.cache_suffix) orelse continue;
        const dir = std.mem.print(
            &buffers[1],
            device_layers.parent ++ "/{s}/head",
            .{layer},
        ) catch continue;
        if (call.files().open(dir, .read)) |handle| {
            call.files().close(handle);
            continue;
        } else |err| if (err != error.NotFound) continue;
        const next = std.mem.print(&buffers[2], "{s}" ++ next_suffix, .{path}) catch continue;
        // One that was there when the backup began, and is gone.
        if (files.open(next, .read)) |handle| files.close(handle) else |_| try files.remove(path);
    }
    try files.syncDir(Directory.caches_name);
}

/// Names imports that are not versions yet.
fn nameUnfinished(call: *const Call) void {
    var id: ?Uuid = null;
    while (store_module.import_checkpoint.Checkpoint.next(call.files(), id) catch null) |found| {
        id = found;
        call.print(
            .{ .notBackedUp = found, .why = "import" },
            "not in the backup: the unfinished import of version {f}",
            .{found},
        );
    }
}
