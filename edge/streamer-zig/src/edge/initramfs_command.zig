//! `bootfarm-edge initramfs build`: makes the initramfs with which a kernel reaches its streamed root disk, and says what it
//! put in and what the kernel lacks. It may be run again at any time; the same input gives the same bytes.

const std = @import("std");
const Io = std.Io;
const Allocator = std.mem.Allocator;
const base = @import("base");
const initramfs = @import("initramfs");
const wire = @import("wire");
const Terminal = @import("terminal.zig").Terminal;
const ModuleTable = initramfs.ModuleTable;
const ModuleFile = initramfs.archive.ModuleFile;
const module_table = initramfs.module_table;

const file_size_max = 256 << 20;
const added_max = 64;
const line_size_max = 4096;

pub const Options = struct {
    release: []const u8,
    out: []const u8,
    modules: []const u8 = "/",
    busybox: ?[]const u8 = null,
    target: ?[]const u8 = null,
    added: []const []const u8 = &.{},
};

/// `Explained`: the reason has been written for people already.
const Failure = error{ Explained, OutOfMemory };

const Command = struct {
    io: Io,
    arena: Allocator,
    terminal: *Terminal,

    fn fail(command: *const Command, comptime format: []const u8, arguments: anytype) Failure {
        _ = command.terminal.complain(format, arguments);
        return error.Explained;
    }

    /// A line of what the initramfs has in it; one that does not fit is left out.
    fn say(command: *const Command, comptime format: []const u8, arguments: anytype) void {
        var buffer: [line_size_max]u8 = undefined;
        command.terminal.out(std.mem.print(&buffer, format ++ "\n", arguments) catch return);
    }

    fn read(command: *const Command, path: []const u8) Failure![]const u8 {
        return command.readOptional(path) orelse command.fail("{s} cannot be read", .{path});
    }

    fn readOptional(command: *const Command, path: []const u8) ?[]const u8 {
        return Io.Dir.cwd().readFileAlloc(command.io, path, command.arena, .limited(file_size_max)) catch null;
    }

    fn join(command: *const Command, parts: []const []const u8) Failure![]const u8 {
        return std.fs.path.join(command.arena, parts);
    }
};

/// `arguments` follow `initramfs` on the command line. Returns the exit code.
pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
    defer arena.deinit();
    const command: Command = .{ .io = init.io, .arena = arena.allocator(), .terminal = terminal };
    if (arguments.len == 0 or !std.mem.eql(u8, arguments[0], "build"))
        return terminal.complain("Say what to do with the initramfs: build; see bootfarm-edge --help.", .{});
    const options = parse(&command, arguments[1..]) catch return 1;
    build(&command, options) catch |reason| return switch (reason) {
        error.Explained => 1,
        error.OutOfMemory => terminal.complain("There is not enough memory.", .{}),
    };
    return 0;
}

fn parse(command: *const Command, arguments: []const [:0]const u8) Failure!Options {
    var options: Options = .{ .release = "", .out = "" };
    var added: std.ArrayList([]const u8) = .empty;
    var index: usize = 0;
    while (index < arguments.len) : (index += 2) {
        const name = arguments[index];
        if (index + 1 == arguments.len) return command.fail("{s} needs a value", .{name});
        const value = arguments[index + 1];
        if (std.mem.eql(u8, name, "--kernel-release")) options.release = value //
        else if (std.mem.eql(u8, name, "--out")) options.out = value //
        else if (std.mem.eql(u8, name, "--modules")) options.modules = value //
        else if (std.mem.eql(u8, name, "--busybox")) options.busybox = value //
        else if (std.mem.eql(u8, name, "--target")) options.target = value //
        else if (std.mem.eql(u8, name, "--add-module")) {
            if (added.items.len == added_max) return command.fail("at most {d} modules can be added", .{added_max});
            try added.append(command.arena, value);
        } else return command.fail("initramfs build has no option {s}; see bootfarm-edge --help", .{name});
    }
    options.added = added.items;
    if (options.release.len == 0) return command.fail("--kernel-release is missing: the release as `uname -r` prints it", .{});
    if (!isRelease(options.release))
        return command.fail("--kernel-release is a name of at most 64 characters as `uname -r` prints it, not a path", .{});
    if (options.out.len == 0) return command.fail("--out is missing: where to write the initramfs", .{});
    return options;
}

/// One word of at most the length that the kernel has for it.
fn isRelease(text: []const u8) bool {
    if (text.len > base.UntrustedText.size_max or std.mem.eql(u8, text, "..")) return false;
    for (text) |byte| if (!std.ascii.isGraphical(byte) or byte == '/') return false;
    return true;
}

fn build(command: *const Command, options: Options) Failure!void {
    const folder = try findModules(command, options);
    var table = ModuleTable.parse(command.arena, .{
        .dep = try command.read(try command.join(&.{ folder, "modules.dep" })),
        .builtin = command.readOptional(try command.join(&.{ folder, "modules.builtin" })) orelse "",
        .softdep = command.readOptional(try command.join(&.{ folder, "modules.softdep" })) orelse "",
        .alias = command.readOptional(try command.join(&.{ folder, "modules.alias" })) orelse "",
    }) catch |reason| switch (reason) {
        error.BadModuleList => return command.fail("{s}/modules.dep is not a list that depmod wrote", .{folder}),
        error.OutOfMemory => return error.OutOfMemory,
    };
    command.say("initramfs for kernel {s}, modules of {s}", .{ options.release, folder });
    try choose(command, &table, options);
    const files = try readModules(command, &table, folder);
    const target = try readTarget(command, options);
    const busybox = try readBusybox(command, options);
    const machine = (initramfs.elf.facts(target) catch unreachable).machine; // readTarget has looked at it.
    try checkMachines(command, machine, busybox, files, options);

    var dep: Io.Writer.Allocating = .init(command.arena);
    table.writeDep(command.arena, &dep.writer) catch return error.OutOfMemory;
    var alias: Io.Writer.Allocating = .init(command.arena);
    table.writeAlias(&alias.writer) catch return error.OutOfMemory;
    const mark: wire.initramfs_mark.InitramfsMark = .{
        .release = .init(options.release),
        .architecture = switch (machine) {
            .x86_64 => .x86_64,
            .aarch64 => .aarch64,
            .other => unreachable, // readTarget refuses it.
        },
    };
    try writeArchive(command, options, mark, .{
        .release = options.release,
        .busybox = busybox,
        .target = target,
        .modules = files,
        .dep = dep.written(),
        .alias = alias.written(),
    });
}

/// The folder with the release's modules.dep.
fn findModules(command: *const Command, options: Options) Failure![]const u8 {
    const places = [_][]const u8{
        try command.join(&.{ options.modules, "lib/modules", options.release }),
        try command.join(&.{ options.modules, "usr/lib/modules", options.release }),
        try command.join(&.{ options.modules, options.release }),
        options.modules,
    };
    for (places) |place| {
        Io.Dir.cwd().access(command.io, try command.join(&.{ place, "modules.dep" }), .{}) catch continue;
        return place;
    }
    for (places) |place| {
        Io.Dir.cwd().access(command.io, try command.join(&.{ place, "kernel" }), .{}) catch continue;
        return command.fail("{s} has modules but no modules.dep; run `depmod -b {s} {s}` first", .{
            place, options.modules, options.release,
        });
    }
    return command.fail("there are no modules of kernel {s} in {s}; there are {s}", .{
        options.release, options.modules, try listReleases(command, options),
    });
}

/// The kernels whose modules are there, for whoever gave another one.
fn listReleases(command: *const Command, options: Options) Failure![]const u8 {
    const places = [_][]const u8{
        try command.join(&.{ options.modules, "lib/modules" }),
        try command.join(&.{ options.modules, "usr/lib/modules" }),
        options.modules,
    };
    for (places) |place| {
        const dir = Io.Dir.cwd().openDir(command.io, place, .{ .iterate = true }) catch continue;
        defer dir.close(command.io);
        var text: Io.Writer.Allocating = .init(command.arena);
        var iterator = dir.iterate();
        while (iterator.next(command.io) catch null) |entry| {
            if (text.written().len > line_size_max / 2) break;
            dir.access(command.io, try command.join(&.{ entry.name, "modules.dep" }), .{}) catch continue;
            const separator = if (text.written().len > 0) ", " else "those of ";
            text.writer.print("{s}{s}", .{ separator, entry.name }) catch return error.OutOfMemory;
        }
        if (text.written().len > 0) return text.written();
    }
    return "none";
}

fn choose(command: *const Command, table: *ModuleTable, options: Options) Failure!void {
    for (initramfs.module_choice.required) |wanted| {
        if (table.availability(wanted.name) != .absent) continue;
        return command.fail("kernel {s} has no {s} ({s}), neither as a module nor built in: {s}", .{
            options.release, wanted.name, wanted.option, wanted.purpose,
        });
    }
    var required: [initramfs.module_choice.required.len][]const u8 = undefined;
    for (&required, initramfs.module_choice.required) |*name, wanted| name.* = wanted.name;
    _ = try chooseGroup(command, table, "required", &required);
    _ = try chooseGroup(command, table, "buses", &initramfs.module_choice.buses);
    if (try chooseGroup(command, table, "network cards", &initramfs.module_choice.network_cards) == 0)
        command.say("  warning: no driver of a common network card; add the device's own by --add-module", .{});
    if (try chooseGroup(command, table, "file systems", &initramfs.module_choice.file_systems) == 0)
        command.say("  warning: no file system of a root disk", .{});
    for (options.added) |name| {
        if (table.availability(name) == .absent)
            return command.fail("kernel {s} has no module {s} (--add-module)", .{ options.release, name });
    }
    if (options.added.len > 0) _ = try chooseGroup(command, table, "added", options.added);
}

/// Chooses what exists of `names`, says so, and returns how many there are, built-in ones included.
fn chooseGroup(command: *const Command, table: *ModuleTable, title: []const u8, names: []const []const u8) Failure!usize {
    var count: usize = 0;
    var line: Io.Writer.Allocating = .init(command.arena);
    for (names) |name| {
        const is_module = table.choose(command.arena, name) catch |reason| switch (reason) {
            error.BadModuleList => return command.fail("modules.dep has a name that is no module's", .{}),
            error.OutOfMemory => return error.OutOfMemory,
        };
        if (!is_module and table.availability(name) == .absent) continue;
        count += 1;
        line.writer.print(" {s}{s}", .{ name, if (is_module) "" else " (built in)" }) catch return error.OutOfMemory;
    }
    command.say("  {s}:{s}", .{ title, if (count == 0) " none" else line.written() });
    return count;
}

fn readModules(command: *const Command, table: *const ModuleTable, folder: []const u8) Failure![]const ModuleFile {
    var files: std.ArrayList(ModuleFile) = .empty;
    for (table.modules.values()) |module| {
        if (!module.is_chosen) continue;
        const packed_content = try command.read(try command.join(&.{ folder, module.path }));
        const content = initramfs.unpack(command.arena, .of(module.path), packed_content) catch |reason| switch (reason) {
            error.CannotUnpack => return command.fail("{s}/{s} cannot be unpacked", .{ folder, module.path }),
            error.OutOfMemory => return error.OutOfMemory,
        };
        try files.append(command.arena, .{ .path = module_table.plainPath(module.path), .content = content });
    }
    return files.items;
}

fn readTarget(command: *const Command, options: Options) Failure![]const u8 {
    const path = options.target orelse beside: {
        var buffer: [Io.Dir.max_path_bytes]u8 = undefined;
        const size = std.process.executablePath(command.io, &buffer) catch
            return command.fail("--target is missing, and this program does not know where it is", .{});
        const folder = std.fs.path.dirnamePosix(buffer[0..size]) orelse "/";
        break :beside try command.join(&.{ folder, "bootfarm-target" });
    };
    const content = try command.read(path);
    const facts = initramfs.elf.facts(content) catch return command.fail("{s} is not a program", .{path});
    if (facts.has_interpreter or facts.machine == .other) return command.fail("{s} is not a bootfarm-target", .{path});
    command.say("  bootfarm-target {s}: {s}, {d} KiB", .{ base.version, path, content.len >> 10 });
    return content;
}

fn readBusybox(command: *const Command, options: Options) Failure![]const u8 {
    const advice = "install the package busybox-static, or give one by --busybox";
    const path = options.busybox orelse "/bin/busybox";
    const content = command.readOptional(path) orelse return command.fail("{s} cannot be read; {s}", .{ path, advice });
    const facts = initramfs.elf.facts(content) catch return command.fail("{s} is not a program; {s}", .{ path, advice });
    if (facts.has_interpreter)
        return command.fail("{s} is linked dynamically and would not run without its libraries; {s}", .{ path, advice });
    if (initramfs.archive.missingApplet(content)) |applet|
        return command.fail("{s} has no `{s}`; {s}", .{ path, applet, advice });
    command.say("  busybox: {s}, {d} KiB", .{ path, content.len >> 10 });
    return content;
}

/// Everything is for one processor.
fn checkMachines(
    command: *const Command,
    machine: initramfs.elf.Machine,
    busybox: []const u8,
    files: []const ModuleFile,
    options: Options,
) Failure!void {
    const busybox_machine = (initramfs.elf.facts(busybox) catch unreachable).machine; // readBusybox has looked at it.
    if (busybox_machine != machine)
        return command.fail("bootfarm-target is for {t}, but busybox for {t}; give the matching one by --busybox", .{
            machine, busybox_machine,
        });
    for (files) |file| {
        const facts = initramfs.elf.facts(file.content) catch
            return command.fail("{s} is not a kernel module", .{file.path});
        const made_for = initramfs.elf.moduleRelease(file.content);
        if (made_for) |release| if (!std.mem.eql(u8, release, options.release))
            return command.fail("{s} is of kernel {s}, not {s}; give the modules of that one by --modules", .{
                file.path, release, options.release,
            });
        if (facts.machine == machine) continue;
        return command.fail("kernel {s} is for {t}, but bootfarm-target for {t}; give the matching one by --target", .{
            options.release, facts.machine, machine,
        });
    }
}

fn writeArchive(
    command: *const Command,
    options: Options,
    mark: wire.initramfs_mark.InitramfsMark,
    content: initramfs.archive.Content,
) Failure!void {
    const file = Io.Dir.cwd().createFileAtomic(command.io, options.out, .{ .replace = true }) catch
        return command.fail("{s} cannot be written", .{options.out});
    var atomic = file;
    defer atomic.deinit(command.io);
    const sizes = compress(command, atomic.file, &mark, content) catch |reason| switch (reason) {
        error.OutOfMemory => return error.OutOfMemory,
        else => return command.fail("{s} cannot be written; is the disk full?", .{options.out}),
    };
    atomic.file.setPermissions(command.io, .fromMode(0o644)) catch {};
    atomic.file.sync(command.io) catch return command.fail("{s} cannot be written", .{options.out});
    atomic.replace(command.io) catch return command.fail("{s} cannot be written", .{options.out});
    command.say("wrote {s}: {d} modules, {d} KiB, {d} KiB unpacked", .{
        options.out, content.modules.len, sizes.compressed >> 10, sizes.unpacked >> 10,
    });
}

const Sizes = struct { compressed: u64, unpacked: u64 };

fn compress(
    command: *const Command,
    file: Io.File,
    mark: *const wire.initramfs_mark.InitramfsMark,
    content: initramfs.archive.Content,
) !Sizes {
    const flate = std.compress.flate;
    var buffer: [64 << 10]u8 = undefined;
    var writer = file.writer(command.io, &buffer);
    const window = try command.arena.alloc(u8, flate.max_window_len);
    const marked = try initramfs.archive.writeMark(&writer.interface, mark);
    const compressor = try command.arena.create(flate.Compress);
    compressor.* = try .init(&writer.interface, window, .gzip, .default);
    const unpacked = try initramfs.archive.write(command.arena, &compressor.writer, content);
    try compressor.finish();
    try writer.interface.flush();
    return .{ .compressed = writer.logicalPos(), .unpacked = marked + unpacked };
}
