//! `bootfarm-edge image inspect` and `image extract`: show what a disk image would boot, and write
//! its kernel and initramfs to files.

const std = @import("std");
const Io = std.Io;
const Allocator = std.mem.Allocator;
const BootBundle = @import("boot_bundle.zig");
const image = @import("image");
const Complaint = @import("complaint.zig");
const image_report = @import("image_report.zig");
const SourceImage = @import("source_image.zig");
const store = @import("store");
const Terminal = @import("terminal.zig").Terminal;
const FdSource = store.image_source.FdSource;

const added_max = 64;

const Options = struct {
    file: []const u8 = "",
    source: SourceImage.Options = .{},
    is_json: bool = false,
    kernel_to: ?[]const u8 = null,
    initrd_to: ?[]const u8 = null,
    busybox: ?[]const u8 = null,
    target: ?[]const u8 = null,
    added: []const []const u8 = &.{},
};

/// `Explained`: the reason has already been printed.
const Failure = error{ Explained, OutOfMemory };

const Command = struct {
    io: Io,
    arena: Allocator,
    terminal: *Terminal,

    fn fail(command: *const Command, comptime format: []const u8, arguments: anytype) Failure {
        _ = command.terminal.fail(format, arguments);
        return error.Explained;
    }

    fn print(
        command: *const Command,
        comptime format: []const u8,
        arguments: anytype,
    ) Failure!void {
        command.terminal.out(try std.fmt.allocPrint(command.arena, format ++ "\n", arguments));
    }
};

/// `arguments` follow `image` on the command line. Returns the exit code.
pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
    defer arena.deinit();
    const command: Command = .{ .io = init.io, .arena = arena.allocator(), .terminal = terminal };
    const verb = if (arguments.len > 0) arguments[0] else "";
    const work: *const fn (*const Command, *const Options) Failure!void =
        if (std.mem.eql(u8, verb, "inspect"))
            &inspect
        else if (std.mem.eql(u8, verb, "extract")) &extract else return terminal.fail(
            "Name an image command: inspect or extract; see bootfarm-edge image --help.",
            .{},
        );
    const options = parse(&command, verb, arguments[1..]) catch return 1;
    work(&command, &options) catch |reason| return switch (reason) {
        error.Explained => 1,
        error.OutOfMemory => terminal.fail("There is not enough memory.", .{}),
    };
    return 0;
}

fn parse(
    command: *const Command,
    verb: []const u8,
    arguments: []const [:0]const u8,
) Failure!Options {
    const is_extract = std.mem.eql(u8, verb, "extract");
    var options: Options = .{};
    var added: std.ArrayList([]const u8) = .empty;
    var index: usize = 0;
    while (index < arguments.len) : (index += 1) {
        const name = arguments[index];
        if (!std.mem.startsWith(u8, name, "-")) {
            if (options.file.len > 0)
                return command.fail("image {s} takes one image, not also {s}", .{ verb, name });
            options.file = name;
            continue;
        }
        if (!is_extract and std.mem.eql(u8, name, "--json")) {
            options.is_json = true;
            continue;
        }
        const place: ?*?[]const u8 = if (std.mem.eql(u8, name, "--format"))
            &options.source.format
        else if (std.mem.eql(u8, name, "--parents")) &options.source.parents //
        else if (!is_extract) null //
            else if (std.mem.eql(u8, name, "--kernel-to")) &options.kernel_to //
            else if (std.mem.eql(u8, name, "--initrd-to")) &options.initrd_to //
            else if (std.mem.eql(u8, name, "--busybox")) &options.busybox //
            else if (std.mem.eql(u8, name, "--target")) &options.target //
            else null;
        const is_added = is_extract and std.mem.eql(u8, name, "--add-module");
        if (place == null and !is_added) return command.fail(
            "image {s} has no option {s}; see bootfarm-edge image {s} --help",
            .{ verb, name, verb },
        );
        index += 1;
        if (index == arguments.len) return command.fail("{s} needs a value", .{name});
        if (place) |value| {
            value.* = arguments[index];
        } else {
            if (added.items.len == added_max)
                return command.fail("at most {d} modules can be added", .{added_max});
            try added.append(command.arena, arguments[index]);
        }
    }
    options.added = added.items;
    if (options.file.len == 0)
        return command.fail("Name the image: a file or a block device.", .{});
    if (is_extract and options.kernel_to == null and options.initrd_to == null)
        return command.fail(
            "Name a file to write: --kernel-to FILE, --initrd-to FILE or both.",
            .{},
        );
    return options;
}

/// An open image as a disk.
const OpenDisk = struct {
    image: SourceImage,
    complaint: Complaint,
    source: store.BlockSource,

    const never: std.atomic.Value(bool) = .init(false);

    fn open(command: *const Command, options: *const Options) Failure!*OpenDisk {
        const path = options.file;
        const opened = try command.arena.create(OpenDisk);
        opened.complaint = .{};
        if (isContainer(command, path)) return command.fail(
            "{s} is a container image: bootfarm-edge vdisk import makes a version of it, and finds its kernel",
            .{path},
        );
        const file = FdSource.open(path, &never) catch |problem|
            return command.fail("{s} {s}", .{ path, store.image_source.sentence(problem) });
        opened.image.open(
            std.heap.smp_allocator,
            file,
            .{ .path = path, .is_canceled = &never },
            &options.source,
            &opened.complaint,
        ) catch return command.fail("{s}", .{opened.complaint.text()});
        errdefer opened.image.close();
        opened.source = opened.image.blockSource() orelse
            return command.fail("{s} is neither a file nor a block device", .{path});
        if (opened.image.chain.size() % 512 != 0) return command.fail(
            "{s} is not a disk image: its size is not a multiple of 512 bytes",
            .{path},
        );
        return opened;
    }

    /// An archive, or a directory with a layout in it.
    fn isContainer(command: *const Command, path: []const u8) bool {
        const list = std.fs.path.join(command.arena, &.{ path, "index.json" }) catch return false;
        if (Io.Dir.cwd().access(command.io, list, .{})) |_| return true else |_| {}
        var file = FdSource.open(path, &never) catch return false;
        defer file.close();
        const source = file.source();
        if (!source.is_positional) return false;
        var head: [512]u8 = undefined;
        var failed_at: u64 = 0;
        const size = source.read(&head, 0, &failed_at) catch return false;
        if (!image.oci.Archive.isTar(head[0..size])) return false;
        const archive = image.oci.Archive.openFile(command.arena, source) catch return false;
        return archive.hasList();
    }

    fn fail(opened: *OpenDisk, command: *const Command, problem: image.Problem) Failure {
        if (opened.image.explainRead() == null)
            return command.fail("{s} {s}", .{ opened.image.place.path, image.sentence(problem) });
        return command.fail("{s}", .{opened.complaint.text()});
    }
};

fn inspect(command: *const Command, options: *const Options) Failure!void {
    const opened = try OpenDisk.open(command, options);
    defer opened.image.close();
    const source = opened.source;
    const disk = try command.arena.create(image.Disk);
    disk.open(command.arena, &source) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        else => |other| return opened.fail(command, other),
    };
    disk.renewWork();
    const answer = image.find(command.arena, disk) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        else => |other| return opened.fail(command, other),
    };
    const report = try image_report.make(command.arena, disk, source.size, &answer);
    if (options.is_json) return command.print("{f}", .{std.json.fmt(report, .{})});
    var text: Io.Writer.Allocating = .init(command.arena);
    image_report.print(&text.writer, options.file, &report) catch return error.OutOfMemory;
    command.terminal.out(text.written());
}

fn extract(command: *const Command, options: *const Options) Failure!void {
    const opened = try OpenDisk.open(command, options);
    defer opened.image.close();
    const bundle = try command.arena.create(BootBundle);
    const answer = try bundle.open(&.{
        .io = command.io,
        .arena = command.arena,
        .terminal = command.terminal,
        .busybox = options.busybox,
        .target = options.target,
        .added = options.added,
        .is_for_files = true,
    }, &opened.source);
    switch (answer) {
        .ready => {},
        .reason => |reason| {
            if (opened.image.explainRead() == null)
                return command.fail("{s}: {s}", .{ options.file, reason });
            return command.fail("{s}", .{opened.complaint.text()});
        },
    }
    if (options.kernel_to) |path| try write(command, bundle, path, BootBundle.writeKernel);
    if (options.initrd_to) |path| try write(command, bundle, path, BootBundle.writeInitramfs);
    const kernel = try BootBundle.printable(command.arena, bundle.files.kernel.path);
    const origin = try BootBundle.printable(command.arena, bundle.files.origin);
    try command.print("kernel: {s}, by {s} ({s})", .{ kernel, bundle.files.by.text(), origin });
    try command.print("initramfs: {s}", .{
        if (bundle.built == null) "the image's own" else "built from the image's modules",
    });
    try command.print("command line: {s}", .{bundle.command_line});
    if (BootBundle.whyNotMounted(&bundle.disk)) |reason|
        try command.print("warning: {s}", .{reason});
}

const Writing = fn (*BootBundle, *Io.Writer) BootBundle.WriteError!void;

/// Writes the whole file or nothing.
fn write(
    command: *const Command,
    bundle: *BootBundle,
    path: []const u8,
    content: Writing,
) Failure!void {
    var atomic = Io.Dir.cwd().createFileAtomic(command.io, path, .{ .replace = true }) catch
        return command.fail("{s} cannot be written", .{path});
    defer atomic.deinit(command.io);
    var buffer: [64 << 10]u8 = undefined;
    var writer = atomic.file.writer(command.io, &buffer);
    content(bundle, &writer.interface) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        error.WriteFailed => return command.fail(
            "{s} cannot be written; is the disk full?",
            .{path},
        ),
        else => |other| return command.fail("the image {s}", .{image.sentence(other)}),
    };
    writer.interface.flush() catch
        return command.fail("{s} cannot be written; is the disk full?", .{path});
    atomic.file.setPermissions(command.io, .fromMode(0o644)) catch {};
    atomic.file.sync(command.io) catch return command.fail("{s} cannot be written", .{path});
    atomic.replace(command.io) catch return command.fail("{s} cannot be written", .{path});
}
