//! `bootfarm-edge vdisk seal`: makes a version from the writes for it (`layers/ID`), without
//! copying. Its boot files are taken from the disk as it is now. If that fails, the writes stay
//! unchanged.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const boot_files = @import("boot_files.zig");
const cancel = @import("cancel.zig");
const Call = @import("subcommand.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const Boot = store_module.seal.Boot;
const Manifest = store_module.Manifest;

pub const Options = struct {
    version: ?Uuid = null,
    /// The version below the layer.
    parent: ?Uuid = null,
    number: ?u32 = null,
    boot: boot_files.Options = .{},
    /// A version that is already sealed counts as sealed.
    again: bool = false,
};

const SealRun = struct {
    call: *const Call,
    line: output.ProgressLine,
    wanted_boot: boot_files.BootChoice,
    parent: *const Manifest,
    boot: boot_files.BootFiles = .{},
    problem: ?Call.Error = null,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const id =
        try call.need(options.version, "--version ID, the version that its device has written");
    const parent_id = try call.need(options.parent, "--parent ID, the version below it");
    const wanted_boot: boot_files.BootChoice = try .of(call, &options.boot);
    // Acquiring the right to change the store finishes what a crash interrupted.
    var change = try call.lock();
    defer change.end();
    if (call.store().manifestOf(id)) |made| {
        if (!options.again or !made.parent.eql(parent_id))
            return call.fail("The version {f} already exists; a version never changes.", .{id});
        return printMade(call, &made);
    } else |err| if (err != error.NotFound) return call.failVersion(id, err);
    var parent =
        call.store().openVersion(parent_id) catch |err| return call.failVersion(parent_id, err);
    defer parent.close();
    const number = options.number orelse
        store_module.import.nextNumber(&change, parent.manifest.vdisk) catch
        return call.fail(
            "Some versions of the store {s} cannot be read (bootfarm-edge vdisk list --store {s} names them): give --number N.",
            .{ call.path(), call.path() },
        );
    cancel.listen();
    var running: SealRun = .{
        .call = call,
        .line = .init(call.is_json),
        .wanted_boot = wanted_boot,
        .parent = &parent.manifest,
    };
    const made = store_module.seal.seal(call.gpa, &change, &parent, &.{
        .version = id,
        .number = number,
        .created_unix_ms = host.sys.unixMs(),
        .boot = .{ .context = &running, .find = findBoot },
    }, .{ .context = &running, .tell = progress }) catch |err| {
        running.line.end();
        return explain(&running, id, parent_id, err);
    };
    running.line.end();
    return printMade(call, &made);
}

fn printMade(call: *const Call, made: *const Manifest) u8 {
    call.print(output.Version{ .manifest = made }, "sealed version {f}, number {d}", .{
        made.version, made.number,
    });
    return 0;
}

fn progress(context: *anyopaque, done: u64, total: u64) bool {
    const running: *SealRun = @ptrCast(@alignCast(context));
    running.line.update(.{ .position = done, .size = total });
    return !cancel.is_asked.load(.monotonic);
}

fn findBoot(
    context: *anyopaque,
    disk: *const store_module.BlockSource,
) error{ NoBoot, OutOfMemory }!Boot.BootConfig {
    const running: *SealRun = @ptrCast(@alignCast(context));
    running.boot = boot_files.take(
        running.call,
        &running.wanted_boot,
        running.parent,
        disk,
    ) catch |err| {
        running.problem = err;
        return error.NoBoot;
    };
    return .{
        .kernel = running.boot.kernel,
        .initrd = running.boot.initrd,
        .command_line = running.boot.command_line.constSlice(),
    };
}

fn explain(
    running: *SealRun,
    id: Uuid,
    parent_id: Uuid,
    problem: store_module.seal.Error,
) Call.Error!u8 {
    const call = running.call;
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.NoBoot => running.problem.?,
        error.Cancelled => {
            host.log.info("The seal was interrupted; the same command starts it again.", .{});
            return Call.exit_interrupted;
        },
        error.NotFound => call.fail(
            "Nothing was written for the version {f} in the store {s}: its device has not booted it yet.",
            .{ id, call.path() },
        ),
        error.InUse => call.failBusy(
            "The writes for the version {f} are in use: shut its device down first.",
            .{id},
        ),
        error.NotSealable => call.fail(
            "The writes under {f} are a write cache, not a version in maintenance.",
            .{id},
        ),
        error.OtherParent => call.fail(
            "The writes for the version {f} were made above another version than {f}.",
            .{ id, parent_id },
        ),
        error.Lost, error.DamagedLayer => call.fail(
            "The writes for the version {f} are incomplete and are not sealed: a part of layers/{f} is missing or damaged. Discard the version.",
            .{ id, id },
        ),
        error.NewerLayer => call.fail(
            "The writes for the version {f} have a later format: update bootfarm-edge.",
            .{id},
        ),
        error.Damaged,
        error.NotAManifest,
        error.WrongSignature,
        error.Malformed,
        error.OtherStore,
        error.OtherName,
        => call.fail(
            "A version in the store {s} is damaged; see bootfarm-edge vdisk list --store {s}.",
            .{ call.path(), call.path() },
        ),
        error.ReadFailed => call.fail(
            "The store {s} cannot be read: the disk reports an error.",
            .{call.path()},
        ),
        else => |other| call.failStore(other),
    };
}
