//! The kernel, initramfs and command line that a version boots with: taken from its disk, given,
//! taken from its parent, or none. They are checked as `serve` does, and copied into the store.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const image = @import("image");
const store_module = @import("store");
const BootBundle = @import("../boot_bundle.zig");
const Call = @import("subcommand.zig");
const store_paths = @import("store_paths.zig");
const Io = std.Io;

const BlockSource = store_module.BlockSource;
const BootFile = store_module.manifest.BootFile;
const Manifest = store_module.Manifest;
const StoreFile = store_module.StoreFile;
const FileWriter = store_module.boot_bundle.FileWriter;

const CommandLine = base.BoundedArray(u8, store_module.manifest.command_line_size_max);

/// Options of the commands that make a version.
pub const Options = struct {
    kernel: ?[]const u8 = null,
    initrd: ?[]const u8 = null,
    cmdline: ?[]const u8 = null,
    busybox: ?[]const u8 = null,
    target: ?[]const u8 = null,
    /// Modules that an initramfs that is built has in addition, separated by commas.
    add_modules: ?[]const u8 = null,
    parent_boot_files: bool = false,
    /// A version of the store that has them.
    boot_files_of: ?base.Uuid = null,
    no_boot_files: bool = false,
    /// All paths, also that of an image, are below the store's directory.
    in_store: bool = false,

    /// Returns whether the options choose what the version boots with.
    pub fn isChosen(options: *const Options) bool {
        return options.kernel != null or options.initrd != null or
            options.cmdline != null or options.add_modules != null or
            options.parent_boot_files or options.no_boot_files or options.boot_files_of != null;
    }
};

/// The choice that the command line makes.
pub const BootChoice = struct {
    from: enum { disk, parent, version, none } = .disk,
    /// Of `version`.
    version: ?base.Uuid = null,
    kernel: ?[]const u8 = null,
    initrd: ?[]const u8 = null,
    command_line: ?[]const u8 = null,
    /// Programs for an initramfs that is built; null takes those of this machine.
    busybox: ?[]const u8 = null,
    target: ?[]const u8 = null,
    /// Separated by commas.
    add_modules: []const u8 = "",
    /// The paths of kernel and initramfs are below the store's directory.
    in_store: bool = false,

    pub fn of(call: *const Call, options: *const Options) Call.Error!BootChoice {
        const is_given = options.kernel != null or options.initrd != null;
        if (options.no_boot_files and
            (is_given or options.cmdline != null or options.parent_boot_files))
            return call.fail(
                "--no-boot-files excludes --kernel, --initrd, --cmdline and --parent-boot-files.",
                .{},
            );
        if (options.boot_files_of != null and
            (is_given or options.no_boot_files or options.parent_boot_files or
                options.add_modules != null)) return call.fail(
            "--boot-files-of excludes --kernel, --initrd, --add-modules, --parent-boot-files and --no-boot-files.",
            .{},
        );
        if (options.parent_boot_files and is_given)
            return call.fail("--parent-boot-files excludes --kernel and --initrd.", .{});
        if (options.add_modules != null and
            (is_given or options.no_boot_files or options.parent_boot_files)) return call.fail(
            "--add-modules excludes --kernel, --initrd, --parent-boot-files and --no-boot-files: modules are added to an initramfs that is made.",
            .{},
        );
        if (!core.boot.assignment.isCommandLine(options.cmdline orelse "")) return call.fail(
            "--cmdline is one line of at most 1024 printable ASCII characters, without ${s}, the words ||, && and ;, and words that begin with #.",
            .{"{"},
        );
        return .{
            .from = if (options.no_boot_files)
                .none
            else if (options.parent_boot_files)
                .parent
            else if (options.boot_files_of != null) .version else .disk,
            .version = options.boot_files_of,
            .kernel = options.kernel,
            .initrd = options.initrd,
            .command_line = options.cmdline,
            .busybox = options.busybox,
            .target = options.target,
            .add_modules = options.add_modules orelse "",
            .in_store = options.in_store,
        };
    }

    /// Returns whether the disk has to be read for it.
    pub fn needsDisk(wanted: *const BootChoice) bool {
        return wanted.from == .disk and wanted.kernel == null;
    }
};

pub const BootFiles = struct {
    kernel: ?BootFile = null,
    initrd: ?BootFile = null,
    command_line: CommandLine = .empty,
};

/// Runs under the store's lock.
///
/// @param disk what is imported or sealed; used if `BootChoice.needsDisk`
pub fn take(
    call: *const Call,
    wanted: *const BootChoice,
    parent: ?*const Manifest,
    disk: ?*const BlockSource,
) Call.Error!BootFiles {
    switch (wanted.from) {
        .none => return .{},
        .parent => {
            const before = parent orelse
                return call.fail("--parent-boot-files goes with --parent ID.", .{});
            const line = if (wanted.command_line) |given| CommandLine.fromSlice(given) catch
                unreachable else before.command_line;
            return .{ .kernel = before.kernel, .initrd = before.initrd, .command_line = line };
        },
        .version => return takeOf(call, wanted),
        .disk => {},
    }
    return if (wanted.needsDisk()) takeFromDisk(call, wanted, disk.?) else takeGiven(call, wanted);
}

fn takeOf(call: *const Call, wanted: *const BootChoice) Call.Error!BootFiles {
    const id = wanted.version.?;
    const other = call.store().manifestOf(id) catch |err| return call.failVersion(id, err);
    if (other.kernel == null) return call.fail(
        "The version {f} has no kernel that another one could boot with.",
        .{id},
    );
    return .{
        .kernel = other.kernel,
        .initrd = other.initrd,
        .command_line = if (wanted.command_line) |given| CommandLine.fromSlice(given) catch
            unreachable else other.command_line,
    };
}

fn takeGiven(call: *const Call, wanted: *const BootChoice) Call.Error!BootFiles {
    const kernel_path = wanted.kernel.?;
    var kernel = try store_paths.openPlain(call, kernel_path, wanted.in_store);
    defer kernel.close();
    var initrd =
        if (wanted.initrd) |path| try store_paths.openPlain(call, path, wanted.in_store) else null;
    defer if (initrd) |*file| file.close();
    const found = host.loader_files.inspect(&kernel, if (initrd) |*file| file else null) catch |err|
        return call.fail("{s} {s}.", .{ kernel_path, host.loader_files.sentence(err) });
    if (core.loader.kernel_fit.judge(&found, null)) |blocker| return call.fail(
        "{s} does not belong to {s}: {s}; build it again with bootfarm-edge initramfs build.",
        .{ wanted.initrd.?, kernel_path, blocker.text.slice() },
    );
    return .{
        .kernel = try copyFile(call, &kernel, kernel_path),
        .initrd = if (initrd) |*file| try copyFile(call, file, wanted.initrd.?) else null,
        .command_line = CommandLine.fromSlice(wanted.command_line orelse "") catch unreachable,
    };
}

fn takeFromDisk(
    call: *const Call,
    wanted: *const BootChoice,
    disk: *const BlockSource,
) Call.Error!BootFiles {
    var arena: std.heap.ArenaAllocator = .init(call.gpa);
    defer arena.deinit();
    const bundle = try arena.allocator().create(BootBundle);
    var added: std.ArrayList([]const u8) = .empty;
    var names = std.mem.tokenizeScalar(u8, wanted.add_modules, ',');
    while (names.next()) |name| try added.append(arena.allocator(), name);
    const tools: BootBundle.Tools = .{
        .io = call.init.io,
        .arena = arena.allocator(),
        .terminal = call.terminal,
        .busybox = wanted.busybox,
        .target = wanted.target,
        .has_initramfs = wanted.initrd != null,
        .command_line = wanted.command_line,
        .added = added.items,
        .is_job = wanted.in_store,
    };
    switch (try bundle.open(&tools, disk)) {
        .ready => {},
        .reason => |reason| return call.fail(
            "The boot files of the disk cannot be used: {s}. {s}",
            .{ reason, if (wanted.in_store)
                "Give a kernel and an initramfs, or choose the boot files of the parent, or none."
            else
                "Give --kernel, --initrd and --cmdline, or add --parent-boot-files or --no-boot-files." },
        ),
    }
    if (added.items.len > 0 and bundle.built == null) return call.fail(
        "The system on the disk was prepared and has its own initramfs, to which no modules can be added here.",
        .{},
    );
    return .{
        .kernel = try copyPart(call, bundle, BootBundle.writeKernel),
        .initrd = if (wanted.initrd) |path| blk: {
            var file = try store_paths.openPlain(call, path, wanted.in_store);
            defer file.close();
            break :blk try copyFile(call, &file, path);
        } else try copyPart(call, bundle, BootBundle.writeInitramfs),
        .command_line = CommandLine.fromSlice(bundle.command_line) catch unreachable,
    };
}

fn copyFile(call: *const Call, file: *StoreFile, path: []const u8) Call.Error!BootFile {
    return store_module.boot_bundle.take(
        call.files(),
        .{ .context = file, .read = read },
    ) catch |err| switch (err) {
        error.SourceFailed => call.fail(
            "{s} cannot be read: it is changing, or the system reports an error.",
            .{path},
        ),
        error.TooLarge => call.fail("{s} is larger than any kernel or initramfs.", .{path}),
        error.Empty => call.fail("{s} is empty.", .{path}),
        else => |other| call.failStore(other),
    };
}

fn read(context: *anyopaque, buffer: []u8, offset: u64) error{SourceFailed}!usize {
    const file: *const StoreFile = @ptrCast(@alignCast(context));
    const count: usize = @intCast(@min(buffer.len, file.size - offset));
    file.read(buffer[0..count], offset) catch return error.SourceFailed;
    return count;
}

fn copyPart(
    call: *const Call,
    bundle: *BootBundle,
    content: fn (*BootBundle, *Io.Writer) BootBundle.WriteError!void,
) Call.Error!BootFile {
    var buffer: [64 << 10]u8 = undefined;
    var into: StoreWriter = .{
        .taking = FileWriter.begin(call.files()) catch |err| return call.failStore(err),
        .writer = .{ .buffer = &buffer, .vtable = &.{ .drain = StoreWriter.drain } },
    };
    defer into.taking.end();
    content(bundle, &into.writer) catch |err| return explain(call, &into, err);
    into.writer.flush() catch |err| return explain(call, &into, err);
    return into.taking.finish() catch |err| switch (err) {
        error.Empty => call.fail("The kernel or initramfs of the disk is empty.", .{}),
        else => |other| call.failStore(other),
    };
}

fn explain(call: *const Call, into: *const StoreWriter, problem: BootBundle.WriteError) Call.Error {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.WriteFailed => switch (into.problem.?) {
            error.TooLarge => call.fail(
                "The kernel or initramfs of the disk is larger than any can be.",
                .{},
            ),
            else => |other| call.failStore(other),
        },
        else => |other| call.fail("The disk {s}.", .{image.sentence(other)}),
    };
}

/// Writes into the store.
const StoreWriter = struct {
    taking: FileWriter,
    problem: ?(store_module.files.Error || error{TooLarge}) = null,
    writer: Io.Writer,

    fn drain(writer: *Io.Writer, data: []const []const u8, splat: usize) Io.Writer.Error!usize {
        const into: *StoreWriter = @alignCast(@fieldParentPtr("writer", writer));
        try into.append(writer.buffered());
        writer.end = 0;
        var count: usize = 0;
        for (data[0 .. data.len - 1]) |bytes| {
            try into.append(bytes);
            count += bytes.len;
        }
        for (0..splat) |_| {
            try into.append(data[data.len - 1]);
            count += data[data.len - 1].len;
        }
        return count;
    }

    fn append(into: *StoreWriter, bytes: []const u8) Io.Writer.Error!void {
        into.taking.append(bytes) catch |err| {
            into.problem = err;
            return error.WriteFailed;
        };
    }
};
