//! `bootfarm-edge vdisk export`: writes a version as an image. A file gets its name when it is
//! complete; until then it is `NAME.part`, from which an interrupted export of a raw image
//! continues. Other formats start again: their `NAME.part` is removed.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const image = @import("image");
const store_module = @import("store");
const cancel = @import("cancel.zig");
const Call = @import("subcommand.zig");
const export_directory = @import("export_directory.zig");
const output = @import("output.zig");
const linux = std.os.linux;
const Uuid = base.Uuid;

const Complaint = @import("../options.zig").Complaint;
const Format = image.writer.Format;
const Export = store_module.@"export".Export;
const Progress = store_module.@"export".Progress;
const Target = store_module.@"export".Target;

const path_size_max = 1024;
const suffix = export_directory.part_suffix;
const Path = [path_size_max + suffix.len:0]u8;

pub const Options = struct {
    positional: ?[]const u8 = null,
    version: ?Uuid = null,
    format: ?[]const u8 = null,
    force: bool = false,
    @"resume": bool = false,
    /// Writes to the directory `exports` of the store, under a name that the version gives.
    in_store: bool = false,
    /// For programs that repeat an interrupted command: a finished export counts as done, and an
    /// interrupted one continues or starts again. Goes with `in_store`.
    again: bool = false,
};

const OpenTarget = struct { fd: i32, target: Target };

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    if (options.in_store) return runInStore(call, options);
    const path = options.positional orelse
        return call.fail(
            "vdisk export needs a target: a file, a block device, or - for standard output.",
            .{},
        );
    if (options.again) return call.fail("--again goes with --in-store.", .{});
    return write(call, options, path, null);
}

/// The same version and format have the same name and the same bytes.
fn runInStore(call: *const Call, options: *const Options) Call.Error!u8 {
    if (options.positional != null or options.force or options.@"resume")
        return call.fail("--in-store takes no FILE, no --force and no --resume.", .{});
    const id = try call.need(options.version, "--version ID");
    const format = try parseFormat(call, options, false);
    const manifest = call.store().manifestOf(id) catch |err| return call.failVersion(id, err);
    const file = export_directory.pathOf(&manifest, format);
    var buffer: [path_size_max]u8 = undefined;
    const path = std.mem.print(&buffer, "{s}/{s}", .{
        call.path(), file.constSlice(),
    }) catch return call.fail("The path of the store {s} is too long.", .{call.path()});
    try export_directory.make(call);
    if (options.again and isFile(path)) {
        printDone(call, .{ .id = id, .format = format, .file = file.constSlice() }, &.{
            .size = manifest.disk_size,
        });
        return 0;
    }
    export_directory.removeOld(call, host.sys.unixMs());
    return write(call, options, path, file.constSlice());
}

fn isFile(path: []const u8) bool {
    const path_z = pathOf(path, "");
    var stat: linux.Statx = undefined;
    return linux.errno(
        linux.statx(linux.AT.FDCWD, &path_z, linux.AT.SYMLINK_NOFOLLOW, .{ .TYPE = true }, &stat),
    ) == .SUCCESS;
}

/// @param file the name below the store's directory; null for another path
fn write(
    call: *const Call,
    options: *const Options,
    path: []const u8,
    file: ?[]const u8,
) Call.Error!u8 {
    if (path.len == 0 or path.len > path_size_max)
        return call.fail("The path to write to is empty or too long.", .{});
    const is_stream = std.mem.eql(u8, path, "-");
    if (is_stream and (call.is_json or options.@"resume" or options.force))
        return call.fail("--json, --resume and --force do not go with standard output.", .{});
    const format = try parseFormat(call, options, is_stream);
    const id = try call.need(options.version, "--version ID");
    var version = call.store().openVersion(id) catch |err| return call.failVersion(id, err);
    defer version.close();
    cancel.listen();
    const to = if (is_stream) OpenTarget{
        .fd = 1,
        .target = .stream,
    } else try openTarget(options, path, .{
        .size = version.manifest.disk_size,
        .format = format,
    }, call.complaint);
    defer if (!is_stream) host.sys.close(to.fd);
    // Nothing continues it.
    var is_whole = format == .raw;
    errdefer if (!is_whole) removePart(path);
    var writer = try startWriter(call, format, to.fd, &version.manifest);
    defer if (writer) |*open| open.deinit(call.gpa);
    var line: output.ProgressLine = .init(call.is_json);
    var running: Export = .{
        .reader = &version.reader,
        .fd = to.fd,
        .target = to.target,
        .layout = if (writer) |*open| open.layout() else null,
        .is_canceled = &cancel.is_asked,
        .watch = .{ .context = &line, .progress = progress },
        .done = .{ .size = version.manifest.disk_size },
    };
    running.run(call.gpa) catch |err| {
        line.end();
        if (err == error.Canceled) return explainInterruption(&running, path);
        return explain(call, &running, path, err, canResume(&running) and file == null);
    };
    line.end();
    is_whole = true;
    if (to.target == .file or to.target == .begun_file) try giveName(path, call.complaint);
    if (!is_stream)
        printDone(call, .{ .id = id, .format = format, .file = file }, &running.done);
    return 0;
}

fn parseFormat(call: *const Call, options: *const Options, is_stream: bool) Call.Error!Format {
    const name = options.format orelse return .raw;
    const format = std.meta.stringToEnum(Format, name) orelse
        return call.fail("--format is raw, qcow2 or vhdx, not '{s}'.", .{name});
    if (format == .raw) return format;
    if (is_stream) return call.fail(
        "A {t} image cannot be written to standard output, since its tables are written last: name a file.",
        .{format},
    );
    if (options.@"resume") return call.fail(
        "--resume is for raw images: an export to {t} starts again.",
        .{format},
    );
    return format;
}

fn startWriter(
    call: *const Call,
    format: Format,
    fd: i32,
    manifest: *const store_module.Manifest,
) Call.Error!?image.Writer {
    return image.Writer.init(
        call.gpa,
        format,
        fd,
        manifest.disk_size,
        manifest.version,
    ) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.TooLarge => call.fail(
            "The disk has {f}, and no {t} image can hold it: choose another format.",
            .{ output.Size{ .bytes = manifest.disk_size }, format },
        ),
    };
}

fn removePart(path: []const u8) void {
    const part = pathOf(path, suffix);
    _ = linux.unlinkat(linux.AT.FDCWD, &part, 0);
}

fn progress(context: *anyopaque, done: *const Progress) void {
    const line: *output.ProgressLine = @ptrCast(@alignCast(context));
    line.update(.{ .position = done.position, .size = done.size });
}

const Exported = struct { id: Uuid, format: Format, file: ?[]const u8 };

fn printDone(call: *const Call, what: Exported, done: *const Progress) void {
    call.print(
        .{
            .exported = what.id,
            .format = what.format,
            .file = what.file,
            .sizeBytes = done.size,
            .writtenBytes = done.written_bytes,
        },
        "exported {f} as {t}: {f}, {f} written",
        .{
            what.id,                           what.format,
            output.Size{ .bytes = done.size }, output.Size{ .bytes = done.written_bytes },
        },
    );
}

fn pathOf(path: []const u8, comptime end: []const u8) Path {
    var path_z: Path = @splat(0);
    @memcpy(path_z[0..path.len], path);
    @memcpy(path_z[path.len..][0..end.len], end);
    return path_z;
}

fn openTarget(
    options: *const Options,
    path: []const u8,
    wanted: struct { size: u64, format: Format },
    complaint: *Complaint,
) Call.Error!OpenTarget {
    const path_z = pathOf(path, "");
    var stat: linux.Statx = undefined;
    const is_there = linux.errno(
        linux.statx(linux.AT.FDCWD, &path_z, 0, .{ .TYPE = true, .MODE = true }, &stat),
    ) == .SUCCESS;
    const kind = if (is_there) stat.mode & linux.S.IFMT else linux.S.IFREG;
    if (kind != linux.S.IFREG and kind != linux.S.IFBLK)
        return complaint.set("{s} is neither a file nor a block device.", .{path});
    if (is_there and !options.force)
        return complaint.set("{s} already exists; --force overwrites it.", .{path});
    if (kind == linux.S.IFBLK and wanted.format != .raw) return complaint.set(
        "{s} is a block device, which takes a raw image: name a file for a {t} image.",
        .{ path, wanted.format },
    );
    if (kind == linux.S.IFBLK) return openDevice(options, path, wanted.size, complaint);
    const part = pathOf(path, suffix);
    const flags: linux.O =
        .{
            .ACCMODE = .RDWR,
            .CLOEXEC = true,
            .CREAT = !options.@"resume",
            .EXCL = !options.@"resume" and !options.again,
            .NOFOLLOW = true,
        };
    const rc = linux.openat(linux.AT.FDCWD, &part, flags, 0o600);
    return switch (linux.errno(rc)) {
        .SUCCESS => takePart(options, path, wanted.format, @intCast(rc), complaint),
        .EXIST => complaint.set(
            "{s}" ++ suffix ++ " already exists: an export to it was interrupted, or is running. {s}o start again, remove it.",
            .{ path, if (wanted.format == .raw) "--resume continues it; t" else "T" },
        ),
        .NOENT => if (options.@"resume")
            complaint.set(
                "{s}" ++ suffix ++ " does not exist: no export to {s} was interrupted; leave --resume out.",
                .{ path, path },
            )
        else
            complaint.set("The folder of {s} does not exist.", .{path}),
        .ROFS => complaint.set("{s} is on a file system that is read-only.", .{path}),
        .NOSPC, .DQUOT => complaint.set("The disk of {s} is full.", .{path}),
        else => complaint.set(
            "{s}" ++ suffix ++ " cannot be created or written by this user.",
            .{path},
        ),
    };
}

/// Takes ownership of the open `.part`.
fn takePart(
    options: *const Options,
    path: []const u8,
    format: Format,
    fd: i32,
    complaint: *Complaint,
) Call.Error!OpenTarget {
    errdefer host.sys.close(fd);
    if (!export_directory.lock(fd)) return complaint.set(
        "{s}" ++ suffix ++ " is being written by another process; wait until it ends, or stop it first.",
        .{path},
    );
    if (format == .raw and (options.@"resume" or options.again))
        return .{ .fd = fd, .target = .begun_file };
    if (linux.errno(linux.ftruncate(fd, 0)) != .SUCCESS)
        return complaint.set("{s}" ++ suffix ++ " cannot be written by this user.", .{path});
    return .{ .fd = fd, .target = .file };
}

const seek_end = 2;

fn openDevice(
    options: *const Options,
    path: []const u8,
    size: u64,
    complaint: *Complaint,
) Call.Error!OpenTarget {
    if (options.@"resume") return complaint.set(
        "--resume is for files: the contents of a block device are not checked.",
        .{},
    );
    const path_z = pathOf(path, "");
    // Exclusive: the kernel refuses a device that is mounted.
    const rc = linux.openat(
        linux.AT.FDCWD,
        &path_z,
        .{ .ACCMODE = .RDWR, .CLOEXEC = true, .EXCL = true },
        0,
    );
    switch (linux.errno(rc)) {
        .SUCCESS => {},
        .BUSY => return complaint.set(
            "{s} is in use, for example mounted; release it first.",
            .{path},
        ),
        .ROFS => return complaint.set("{s} is read-only.", .{path}),
        else => return complaint.set("{s} cannot be written by this user.", .{path}),
    }
    const fd: i32 = @intCast(rc);
    errdefer host.sys.close(fd);
    const end = linux.lseek(fd, 0, seek_end);
    if (linux.errno(end) != .SUCCESS)
        return complaint.set("{s} does not report its size.", .{path});
    if (end < size) return complaint.set(
        "{s} is too small: it has {d} bytes, and the version has {d}.",
        .{ path, end, size },
    );
    return .{ .fd = fd, .target = .block_device };
}

fn giveName(path: []const u8, complaint: *Complaint) Call.Error!void {
    const part, const whole = .{ pathOf(path, suffix), pathOf(path, "") };
    if (linux.errno(
        linux.renameat2(linux.AT.FDCWD, &part, linux.AT.FDCWD, &whole, .{}),
    ) != .SUCCESS)
        return complaint.set("{s}" ++ suffix ++ " is complete but cannot be renamed to {s}.", .{
            path, path,
        });
    const dir = pathOf(std.fs.path.dirname(path) orelse ".", "");
    const rc = linux.openat(linux.AT.FDCWD, &dir, .{ .DIRECTORY = true, .CLOEXEC = true }, 0);
    if (linux.errno(rc) != .SUCCESS) return;
    defer host.sys.close(@intCast(rc));
    _ = linux.fsync(@intCast(rc));
}

/// Returns whether what was written helps an export that continues.
fn canResume(running: *const Export) bool {
    return running.layout == null and
        (running.target == .file or running.target == .begun_file);
}

fn explainInterruption(running: *const Export, path: []const u8) u8 {
    if (running.layout != null) {
        removePart(path);
        host.log.info("The export was interrupted, and nothing of it is kept.", .{});
    } else if (canResume(running)) host.log.info(
        "The export was interrupted; the same command with --resume continues it.",
        .{},
    ) else host.log.info("The export was interrupted; {s} is incomplete.", .{path});
    return Call.exit_interrupted;
}

fn explain(
    call: *const Call,
    running: *const Export,
    path: []const u8,
    problem: store_module.@"export".Error,
    can_resume: bool,
) Call.Error {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.Canceled => unreachable,
        error.Damaged, error.Lost => call.fail(
            "The version is damaged at byte {d}: its bytes are not those that were sealed; import it again, or export it from another store.",
            .{running.failed_at},
        ),
        error.ReadFailed, error.BeyondTheEnd => call.fail(
            "The store cannot be read (at byte {d} of the version): the disk reports an error.",
            .{running.failed_at},
        ),
        error.NoSpace,
        error.ReadOnly,
        error.Denied,
        error.WriteFailed,
        error.Closed,
        => |other| call.fail(
            "{s} {s}.{s}",
            .{
                path,
                store_module.@"export".sentence(other),
                if (can_resume) " The same command with --resume continues it." else "",
            },
        ),
    };
}
