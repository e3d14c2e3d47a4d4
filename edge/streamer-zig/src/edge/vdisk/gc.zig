//! `bootfarm-edge vdisk gc`: frees what no version needs, at a limited rate. If it is interrupted,
//! it has freed less.

const host = @import("host");
const store_module = @import("store");
const cancel = @import("cancel.zig");
const Call = @import("subcommand.zig");
const export_directory = @import("export_directory.zig");
const output = @import("output.zig");
const Pace = @import("pace.zig");

pub const Options = struct {
    rate_mib: ?u32 = null,
    /// Uses at most half of the disk's time.
    idle: bool = false,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    var change = try call.lock();
    defer change.end();
    cancel.listen();
    export_directory.removeAbandoned(call);
    export_directory.removeOld(call, host.sys.unixMs());
    store_module.import_checkpoint.tidy(call.files()) catch |err| return explain(call, err);
    var pace: Pace = .init(options.rate_mib, options.idle);
    const freed = try collect(call, &change, &pace);
    call.print(.{ .freedBytes = freed }, "freed {f}", .{output.Size{ .bytes = freed }});
    return if (cancel.is_asked.load(.monotonic)) Call.exit_interrupted else 0;
}

/// Frees what no version needs, until a signal comes. Returns the bytes.
pub fn collect(
    call: *const Call,
    change: *store_module.store_dir.Change,
    pace: *Pace,
) Call.Error!u64 {
    const rest: store_module.usage.RateLimit = .{ .context = pace, .wait = waitWhileCounting };
    var collection = store_module.collect.Collection.beginAtRate(call.gpa, change, rest) catch |err|
        return explain(call, err);
    defer collection.end();
    const counted = collection.usage.read;
    var line: output.ProgressLine = .init(call.is_json);
    while (!cancel.is_asked.load(.monotonic)) {
        const continues = collection.step(Pace.step_size) catch |err| return explain(call, err);
        if (!continues) break;
        line.update(.{ .position = collection.seen, .size = null });
        pace.wait(counted + collection.seen);
    }
    line.end();
    return collection.freed;
}

fn waitWhileCounting(context: *anyopaque, done: u64) void {
    const pace: *Pace = @ptrCast(@alignCast(context));
    pace.wait(done);
}

fn explain(call: *const Call, problem: store_module.collect.Error) Call.Error {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.Unfinished => call.fail(
            "Nothing is freed: the contents of an import into the store {s} are unknown. Continue or abandon it first: bootfarm-edge vdisk " ++
                "list --store {s} names it.",
            .{ call.path(), call.path() },
        ),
        error.Damaged,
        error.NotAManifest,
        error.WrongSignature,
        error.Malformed,
        error.OtherStore,
        error.OtherName,
        error.TooNew,
        => call.fail(
            "Nothing is freed: a version in the store {s} is damaged, and the data that it needs is unknown; see bootfarm-edge vdisk verify --store {s}.",
            .{ call.path(), call.path() },
        ),
        error.ReadFailed => call.fail(
            "The store {s} cannot be read: the disk reports an error.",
            .{call.path()},
        ),
        else => |other| call.failStore(other),
    };
}
