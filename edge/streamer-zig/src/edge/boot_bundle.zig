//! The boot bundle of a version, taken from its image: the kernel, an initramfs that finds the root
//! disk at an edge, and the command line. A system that was prepared (`bootfarm-target prepare`)
//! brings its own initramfs; for any other system one is built from its modules.
//!
//!     var bundle: BootBundle = undefined;                // large, must not move
//!     switch (try bundle.open(&tools, &source)) {        // a store.BlockSource; allocates in
//!     tools.arena
//!         .ready => {
//!             try bundle.writeKernel(writer);            // a std.Io.Writer; reads part by part
//!             try bundle.writeInitramfs(other_writer);
//!             bundle.command_line                        // follows core's rules for command lines
//!         },
//!         .reason => |text| ...,                         // why there is none; printable ASCII, no
//!         full stop
//!     }
//!
//! A disk without a boot bundle is still a disk: the importer may continue with a kernel and an
//! initramfs that were given.

const std = @import("std");
const Io = std.Io;
const Allocator = std.mem.Allocator;
const core = @import("core");
const image = @import("image");
const store = @import("store");
const initramfs_build = @import("initramfs/build.zig");
const Terminal = @import("terminal.zig").Terminal;
const Build = initramfs_build.Build;
const Disk = image.Disk;

/// Bytes of a kernel or an initramfs that are read at once.
const part_size = 256 << 10;

pub const Tools = struct {
    io: Io,
    arena: Allocator,
    terminal: *Terminal,
    /// Programs and drivers for an initramfs that is built; null takes those of this machine.
    busybox: ?[]const u8 = null,
    target: ?[]const u8 = null,
    added: []const []const u8 = &.{},
    /// An initramfs is given, so none is taken or built.
    has_initramfs: bool = false,
    /// The boot files are written to files, not to a version that devices boot.
    is_for_files: bool = false,
    /// Replaces the image's command line; follows core's rules.
    command_line: ?[]const u8 = null,
    /// The control plane ordered it: its messages name no options of a command.
    is_job: bool = false,
};

pub const Answer = union(enum) { ready, reason: []const u8 };

pub const WriteError = image.disk.Error || Io.Writer.Error || error{OutOfMemory};

pub const BootBundle = @This();

tools: Tools,
disk: Disk,
files: image.BootFiles,
/// Null if the image's own initramfs is used.
built: ?initramfs_build.Prepared,
command_line: []const u8,

/// `source` must live as long as the bundle.
pub fn open(
    bundle: *BootBundle,
    tools: *const Tools,
    source: *const store.BlockSource,
) error{OutOfMemory}!Answer {
    bundle.tools = tools.*;
    bundle.built = null;
    const arena = tools.arena;
    bundle.disk.open(arena, source) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        else => |other| return explained(arena, "the disk {s}", .{image.sentence(other)}),
    };
    bundle.disk.renewWork();
    const answer = image.find(arena, &bundle.disk) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        else => |other| return explained(arena, "the disk {s}", .{image.sentence(other)}),
    };
    switch (answer) {
        .found => |files| bundle.files = files,
        .reason => |reason| return explained(arena, "{f}", .{reason}),
    }
    bundle.command_line = tools.command_line orelse
        try commandLine(arena, &bundle.disk, bundle.files.command_line);
    if (!core.boot.assignment.isCommandLine(bundle.command_line)) return explained(
        arena,
        "the command line '{s}' is too long or has words that a boot script cannot pass on; give another one{s}",
        .{ bundle.command_line, if (tools.is_job) "" else " (--cmdline)" },
    );
    if (tools.has_initramfs) return .ready;
    if (!tools.is_for_files) if (whyNotMounted(&bundle.disk)) |reason|
        return explained(arena, "{s}; the initramfs has to be given", .{reason});
    if (bundle.files.is_prepared) return .ready;
    return bundle.buildInitramfs();
}

pub fn writeKernel(bundle: *BootBundle, writer: *Io.Writer) WriteError!void {
    return image.copy(
        &bundle.disk,
        &bundle.files.kernel,
        writer,
        try bundle.tools.arena.alloc(u8, part_size),
    );
}

/// Writes several initramfs files of the image one behind the other, each at a multiple of
/// four, as the kernel expects them.
pub fn writeInitramfs(bundle: *BootBundle, writer: *Io.Writer) WriteError!void {
    if (bundle.built) |*built| {
        const build = bundle.builder(null);
        _ = try build.write(built, writer);
        return;
    }
    const buffer = try bundle.tools.arena.alloc(u8, part_size);
    for (bundle.files.initrds, 0..) |*initrd, index| {
        try image.copy(&bundle.disk, initrd, writer, buffer);
        const is_last = index + 1 == bundle.files.initrds.len;
        const rest: usize = @intCast(initrd.size() % 4);
        if (!is_last and rest != 0) try writer.splatByteAll(0, 4 - rest);
    }
}

fn builder(bundle: *BootBundle, complaint: ?*Io.Writer.Allocating) Build {
    return .{
        .io = bundle.tools.io,
        .arena = bundle.tools.arena,
        .terminal = bundle.tools.terminal,
        .source = .{
            .context = bundle,
            .readFn = readModule,
            .existsFn = hasModule,
            .listFn = listModules,
        },
        .complaint = complaint,
        .is_job = bundle.tools.is_job,
    };
}

fn buildInitramfs(bundle: *BootBundle) error{OutOfMemory}!Answer {
    const arena = bundle.tools.arena;
    const kernel = bundle.files.kernel.path;
    const given = if (bundle.tools.is_job)
        "the initramfs has to be given"
    else
        "the initramfs has to be given (--initrd)";
    const release = bundle.files.release orelse
        return explained(
            arena,
            "{s} does not name its release, which is needed to find its modules; {s}",
            .{ kernel, given },
        );
    if (!initramfs_build.isRelease(release))
        return explained(arena, "{s} has a release that is not a valid name; {s}", .{
            kernel, given,
        });
    if (bundle.disk.root == null) return explained(
        arena,
        "{s} was found, but no file system with its modules can be read ({s}); {s}",
        .{ kernel, whyNoRoot(&bundle.disk), given },
    );
    var complaint: Io.Writer.Allocating = .init(arena);
    const build = bundle.builder(&complaint);
    bundle.built = build.prepare(.{
        .release = release,
        .busybox = bundle.tools.busybox,
        .target = bundle.tools.target,
        .added = bundle.tools.added,
    }) catch |reason| switch (reason) {
        error.OutOfMemory => return error.OutOfMemory,
        error.Explained => return explained(arena, "no initramfs can be made for {s}: {s}", .{
            kernel, complaint.written(),
        }),
    };
    return .ready;
}

fn of(context: *anyopaque) *BootBundle {
    return @ptrCast(@alignCast(context));
}

fn readModule(context: *anyopaque, arena: Allocator, path: []const u8) ?[]const u8 {
    const disk = &of(context).disk;
    disk.renewWork();
    return disk.readTextAt(arena, disk.root.?, path, initramfs_build.file_size_max) catch null;
}

fn hasModule(context: *anyopaque, path: []const u8) bool {
    const disk = &of(context).disk;
    disk.renewWork();
    const found = disk.find(disk.root.?, path) catch return false;
    return found != null;
}

fn listModules(context: *anyopaque, arena: Allocator, path: []const u8) []const []const u8 {
    const disk = &of(context).disk;
    disk.renewWork();
    return disk.list(arena, disk.root.?, path, isAny) catch &.{};
}

fn isAny(_: []const u8) bool {
    return true;
}

/// Returns why a device could not mount a root that can be read here, or null.
pub fn whyNotMounted(disk: *const Disk) ?[]const u8 {
    const root = disk.root orelse return null;
    const part = &disk.parts.buffer[root];
    if (part.logical != null) return "the root file system is in LVM, which an initramfs for " ++
        "the network does not open";
    if (part.partition != null and disk.sector_size != 512)
        return "the partition table is for sectors of 4096 bytes, and devices get sectors of " ++
            "512";
    return null;
}

fn whyNoRoot(disk: *const Disk) []const u8 {
    for (disk.parts.buffer[0..disk.parts.count]) |*part| switch (part.content) {
        .readable => {},
        .refused => |refusal| switch (refusal) {
            .several_devices => return "one is Btrfs on several devices",
            .unknown_profile => return "one is Btrfs with a profile that is not read",
            .lvm,
            .lvm_striped,
            .lvm_raid,
            .lvm_thin,
            .lvm_cache,
            .lvm_other,
            => return "one is in LVM",
            .lvm_on_another_disk => return "one is also on another disk",
            .lvm_damaged => return "one is in LVM, whose metadata is damaged",
            .luks => return "one is encrypted",
            .not_unmounted => return "one was not unmounted: boot and shut it down first",
            .damaged => return "one is damaged",
            .unknown_codec, .swap, .unknown_feature, .unknown => {},
        },
    };
    return "there is none with a system on it";
}

/// Adds the partition of the root, which the initramfs would otherwise search for, and its
/// subvolume.
fn commandLine(
    arena: Allocator,
    disk: *const Disk,
    kept: []const u8,
) error{OutOfMemory}![]const u8 {
    var line: Io.Writer.Allocating = .init(arena);
    const writer = &line.writer;
    writer.writeAll(kept) catch return error.OutOfMemory;
    const root = disk.root orelse return line.written();
    if (disk.parts.buffer[root].number()) |number| writer.print(
        "{s}bootfarm.root=nbd0p{d}",
        .{ if (kept.len > 0) " " else "", number },
    ) catch return error.OutOfMemory;
    if (disk.system(root).?.subvolume()) |name| writer.print(
        "{s}bootfarm.subvolume={s}",
        .{ if (line.written().len > 0) " " else "", name },
    ) catch return error.OutOfMemory;
    return line.written();
}

/// Replaces what is not printable: names and words of an image are untrusted.
pub fn printable(arena: Allocator, text: []const u8) error{OutOfMemory}![]const u8 {
    const copy = try arena.dupe(u8, text);
    for (copy) |*byte| if (!std.ascii.isPrint(byte.*)) {
        byte.* = '?';
    };
    return copy;
}

fn explained(
    arena: Allocator,
    comptime format: []const u8,
    arguments: anytype,
) error{OutOfMemory}!Answer {
    return .{ .reason = try printable(arena, try std.fmt.allocPrint(arena, format, arguments)) };
}
