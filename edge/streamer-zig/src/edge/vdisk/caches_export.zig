//! `bootfarm-edge vdisk caches export`: writes what one device has written, and this edge keeps, to
//! a file. The file gets its name when it is complete; until then it is `NAME.part`. Works beside a
//! running edge, but not while the device runs; also with a directory of plain files.

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
    const path = options.positional orelse
        return call.fail("vdisk caches export needs a file to write to.", .{});
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
    const written = writeFile(call, on.files(), dir, device_id, file, part) catch |err| {
        file.close(io);
        cwd.deleteFile(io, part) catch {};
        if (err != error.Canceled) return @errorCast(err);
        host.log.info("The export was interrupted; nothing is left of it.", .{});
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
    files: store_module.Files,
    dir: []const u8,
    device_id: Uuid,
    file: Io.File,
    part: []const u8,
) (Call.Error || error{Canceled})!layer_file.Contents {
    const io = call.init.io;
    var buffer: [64 << 10]u8 = undefined;
    var writer: Io.File.Writer = .initStreaming(file, io, &buffer);
    var line: output.ProgressLine = .init(call.is_json);
    defer line.end();
    var rotten_at: u64 = 0;
    const written = layer_file.exportLayer(
        call.gpa,
        files,
        dir,
        &writer.interface,
        .{ .context = &line, .call = onProgress },
        &rotten_at,
    ) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Canceled => error.Canceled,
        error.InUse => call.fail(
            "The device {f} is running, or its edge has heard from it in the last half minute: shut it down first.",
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
            .{ device_id, if (err == error.Lost) "missing or truncated" else "damaged" },
        ),
        error.NewerFormat => call.fail(
            "A later release has made the write cache of device {f}; update bootfarm-edge.",
            .{device_id},
        ),
        else => |other| call.fail("The writes of device {f} cannot be read: the store {s}.", .{
            device_id, store_module.files.sentence(other),
        }),
    };
    writer.interface.flush() catch
        return call.fail("{s} cannot be written: its disk is full or fails.", .{part});
    file.sync(io) catch |err| return call.fail("{s} cannot be synced ({t}).", .{ part, err });
    return written;
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
