//! `bootfarm-edge vdisk caches export`: writes what one device has written, and this edge keeps, to
//! a file. The file gets its name when it is complete; until then it is `NAME.part`. Works beside a
//! running edge, but not while the device runs; also with a directory of plain files. `vdisk caches
//! snapshot` does the same, and gets the file from the edge while the device runs.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("cancel.zig");
const Call = @import("subcommand.zig");
const output = @import("output.zig");
const Io = std.Io;
const Uuid = base.Uuid;

const device_layers = store_module.device_layers;
const layer_file = store_module.layer_file;

pub const Options = struct {
    positional: ?[]const u8 = null,
    device: ?Uuid = null,
    /// Takes a private image instead of the persistent write cache.
    private: bool = false,
    /// Which of several private images.
    vdisk: ?Uuid = null,
    force: bool = false,
};

pub fn make(call: *const Call, options: *const Options, store_path: []const u8) Call.Error!u8 {
    return write(call, options, store_path, null);
}

/// A layer that an edge has open.
pub const Source = struct { store_fd: i32, device_id: Uuid, dir: []const u8, disk_size: u64 };

pub const SourceError = Call.Error || error{ Canceled, WriteFailed };

/// Writes the file of a layer that the edge sends, and returns the number of blocks.
pub const FromEdge = *const fn (
    call: *const Call,
    source: *const Source,
    into: *Io.Writer,
    line: *output.ProgressLine,
) SourceError!u64;

/// `from_edge`: if the device runs; null refuses it then.
pub fn write(
    call: *const Call,
    options: *const Options,
    store_path: []const u8,
    from_edge: ?FromEdge,
) Call.Error!u8 {
    const path = options.positional orelse
        return call.fail("{s} needs a file to write to.", .{call.name});
    const device_id = try call.need(options.device, "--device ID");
    var on = store_module.LinuxFiles.open(store_path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            store_path, store_module.files.sentence(err),
        });
    defer on.close();
    var name: store_module.files.Name = undefined;
    const dir = try findLayer(call, options, device_id, on.files(), store_path, &name);
    const io, const cwd = .{ call.init.io, Io.Dir.cwd() };
    if (!options.force) if (cwd.access(io, path, .{})) |_|
        return call.fail("{s} already exists; --force overwrites it.", .{path})
    else |_| {};
    cancel.listen();
    const part = try std.mem.concat(call.init.arena.allocator(), u8, &.{ path, ".part" });
    const file = cwd.createFile(io, part, .{ .permissions = .fromMode(0o600) }) catch |err|
        return call.fail("{s} cannot be created ({t}).", .{ part, err });
    const written = writeFile(call, &on, dir, device_id, file, part, from_edge) catch |err| {
        file.close(io);
        cwd.deleteFile(io, part) catch {};
        if (err != error.Canceled) return @errorCast(err);
        host.log.info("{s} was interrupted; nothing is left of it.", .{call.name});
        return Call.exit_interrupted;
    };
    file.close(io);
    cwd.rename(part, cwd, path, io) catch |err|
        return call.fail("{s} is complete but cannot be renamed to {s} ({t}).", .{
            part, path, err,
        });
    syncDirOf(io, path) catch |err|
        return call.fail("The folder of {s} cannot be synced ({t}).", .{ path, err });
    const size = written.blocks * store_module.WriteLayer.block_size;
    call.print(
        .{
            .exported = device_id,
            .version = written.head.binding.version_id,
            .writtenBytes = size,
        },
        "exported the writes of {f}: {f} above version {f}",
        .{ device_id, output.Size{ .bytes = size }, written.head.binding.version_id },
    );
    return 0;
}

/// Returns the directory of the only layer that the options name.
fn findLayer(
    call: *const Call,
    options: *const Options,
    device_id: Uuid,
    files: store_module.Files,
    store_path: []const u8,
    into: *store_module.files.Name,
) Call.Error![]const u8 {
    const class: store_module.layer_head.Class =
        if (options.private) .private else .edge_persistent;
    const named: ?[36]u8 = if (options.vdisk) |vdisk_id| device_layers.nameOf(
        .{ .class = class, .device_id = device_id, .vdisk_id = vdisk_id },
    ).toText() else null;
    var found: ?[]const u8 = null;
    var walk: device_layers.LayerIterator = .{ .files = files };
    while (walk.next() catch |err| return call.fail("The store directory {s} {s}.", .{
        store_path, store_module.files.sentence(err),
    })) |layer| {
        const head = layer.head catch continue;
        if (head.binding.class != class or !head.binding.device_id.eql(device_id)) continue;
        if (named) |*wanted| if (!std.mem.eql(u8, layer.name, wanted)) continue;
        if (found != null) return call.fail(
            "The device {f} has several private images; choose one with --vdisk ID.",
            .{device_id},
        );
        found = std.mem.print(into, device_layers.parent ++ "/{s}", .{layer.name}) catch
            unreachable;
    }
    return found orelse call.fail(
        "There is no write cache of class {t} for the device {f} in {s} whose header can be read; see bootfarm-edge vdisk caches.",
        .{ class, device_id, store_path },
    );
}

fn writeFile(
    call: *const Call,
    on: *store_module.LinuxFiles,
    dir: []const u8,
    device_id: Uuid,
    file: Io.File,
    part: []const u8,
    from_edge: ?FromEdge,
) (Call.Error || error{Canceled})!layer_file.Contents {
    const io = call.init.io;
    var buffer: [64 << 10]u8 = undefined;
    var writer: Io.File.Writer = .initStreaming(file, io, &buffer);
    var line: output.ProgressLine = .init(call.is_json);
    defer line.end();
    var rotten_at: u64 = 0;
    const written: layer_file.Contents = layer_file.exportLayer(
        call.gpa,
        on.files(),
        dir,
        &writer.interface,
        .{ .context = &line, .call = onProgress },
        &rotten_at,
    ) catch |err| blk: {
        const ask = from_edge orelse return explain(call, device_id, part, err, rotten_at);
        if (err != error.InUse) return explain(call, device_id, part, err, rotten_at);
        const head = store_module.WriteLayer.readHead(on.files(), dir) catch |problem|
            return explain(call, device_id, part, problem, 0);
        const source: Source = .{
            .store_fd = on.dir_fd,
            .device_id = device_id,
            .dir = dir,
            .disk_size = head.binding.disk_size,
        };
        const blocks = ask(call, &source, &writer.interface, &line) catch |problem|
            return if (problem == error.WriteFailed)
                explain(call, device_id, part, error.WriteFailed, 0)
            else
                @errorCast(problem);
        break :blk .{ .head = head, .blocks = blocks };
    };
    writer.interface.flush() catch
        return call.fail("{s} cannot be written: its disk is full or fails.", .{part});
    file.sync(io) catch |err| return call.fail("{s} cannot be synced ({t}).", .{ part, err });
    return written;
}

fn explain(
    call: *const Call,
    device_id: Uuid,
    part: []const u8,
    problem: layer_file.ExportError,
    rotten_at: u64,
) (Call.Error || error{Canceled}) {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.Canceled => error.Canceled,
        error.InUse => call.fail(
            "The device {f} is running, or its edge has heard from it in the last half minute: shut it down first, or use caches snapshot.",
            .{device_id},
        ),
        error.WriteFailed => call.fail(
            "{s} cannot be written: its disk is full or fails.",
            .{part},
        ),
        error.Rotten => call.fail(
            "The writes of device {f} are damaged: the block at byte {d} has changed on the disk.",
            .{ device_id, rotten_at },
        ),
        error.Lost, error.Damaged => call.fail(
            "The writes of device {f} are {s}.",
            .{ device_id, if (problem == error.Lost) "missing or truncated" else "damaged" },
        ),
        error.NewerFormat => call.fail(
            "A later release has made the write cache of device {f}; update bootfarm-edge.",
            .{device_id},
        ),
        // Only where somebody writes meanwhile.
        error.Ended, error.OverLimit => unreachable,
        else => |other| call.fail("The writes of device {f} cannot be read: the store {s}.", .{
            device_id, store_module.files.sentence(other),
        }),
    };
}

pub fn onProgress(context: *anyopaque, done: u64, size: u64) bool {
    const line: *output.ProgressLine = @ptrCast(@alignCast(context));
    line.update(.{ .position = done, .size = size });
    return !cancel.is_asked.load(.monotonic);
}

fn syncDirOf(io: Io, path: []const u8) !void {
    const dir = try Io.Dir.cwd().openDir(
        io,
        std.fs.path.dirname(path) orelse ".",
        // Also makes it a descriptor that can be synced.
        .{ .iterate = true },
    );
    defer dir.close(io);
    const as_file: Io.File = .{ .handle = dir.handle, .flags = .{ .nonblocking = false } };
    try as_file.sync(io);
}
