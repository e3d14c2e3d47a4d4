//! Collects the contents of an initramfs for `bootfarm-edge initramfs build` and for a boot bundle:
//! the modules that a kernel needs to reach its streamed root disk, from a directory or a disk
//! image, with `bootfarm-target` and busybox. Prints what it includes and what the kernel lacks.

const std = @import("std");
const Io = std.Io;
const Allocator = std.mem.Allocator;
const base = @import("base");
const initramfs = @import("initramfs");
const wire = @import("wire");
const Terminal = @import("../terminal.zig").Terminal;
const ModuleTable = initramfs.ModuleTable;
const ModuleFile = initramfs.archive.ModuleFile;
const module_table = initramfs.module_table;

/// For devices with the processor of this edge.
const own_target = @embedFile("bootfarm_target");
/// Where the static busybox of Debian, Alpine and Fedora is.
const own_busyboxes = [_][]const u8{ "/bin/busybox", "/bin/busybox.static", "/usr/sbin/busybox" };

pub const file_size_max = 256 << 20;
const line_size_max = 4096;
/// All modules together; those of a distribution's kernel take about 30 MB.
const unpacked_size_max = 512 << 20;
/// Of modprobe.d; a distribution has about ten.
const config_files_max = 256;

/// `Explained`: the reason has already been printed.
pub const Failure = error{ Explained, OutOfMemory };

pub const Options = struct {
    release: []const u8,
    /// A root with lib/modules, that folder, or the release's own folder.
    modules: []const u8 = "/",
    busybox: ?[]const u8 = null,
    target: ?[]const u8 = null,
    added: []const []const u8 = &.{},
};

/// The source of modules. What cannot be read counts as missing.
pub const ModuleSource = struct {
    context: *anyopaque,
    readFn: *const fn (context: *anyopaque, arena: Allocator, path: []const u8) ?[]const u8,
    existsFn: *const fn (context: *anyopaque, path: []const u8) bool,
    listFn: *const fn (context: *anyopaque, arena: Allocator, path: []const u8) []const []const u8,

    fn read(source: *const ModuleSource, arena: Allocator, path: []const u8) ?[]const u8 {
        return source.readFn(source.context, arena, path);
    }

    fn exists(source: *const ModuleSource, path: []const u8) bool {
        return source.existsFn(source.context, path);
    }

    fn list(source: *const ModuleSource, arena: Allocator, path: []const u8) []const []const u8 {
        return source.listFn(source.context, arena, path);
    }
};

/// Everything that is ready to be written.
pub const Prepared = struct {
    mark: wire.initramfs_mark.InitramfsMark,
    content: initramfs.archive.Content,
};

/// Returns whether `text` is one word that fits the kernel's limit for it.
pub fn isRelease(text: []const u8) bool {
    if (text.len == 0 or text.len > base.UntrustedText.size_max or std.mem.eql(u8, text, ".."))
        return false;
    for (text) |byte| if (!std.ascii.isGraphical(byte) or byte == '/') return false;
    return true;
}

pub const Build = struct {
    io: Io,
    arena: Allocator,
    terminal: *Terminal,
    source: ModuleSource,
    /// Takes an error message instead of the terminal; the contents are then not printed.
    complaint: ?*Io.Writer.Allocating = null,
    /// The control plane ordered it: nobody who reads the message can give options.
    is_job: bool = false,

    pub fn fail(from: *const Build, comptime format: []const u8, arguments: anytype) Failure {
        if (from.complaint) |text| {
            text.writer.print(format, arguments) catch return error.OutOfMemory;
            return error.Explained;
        }
        _ = from.terminal.fail(format, arguments);
        return error.Explained;
    }

    /// Prints a line about the contents; one that does not fit is left out.
    pub fn print(from: *const Build, comptime format: []const u8, arguments: anytype) void {
        if (from.complaint != null) return;
        var buffer: [line_size_max]u8 = undefined;
        from.terminal.out(std.mem.print(&buffer, format ++ "\n", arguments) catch return);
    }

    fn readModule(from: *const Build, path: []const u8) Failure![]const u8 {
        return from.source.read(from.arena, path) orelse from.fail("{s} cannot be read", .{path});
    }

    fn remedy(
        from: *const Build,
        comptime for_people: []const u8,
        comptime for_jobs: []const u8,
    ) []const u8 {
        return if (from.is_job) for_jobs else for_people;
    }

    /// Reads a file of this machine.
    fn readOptional(from: *const Build, path: []const u8) ?[]const u8 {
        return Io.Dir.cwd().readFileAlloc(from.io, path, from.arena, .limited(file_size_max)) catch
            null;
    }

    fn join(from: *const Build, parts: []const []const u8) Failure![]const u8 {
        return std.fs.path.join(from.arena, parts);
    }

    /// Finds every problem before anything is written.
    pub fn prepare(from: *const Build, options: Options) Failure!Prepared {
        return prepareFrom(from, options);
    }

    /// Writes the mark and then the compressed archive. Returns the unpacked size in bytes.
    pub fn write(
        from: *const Build,
        prepared: *const Prepared,
        writer: *Io.Writer,
    ) (Io.Writer.Error || error{OutOfMemory})!u64 {
        const flate = std.compress.flate;
        const window = try from.arena.alloc(u8, flate.max_window_len);
        const marked = try initramfs.archive.writeMark(writer, &prepared.mark);
        const compressor = try from.arena.create(flate.Compress);
        compressor.* = try .init(writer, window, .gzip, .default);
        const unpacked =
            try initramfs.archive.write(from.arena, &compressor.writer, prepared.content);
        try compressor.finish();
        try writer.flush();
        return marked + unpacked;
    }
};

fn prepareFrom(from: *const Build, options: Options) Failure!Prepared {
    const folder = try findModules(from, options);
    var table = ModuleTable.parse(from.arena, .{
        .dep = try from.readModule(try from.join(&.{ folder, "modules.dep" })),
        .builtin = from.source.read(from.arena, try from.join(
            &.{ folder, "modules.builtin" },
        )) orelse "",
        .softdep = from.source.read(from.arena, try from.join(
            &.{ folder, "modules.softdep" },
        )) orelse "",
        .alias = from.source.read(from.arena, try from.join(&.{ folder, "modules.alias" })) orelse
            "",
        .builtin_modinfo = from.source.read(from.arena, try from.join(
            &.{ folder, "modules.builtin.modinfo" },
        )) orelse "",
        .config = try readConfig(from, options.modules),
    }) catch |reason| switch (reason) {
        error.BadModuleList => return from.fail(
            "{s}/modules.dep was not written by depmod",
            .{folder},
        ),
        error.OutOfMemory => return error.OutOfMemory,
    };
    from.print("initramfs for kernel {s}, modules of {s}", .{ options.release, folder });
    try choose(from, &table, options);
    const files = try readModules(from, &table, folder);
    const target = try readTarget(from, options);
    // readTarget has checked it.
    const machine = (initramfs.elf.facts(target) catch unreachable).machine;
    const busybox = try readBusybox(from, options, machine);
    try checkMachines(from, machine, busybox, files, options);

    var dep: Io.Writer.Allocating = .init(from.arena);
    table.writeDep(from.arena, &dep.writer) catch return error.OutOfMemory;
    var alias: Io.Writer.Allocating = .init(from.arena);
    table.writeAlias(&alias.writer) catch return error.OutOfMemory;
    const mark: wire.initramfs_mark.InitramfsMark = .{
        .release = .init(options.release),
        .architecture = switch (machine) {
            .x86_64 => .x86_64,
            .aarch64 => .aarch64,
            .other => unreachable, // readTarget refuses it.
        },
    };
    return .{ .mark = mark, .content = .{
        .release = options.release,
        .busybox = busybox,
        .target = target,
        .modules = files,
        .dep = dep.written(),
        .alias = alias.written(),
    } };
}

/// Reads the files of modprobe.d(5) of the root that has the modules. A file hides those of the
/// same name in later folders.
fn readConfig(from: *const Build, root: []const u8) Failure![]const []const u8 {
    const folders = [_][]const u8{
        "etc/modprobe.d", "run/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d",
    };
    var texts: std.ArrayList([]const u8) = .empty;
    var seen: std.array_hash_map.String(void) = .empty;
    for (folders) |folder| {
        const place = try from.join(&.{ root, folder });
        for (from.source.list(from.arena, place)) |name| {
            if (!std.mem.endsWith(u8, name, ".conf")) continue;
            if (seen.count() == config_files_max) return texts.items;
            if ((try seen.getOrPut(from.arena, name)).found_existing) continue;
            const path = try from.join(&.{ place, name });
            try texts.append(from.arena, from.source.read(from.arena, path) orelse continue);
        }
    }
    return texts.items;
}

/// Returns the folder with the release's modules.dep.
fn findModules(from: *const Build, options: Options) Failure![]const u8 {
    const places = [_][]const u8{
        try from.join(&.{ options.modules, "lib/modules", options.release }),
        try from.join(&.{ options.modules, "usr/lib/modules", options.release }),
        try from.join(&.{ options.modules, options.release }),
        options.modules,
    };
    for (places) |place| {
        if (from.source.exists(try from.join(&.{ place, "modules.dep" }))) return place;
    }
    for (places) |place| {
        if (!from.source.exists(try from.join(&.{ place, "kernel" }))) continue;
        return from.fail("{s} has modules but no modules.dep; run `depmod -b {s} {s}` first", .{
            place, options.modules, options.release,
        });
    }
    return from.fail("there are no modules of kernel {s} in {s}; there are {s}", .{
        options.release, options.modules, try listReleases(from, options),
    });
}

/// Lists the kernels whose modules are there, for an error message.
fn listReleases(from: *const Build, options: Options) Failure![]const u8 {
    const places = [_][]const u8{
        try from.join(&.{ options.modules, "lib/modules" }),
        try from.join(&.{ options.modules, "usr/lib/modules" }),
        options.modules,
    };
    for (places) |place| {
        var text: Io.Writer.Allocating = .init(from.arena);
        for (from.source.list(from.arena, place)) |name| {
            if (text.written().len > line_size_max / 2) break;
            if (!from.source.exists(try from.join(&.{ place, name, "modules.dep" }))) continue;
            const separator = if (text.written().len > 0) ", " else "those of ";
            text.writer.print("{s}{s}", .{ separator, name }) catch return error.OutOfMemory;
        }
        if (text.written().len > 0) return text.written();
    }
    return "none";
}

fn choose(from: *const Build, table: *ModuleTable, options: Options) Failure!void {
    for (initramfs.module_choice.required) |wanted| {
        if (table.availability(wanted.name) != .absent) continue;
        return from.fail("kernel {s} has no {s} ({s}), neither as a module nor built in: {s}", .{
            options.release, wanted.name, wanted.option, wanted.purpose,
        });
    }
    var required: [initramfs.module_choice.required.len][]const u8 = undefined;
    for (&required, initramfs.module_choice.required) |*name, wanted| name.* = wanted.name;
    _ = try chooseGroup(from, table, "required", &required);
    _ = try chooseGroup(from, table, "buses", &initramfs.module_choice.buses);
    if (try chooseGroup(from, table, "network cards", &initramfs.module_choice.network_cards) == 0)
        from.print(
            "  warning: no driver of a common network card; add the device's driver with --add-module",
            .{},
        );
    _ = try chooseGroup(from, table, "local disks", &initramfs.module_choice.local_disks);
    _ = try chooseGroup(from, table, "TPMs", &initramfs.module_choice.tpms);
    if (try chooseGroup(from, table, "file systems", &initramfs.module_choice.file_systems) == 0)
        from.print("  warning: no file system for a root disk", .{});
    for (options.added) |name| {
        if (table.availability(name) == .absent)
            return from.fail("kernel {s} has no module {s}, which was to be added", .{
                options.release, name,
            });
    }
    if (options.added.len > 0) _ = try chooseGroup(from, table, "added", options.added);
}

/// Chooses those of `names` that exist, prints them, and returns how many there are, built-in ones
/// included.
fn chooseGroup(
    from: *const Build,
    table: *ModuleTable,
    title: []const u8,
    names: []const []const u8,
) Failure!usize {
    var count: usize = 0;
    var line: Io.Writer.Allocating = .init(from.arena);
    for (names) |name| {
        const is_module = table.choose(from.arena, name) catch |reason| switch (reason) {
            error.BadModuleList => return from.fail("modules.dep has an invalid module name", .{}),
            error.OutOfMemory => return error.OutOfMemory,
        };
        if (!is_module and table.availability(name) == .absent) continue;
        count += 1;
        line.writer.print(" {s}{s}", .{ name, if (is_module) "" else " (built in)" }) catch
            return error.OutOfMemory;
    }
    from.print("  {s}:{s}", .{ title, if (count == 0) " none" else line.written() });
    return count;
}

fn readModules(
    from: *const Build,
    table: *const ModuleTable,
    folder: []const u8,
) Failure![]const ModuleFile {
    var files: std.ArrayList(ModuleFile) = .empty;
    var left: usize = unpacked_size_max;
    for (table.modules.values()) |module| {
        if (!module.is_chosen) continue;
        const packed_content = try from.readModule(try from.join(&.{ folder, module.path }));
        const content = initramfs.unpack(
            from.arena,
            .of(module.path),
            packed_content,
        ) catch |reason| switch (reason) {
            error.CannotUnpack => return from.fail("{s}/{s} cannot be unpacked", .{
                folder, module.path,
            }),
            error.OutOfMemory => return error.OutOfMemory,
        };
        if (content.len > left) return from.fail("the modules in {s} have more than {d} bytes", .{
            folder, unpacked_size_max,
        });
        left -= content.len;
        try files.append(
            from.arena,
            .{ .path = module_table.plainPath(module.path), .content = content },
        );
    }
    return files.items;
}

fn readTarget(from: *const Build, options: Options) Failure![]const u8 {
    const path = options.target orelse {
        from.print("  bootfarm-target {s}: that of this program, {d} KiB", .{
            base.version, own_target.len >> 10,
        });
        return own_target;
    };
    const content = from.readOptional(path) orelse return from.fail("{s} cannot be read", .{path});
    const facts = initramfs.elf.facts(content) catch
        return from.fail("{s} is not a program", .{path});
    if (facts.has_interpreter or facts.machine == .other)
        return from.fail("{s} is not a bootfarm-target", .{path});
    from.print("  bootfarm-target {s}: {s}, {d} KiB", .{ base.version, path, content.len >> 10 });
    return content;
}

/// Without a choice, that of the root with the modules stands in for one that this machine lacks:
/// images that were once prepared for an edge have one.
fn readBusybox(
    from: *const Build,
    options: Options,
    machine: initramfs.elf.Machine,
) Failure![]const u8 {
    if (options.busybox) |path| {
        const content = from.readOptional(path) orelse "";
        if (try busyboxProblem(from.arena, path, content)) |problem|
            return from.fail("{s}; install the package busybox-static, or name another one", .{
                problem,
            });
        from.print("  busybox: {s}, {d} KiB", .{ path, content.len >> 10 });
        return content;
    }
    var reason: ?[]const u8 = null;
    var foreign: ?[]const u8 = null;
    for (own_busyboxes ++ [_][]const u8{ "usr/bin/busybox", "bin/busybox" }) |name| {
        const is_own = name[0] == '/';
        const path = if (is_own) name else try from.join(&.{ options.modules, name });
        const content = (if (is_own)
            from.readOptional(path)
        else
            from.source.read(from.arena, path)) orelse "";
        if (try busyboxProblem(from.arena, path, content)) |problem| {
            if (reason == null) reason = problem;
        } else if (machineOf(content) == machine) {
            const whose = if (is_own) "" else "that of the system, ";
            from.print("  busybox: {s}{s}, {d} KiB", .{ whose, path, content.len >> 10 });
            return content;
        } else if (foreign == null) foreign = content;
    }
    // checkMachines explains it.
    return foreign orelse from.fail("{s}; install the package busybox-static{s}", .{
        reason.?,
        from.remedy(
            " here or in the system with the modules, or name a busybox with --busybox",
            " on the edge's machine, or in the image",
        ),
    });
}

/// `program` is one: `busyboxProblem` has found no fault.
fn machineOf(program: []const u8) initramfs.elf.Machine {
    return (initramfs.elf.facts(program) catch unreachable).machine;
}

/// Returns why this machine's busybox cannot be in an initramfs; null: it can.
pub fn ownBusyboxProblem(arena: Allocator, io: Io) error{OutOfMemory}!?[]const u8 {
    var reason: ?[]const u8 = null;
    for (own_busyboxes) |path| {
        const limit: Io.Limit = .limited(file_size_max);
        const content = Io.Dir.cwd().readFileAlloc(io, path, arena, limit) catch "";
        const problem = try busyboxProblem(arena, path, content) orelse return null;
        if (reason == null) reason = problem;
    }
    return reason;
}

/// `content` is empty if the file cannot be read.
fn busyboxProblem(
    arena: Allocator,
    path: []const u8,
    content: []const u8,
) error{OutOfMemory}!?[]const u8 {
    if (content.len == 0) return try std.fmt.allocPrint(arena, "{s} cannot be read", .{path});
    const facts = initramfs.elf.facts(content) catch
        return try std.fmt.allocPrint(arena, "{s} is not a program", .{path});
    if (facts.has_interpreter) return try std.fmt.allocPrint(
        arena,
        "{s} is linked dynamically and would not run without its libraries",
        .{path},
    );
    const applet = initramfs.archive.missingApplet(content) orelse return null;
    return try std.fmt.allocPrint(arena, "{s} has no `{s}`", .{ path, applet });
}

/// Checks that everything is for the same processor.
fn checkMachines(
    from: *const Build,
    machine: initramfs.elf.Machine,
    busybox: []const u8,
    files: []const ModuleFile,
    options: Options,
) Failure!void {
    const busybox_machine = machineOf(busybox);
    if (busybox_machine != machine)
        return from.fail(
            "bootfarm-target is for {t}, but busybox for {t}{s}",
            .{ machine, busybox_machine, from.remedy(
                "; name a matching one with --busybox",
                ": import the image at an edge with the processor of its devices",
            ) },
        );
    for (files) |file| {
        const facts = initramfs.elf.facts(file.content) catch
            return from.fail("{s} is not a kernel module", .{file.path});
        const made_for = initramfs.elf.moduleRelease(file.content);
        if (made_for) |release| if (!std.mem.eql(u8, release, options.release))
            return from.fail(
                "{s} is for kernel {s}, not {s}{s}",
                .{ file.path, release, options.release, from.remedy(
                    "; name the modules of that one with --modules",
                    "",
                ) },
            );
        if (facts.machine == machine) continue;
        return from.fail(
            "kernel {s} is for {t}, but bootfarm-target for {t}{s}",
            .{ options.release, facts.machine, machine, from.remedy(
                "; name a matching one with --target",
                ": import the image at an edge with the processor of its devices",
            ) },
        );
    }
}
