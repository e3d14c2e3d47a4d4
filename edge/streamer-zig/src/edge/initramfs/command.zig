//! `bootfarm-edge initramfs build`: builds the initramfs with which a kernel reaches its streamed
//! root disk, and prints what it includes and what the kernel lacks. Running it again is safe; the
//! same input gives the same bytes.

const std = @import("std");
const Io = std.Io;
const Allocator = std.mem.Allocator;
const initramfs_build = @import("build.zig");
const Terminal = @import("../terminal.zig").Terminal;
const Build = initramfs_build.Build;
const Failure = initramfs_build.Failure;

const added_max = 64;

const Options = struct {
    build: initramfs_build.Options = .{ .release = "" },
    out: []const u8 = "",
};

/// `arguments` follow `initramfs` on the command line. Returns the exit code.
pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
    defer arena.deinit();
    var directory: Directory = .{ .io = init.io };
    const build: Build = .{
        .io = init.io,
        .arena = arena.allocator(),
        .terminal = terminal,
        .source = directory.source(),
    };
    if (arguments.len == 0 or !std.mem.eql(u8, arguments[0], "build"))
        return terminal.fail(
            "Name an initramfs command: build; see bootfarm-edge initramfs --help.",
            .{},
        );
    make(&build, arguments[1..]) catch |reason| return switch (reason) {
        error.Explained => 1,
        error.OutOfMemory => terminal.fail("There is not enough memory.", .{}),
    };
    return 0;
}

fn make(build: *const Build, arguments: []const [:0]const u8) Failure!void {
    const options = try parse(build, arguments);
    const prepared = try build.prepare(options.build);
    try writeFile(build, options.out, &prepared);
}

fn parse(build: *const Build, arguments: []const [:0]const u8) Failure!Options {
    var options: Options = .{};
    var added: std.ArrayList([]const u8) = .empty;
    var index: usize = 0;
    while (index < arguments.len) : (index += 2) {
        const name = arguments[index];
        if (index + 1 == arguments.len) return build.fail("{s} needs a value", .{name});
        const value = arguments[index + 1];
        if (std.mem.eql(u8, name, "--kernel-release")) options.build.release = value //
        else if (std.mem.eql(u8, name, "--out")) options.out = value //
        else if (std.mem.eql(u8, name, "--modules")) options.build.modules = value //
        else if (std.mem.eql(u8, name, "--busybox")) options.build.busybox = value //
        else if (std.mem.eql(u8, name, "--target")) options.build.target = value //
        else if (std.mem.eql(u8, name, "--add-module")) {
            if (added.items.len == added_max)
                return build.fail("at most {d} modules can be added", .{added_max});
            try added.append(build.arena, value);
        } else return build.fail(
            "initramfs build has no option {s}; see bootfarm-edge initramfs build --help",
            .{name},
        );
    }
    options.build.added = added.items;
    if (options.build.release.len == 0)
        return build.fail("--kernel-release is missing: the release as `uname -r` prints it", .{});
    if (!initramfs_build.isRelease(options.build.release))
        return build.fail(
            "--kernel-release is a name of at most 64 characters as `uname -r` prints it, not a path",
            .{},
        );
    if (options.out.len == 0)
        return build.fail("--out is missing: where to write the initramfs", .{});
    return options;
}

/// Reads modules from a directory of this machine.
const Directory = struct {
    io: Io,

    fn source(directory: *Directory) initramfs_build.ModuleSource {
        return .{ .context = directory, .readFn = read, .existsFn = exists, .listFn = list };
    }

    fn of(context: *anyopaque) *Directory {
        return @ptrCast(@alignCast(context));
    }

    fn read(context: *anyopaque, arena: Allocator, path: []const u8) ?[]const u8 {
        return Io.Dir.cwd().readFileAlloc(of(context).io, path, arena, .limited(
            initramfs_build.file_size_max,
        )) catch null;
    }

    fn exists(context: *anyopaque, path: []const u8) bool {
        Io.Dir.cwd().access(of(context).io, path, .{}) catch return false;
        return true;
    }

    fn list(context: *anyopaque, arena: Allocator, path: []const u8) []const []const u8 {
        const io = of(context).io;
        var names: std.ArrayList([]const u8) = .empty;
        const dir = Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch return &.{};
        defer dir.close(io);
        var iterator = dir.iterate();
        while (iterator.next(io) catch null) |entry| {
            const name = arena.dupe(u8, entry.name) catch return names.items;
            names.append(arena, name) catch return names.items;
        }
        return names.items;
    }
};

fn writeFile(
    build: *const Build,
    out: []const u8,
    prepared: *const initramfs_build.Prepared,
) Failure!void {
    const file = Io.Dir.cwd().createFileAtomic(build.io, out, .{ .replace = true }) catch
        return build.fail("{s} cannot be written", .{out});
    var atomic = file;
    defer atomic.deinit(build.io);
    var buffer: [64 << 10]u8 = undefined;
    var writer = atomic.file.writer(build.io, &buffer);
    const unpacked = build.write(prepared, &writer.interface) catch |reason| switch (reason) {
        error.OutOfMemory => return error.OutOfMemory,
        error.WriteFailed => return build.fail("{s} cannot be written; is the disk full?", .{out}),
    };
    atomic.file.setPermissions(build.io, .fromMode(0o644)) catch {};
    atomic.file.sync(build.io) catch return build.fail("{s} cannot be written", .{out});
    atomic.replace(build.io) catch return build.fail("{s} cannot be written", .{out});
    build.print("wrote {s}: {d} modules, {d} KiB, {d} KiB unpacked", .{
        out, prepared.content.modules.len, writer.logicalPos() >> 10, unpacked >> 10,
    });
}
