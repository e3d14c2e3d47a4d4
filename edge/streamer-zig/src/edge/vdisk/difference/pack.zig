//! `bootfarm-edge vdisk pack`: writes a version, or its difference to another one, to a file that
//! `vdisk import` takes into another store. Beside it, `FILE.pieces` has the SHA-256 of each piece
//! of the file, by which it travels. Both get their names when they are complete; until then the
//! file is `FILE.part`. After a kill, the next run continues it: packing 100 GB takes hours.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const Call = @import("../subcommand.zig");
const PieceWriter = @import("piece_writer.zig");
const output = @import("../output.zig");
const Uuid = base.Uuid;

const format = store_module.difference_format;
const Pack = store_module.pack.Pack;
const OpenVersion = store_module.OpenVersion;

pub const Options = struct {
    positional: ?[]const u8 = null,
    version: ?Uuid = null,
    base: ?Uuid = null,
    force: bool = false,
    /// For programs that repeat an interrupted command: a file that is this difference counts as
    /// made.
    again: bool = false,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const path = options.positional orelse
        return call.fail("vdisk pack needs the file to write.", .{});
    const id = try call.need(options.version, "--version ID");
    if (options.force and options.again)
        return call.fail("--force and --again exclude each other.", .{});
    if (options.base) |other| if (other.eql(id))
        return call.fail("--base is the version itself: there is no difference.", .{});
    var version = call.store().openVersion(id) catch |err| return call.failVersion(id, err);
    defer version.close();
    var before: ?OpenVersion = if (options.base) |other| call.store().openVersion(other) catch |err|
        return call.failVersion(other, err) else null;
    defer if (before) |*known| known.close();
    const header: format.Header =
        .of(&version.manifest, if (before) |*known| &known.manifest else null);
    if (options.again) if (try PieceWriter.madeBefore(call, path, &header)) |made|
        return printDone(call, &header, &made);
    cancel.listen();
    var writer: PieceWriter = undefined;
    try writer.open(call, path, options.force or options.again);
    defer writer.close();
    const part = try writer.keepPart(&header);
    var line: output.ProgressLine = .init(call.is_json);
    var running: Pack = .{
        .store = call.store(),
        .version = &version,
        .before = if (before) |*known| known else null,
        .sink = writer.sink(),
        .is_canceled = &cancel.is_asked,
        .watch = .{ .context = &line, .progress = progress },
        .done = .{ .size = version.manifest.disk_size },
        .part = part,
    };
    running.run(call.gpa) catch |err| {
        line.end();
        if (err != error.Canceled) return explain(call, &writer, &running, err);
        host.log.info("Packing was interrupted, and nothing of it is kept.", .{});
        return Call.exit_interrupted;
    };
    line.end();
    return printDone(call, &header, &try writer.finish(running.done.changed_bytes));
}

fn progress(context: *anyopaque, done: *const store_module.pack.Progress) void {
    const line: *output.ProgressLine = @ptrCast(@alignCast(context));
    line.update(.{ .position = done.position, .size = done.size });
}

fn printDone(
    call: *const Call,
    header: *const format.Header,
    made: *const PieceWriter.Made,
) u8 {
    const list = std.fmt.bytesToHex(made.list_digest, .lower);
    const other: ?Uuid = if (header.base.eql(.zero)) null else header.base;
    call.print(.{ .@"packed" = .{
        .version = header.version,
        .base = other,
        .sizeBytes = made.size,
        .pieceSize = format.piece_size,
        .listSha256 = &list,
        .changedBytes = made.changed_bytes,
    } }, "packed version {f}: {f} of changed blocks in {f}", .{
        header.version,
        output.Size{ .bytes = made.changed_bytes },
        output.Size{ .bytes = made.size },
    });
    return 0;
}

fn explain(
    call: *const Call,
    writer: *const PieceWriter,
    running: *const Pack,
    problem: store_module.pack.Error,
) Call.Error {
    const id = running.version.manifest.version;
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.Canceled => unreachable,
        error.OtherSize => call.fail(
            "The version {f} and its base {f} differ in size: pack it without --base.",
            .{ id, running.before.?.manifest.version },
        ),
        error.Damaged => failDamaged(call, id, running.failed_at),
        error.Lost, error.BootFileDamaged => call.fail(
            "The kernel or initramfs of the version {f} is {s}. Nothing was packed; pack it at another edge.",
            .{ id, if (problem == error.Lost) "missing" else "damaged" },
        ),
        error.ReadFailed, error.BeyondTheEnd => call.fail(
            "The store {s} cannot be read (at byte {d} of the version {f}): the disk reports an error.",
            .{ call.path(), running.failed_at, id },
        ),
        error.NoSpace,
        error.ReadOnly,
        error.Denied,
        error.WriteFailed,
        error.Closed,
        => |other| writer.explain(other),
    };
}

/// A line of its own names the place for programs: an edge that serves the store repairs it.
fn failDamaged(call: *const Call, id: Uuid, at_byte: u64) Call.Error {
    if (call.is_json)
        call.print(.{ .version = id, .atByte = at_byte, .problem = "a block is damaged" }, "", .{});
    return call.fail(
        "The version {f} is damaged at byte {d}: its bytes are not those that were sealed. Nothing was packed; pack it at another edge.",
        .{ id, at_byte },
    );
}
