//! Opens a store for a command, and explains in a sentence why it cannot be opened or changed.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const options_module = @import("../options.zig");
const linux = std.os.linux;

const Complaint = options_module.Complaint;
const Store = store_module.Store;
const Uuid = base.Uuid;

/// `Busy`: another process has it, and the complaint names it.
pub const Error = options_module.Error || error{ Busy, OutOfMemory };

pub const Problem = store_module.store_dir.Error || error{ OutOfMemory, RecordDamaged };
pub const VersionProblem = store_module.store_dir.VersionError || error{Locked};

const moment_us = 3 * std.time.us_per_s;
const moment_step_ms = 20;

/// Must not move: the store refers to it.
pub const OpenStore = struct {
    path: []const u8,
    on: store_module.LinuxFiles,
    store: Store,

    pub fn open(
        opened: *OpenStore,
        gpa: std.mem.Allocator,
        path: []const u8,
        complaint: *Complaint,
    ) Error!void {
        opened.path = path;
        opened.on = store_module.LinuxFiles.open(path) catch |err| return switch (err) {
            error.NotFound => complaint.set(
                "The store directory {s} does not exist; create a store with bootfarm-edge vdisk init --store {s}.",
                .{ path, path },
            ),
            else => |other| complaint.set("The store directory {s} {s}.", .{
                path, store_module.files.sentence(other),
            }),
        };
        errdefer opened.on.close();
        opened.store = Store.open(gpa, opened.on.files(), .{}) catch |err|
            return explain(path, err, complaint);
    }

    pub fn close(opened: *OpenStore, gpa: std.mem.Allocator) void {
        opened.store.close(gpa);
        opened.on.close();
    }

    /// Waits briefly for another process that changes the store: most changes, such as an edge's
    /// start, are short. @param command what this process does, for others that want to change the
    /// store in the meantime
    pub fn lock(
        opened: *OpenStore,
        io: std.Io,
        command: []const u8,
        complaint: *Complaint,
    ) Error!store_module.store_dir.Change {
        const started_us = host.sys.monotonicUs();
        while (true) return opened.lockNow(command, complaint) catch |err| {
            if (err != error.Busy or host.sys.monotonicUs() - started_us >= moment_us) return err;
            io.sleep(.fromMilliseconds(moment_step_ms), .awake) catch {};
            continue;
        };
    }

    /// Does what `lock` does without waiting.
    pub fn lockNow(
        opened: *OpenStore,
        command: []const u8,
        complaint: *Complaint,
    ) Error!store_module.store_dir.Change {
        const files = opened.on.files();
        const change = opened.store.lockForChange() catch |err| switch (err) {
            error.Locked => return explainLock(opened.path, files, complaint),
            error.RecordDamaged => return explain(opened.path, error.RecordDamaged, complaint),
            else => |other| return complaint.set(
                "The store {s} cannot be changed: its lock file {s}.",
                .{ opened.path, store_module.files.sentence(other) },
            ),
        };
        var host_name: [std.posix.HOST_NAME_MAX]u8 = undefined;
        const name = std.posix.gethostname(&host_name) catch "unknown";
        store_module.lock_holder.write(files, change.lock, &.{
            .host = name,
            .pid = @intCast(linux.getpid()),
            .command = command,
        });
        return change;
    }
};

fn explainLock(path: []const u8, files: store_module.Files, complaint: *Complaint) error{Busy} {
    var buffer: [store_module.lock_holder.size_max]u8 = undefined;
    const holder = store_module.lock_holder.read(files, "lock", &buffer) orelse
        return busy(
            complaint,
            "The store {s} is being changed by another process; wait until it ends.",
            .{path},
        );
    return busy(
        complaint,
        "The store {s} is being changed by `{s}` (process {d} on {s}); wait until it ends, or stop it.",
        .{ path, holder.command, holder.pid, holder.host },
    );
}

fn busy(complaint: *Complaint, comptime format: []const u8, values: anytype) error{Busy} {
    complaint.set(format, values) catch {};
    return error.Busy;
}

pub fn explain(path: []const u8, problem: Problem, complaint: *Complaint) Error {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.NotAStore => complaint.set(
            "{s} is not a store of vDisks; create one with bootfarm-edge vdisk init --store {s}.",
            .{ path, path },
        ),
        error.NotEmpty => complaint.set(
            "{s} contains other files; choose an empty directory, or add --beside-files to put the store beside them.",
            .{path},
        ),
        error.HeadDamaged => complaint.set(
            "The store {s} cannot be used: its file bootfarm-store is damaged; restore it from a backup.",
            .{path},
        ),
        error.KeyDamaged => complaint.set(
            "The store {s} cannot be changed: its file store-key is damaged or belongs to another store; restore it from a backup.",
            .{path},
        ),
        error.TooNew => complaint.set(
            "The store {s} has a later format than this program supports; update bootfarm-edge.",
            .{path},
        ),
        error.RecordDamaged => complaint.set(
            "The store {s} cannot be changed: its record of a seal that a crash interrupted is damaged; restore the store from a backup.",
            .{path},
        ),
        error.Locked => busy(
            complaint,
            "The store {s} is being changed by another process; wait until it ends.",
            .{path},
        ),
        else => |other| complaint.set("The store {s} {s}.", .{
            path, store_module.files.sentence(other),
        }),
    };
}

/// Explains why a version cannot be opened.
pub fn explainVersion(
    path: []const u8,
    id: Uuid,
    problem: VersionProblem,
    complaint: *Complaint,
) Error {
    const name = "The version {f} in {s} ";
    return switch (problem) {
        error.NotFound => complaint.set(
            "There is no version {f} in the store {s}; see bootfarm-edge vdisk list --store {s}.",
            .{ id, path, path },
        ),
        error.Locked => busy(
            complaint,
            name ++
                "is in use: an edge serves it, or another process reads, deletes or changes it; stop that process first, or wait until it ends.",
            .{ id, path },
        ),
        error.OtherStore => complaint.set(name ++ "was sealed by another store.", .{ id, path }),
        error.OtherName => complaint.set(name ++ "is the manifest of another version.", .{
            id, path,
        }),
        error.NotAManifest,
        error.TooNew,
        error.Damaged,
        error.WrongSignature,
        error.Malformed,
        => |other| complaint.set(name ++ "cannot be used: its manifest {s}.", .{
            id, path, store_module.manifest.sentence(other),
        }),
        else => |other| complaint.set(name ++ "{s}.", .{
            id, path, store_module.files.sentence(other),
        }),
    };
}

const testing = std.testing;

test "the error for a directory without a store names the command that creates one" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const empty = try std.mem.concat(testing.allocator, u8, &.{ ".zig-cache/tmp/", &tmp.sub_path });
    defer testing.allocator.free(empty);
    for ([_]struct { []const u8, []const u8 }{
        .{ empty, " is not a store of vDisks; " },
        .{ "/nowhere/store", " does not exist; " },
    }) |case| {
        const path, const problem = case;
        var complaint: Complaint = .{};
        var opened: OpenStore = undefined;
        try testing.expectError(error.Wrong, opened.open(testing.allocator, path, &complaint));
        try testing.expect(std.mem.find(u8, complaint.text(), problem) != null);
        const command = try std.mem.concat(testing.allocator, u8, &.{
            "bootfarm-edge vdisk init --store ", path, ".",
        });
        defer testing.allocator.free(command);
        try testing.expect(std.mem.endsWith(u8, complaint.text(), command));
    }
}
