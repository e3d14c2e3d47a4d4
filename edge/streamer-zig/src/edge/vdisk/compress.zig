//! `bootfarm-edge vdisk compress`: packs the versions of a store again, at a limited rate, and
//! frees the space that they took. What boots read comes first. If it is interrupted, it has packed
//! less; another run continues.

const std = @import("std");
const core = @import("core");
const store_module = @import("store");
const profile_files = @import("agent").profile_files;
const cancel = @import("cancel.zig");
const Call = @import("subcommand.zig");
const gc = @import("gc.zig");
const output = @import("output.zig");
const Pace = @import("pace.zig");

const BootProfile = core.profile.BootProfile;
const block_size = store_module.block.block_size;
/// It frees what it can before it has taken this part of the free space, but not more often than
/// this.
const free_part = 8;
const collect_least = 256 << 20;
/// Less free space is left to the devices' writes.
const free_least = 256 << 20;

pub const Options = struct {
    rate_mib: ?u32 = null,
    /// Uses at most half of the time of disk and processor.
    idle: bool = false,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    cancel.listen();
    var compression: store_module.Compression = try .init(call.gpa, call.store());
    defer compression.deinit();
    try preferBoots(call, &compression);
    // What an interrupted run has left; and where nothing can be freed, nothing is packed.
    var freed = try collect(call, options);
    var pace: Pace = .init(options.rate_mib, options.idle);
    var line: output.ProgressLine = .init(call.is_json);
    var stored: u64 = 0;
    while (!cancel.is_asked.load(.monotonic)) {
        if (!try step(call, &compression)) break;
        line.update(.{
            .position = @min(compression.windows_done * window_size, sizeOf(&compression)),
            .size = sizeOf(&compression),
        });
        pace.wait(compression.read_bytes);
        const taken = compression.stored_bytes - stored;
        if (taken < @max(collect_least, try freeBytes(call) / free_part)) continue;
        stored = compression.stored_bytes;
        freed += try collect(call, options);
        if (try freeBytes(call) < free_least) return call.fail(
            "The disk of the store {s} has too little free space to pack its versions again; free some, and run bootfarm-edge vdisk compress again.",
            .{call.path()},
        );
    }
    line.end();
    if (compression.stored_bytes > stored and !cancel.is_asked.load(.monotonic))
        freed += try collect(call, options);
    call.print(
        .{
            .packedBytes = compression.packed_bytes,
            .storedBytes = compression.stored_bytes,
            .freedBytes = freed,
        },
        "packed {f} into {f}, freed {f}",
        .{
            output.Size{ .bytes = compression.packed_bytes },
            output.Size{ .bytes = compression.stored_bytes },
            output.Size{ .bytes = freed },
        },
    );
    return if (cancel.is_asked.load(.monotonic)) Call.exit_interrupted else 0;
}

const window_size = store_module.compress.window_blocks * block_size;

fn sizeOf(compression: *const store_module.Compression) u64 {
    return compression.block_count * block_size;
}

/// Others change the store between two steps.
fn step(call: *const Call, compression: *store_module.Compression) Call.Error!bool {
    var change = try call.lock();
    defer change.end();
    return compression.step(&change) catch |err| explain(call, err);
}

fn collect(call: *const Call, options: *const Options) Call.Error!u64 {
    var change = try call.lock();
    defer change.end();
    var pace: Pace = .init(options.rate_mib, options.idle);
    return gc.collect(call, &change, &pace);
}

fn freeBytes(call: *const Call) Call.Error!u64 {
    return call.files().freeBytes() catch |err| call.failStore(err);
}

/// Profiles are advice: one that cannot be read is left out.
fn preferBoots(call: *const Call, compression: *store_module.Compression) Call.Error!void {
    const profile = try call.gpa.create(BootProfile);
    defer call.gpa.destroy(profile);
    const buffer = try call.gpa.create([BootProfile.file_size_max]u8);
    defer call.gpa.destroy(buffer);
    var iterator: profile_files.Iterator = .init(call.files(), null);
    while (iterator.next()) |found| {
        _ = profile_files.read(call.files(), found, profile, buffer) catch continue;
        for (profile.slice()) |*unit| if (unit.handed() != 0)
            compression.prefer(@as(u64, unit.index) * store_module.unit.raw_size_max);
    }
}

fn explain(call: *const Call, problem: store_module.compress.Error) Call.Error {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.ReadFailed => call.fail(
            "The store {s} cannot be read: the disk reports an error.",
            .{call.path()},
        ),
        error.NotAManifest,
        error.WrongSignature,
        error.Malformed,
        error.Damaged,
        error.OtherStore,
        error.OtherName,
        => call.fail(
            "The store {s} has a damaged version; see bootfarm-edge vdisk verify --store {s}.",
            .{ call.path(), call.path() },
        ),
        else => |other| call.failStore(other),
    };
}
