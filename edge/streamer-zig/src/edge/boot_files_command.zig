//! `bootfarm-edge boot-files import|list|remove`: manages the sets of boot programs that an edge
//! publishes. One rename puts a whole set in place, or nothing changes.

const std = @import("std");
const host = @import("host");
const wire = @import("wire");
const sources_module = @import("boot_files_sources.zig");
const Terminal = @import("terminal.zig").Terminal;
const Allocator = std.mem.Allocator;
const Io = std.Io;
const BootFiles = host.BootFiles;
const Failure = sources_module.Failure;
const Set = host.program_set.Set;
const Sources = sources_module.Sources;
const linux = std.os.linux;

const Verb = enum { import, list, remove };

const Options = struct {
    verb: Verb,
    boot_files: []const u8 = "",
    set: ?[]const u8 = null,
    from: []const u8 = "system",
    force_arch: ?wire.boot_program.Arch = null,
    json: bool = false,
};

const Command = struct {
    sources: Sources,
    options: Options,

    fn fail(command: *const Command, comptime format: []const u8, arguments: anytype) Failure {
        return command.sources.fail(format, arguments);
    }

    fn print(
        command: *const Command,
        comptime format: []const u8,
        arguments: anytype,
    ) Failure!void {
        const text = try std.fmt.allocPrint(command.sources.arena, format ++ "\n", arguments);
        command.sources.terminal.out(text);
    }
};

/// `arguments` follow `boot-files` on the command line. Returns the exit code.
pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var arena: std.heap.ArenaAllocator = .init(std.heap.smp_allocator);
    defer arena.deinit();
    const sources: Sources = .{ .io = init.io, .arena = arena.allocator(), .terminal = terminal };
    const verb = if (arguments.len > 0) std.meta.stringToEnum(Verb, arguments[0]) else null;
    if (verb == null) return terminal.fail(
        "Name a boot-files command: import, list or remove; see bootfarm-edge boot-files --help.",
        .{},
    );
    const options = parse(&sources, verb.?, arguments[1..]) catch return 1;
    const command: Command = .{ .sources = sources, .options = options };
    const result = switch (options.verb) {
        .import => import(&command),
        .list => list(&command),
        .remove => remove(&command),
    };
    result catch |reason| return switch (reason) {
        error.Explained => 1,
        error.OutOfMemory => terminal.fail("There is not enough memory.", .{}),
    };
    return 0;
}

fn parse(sources: *const Sources, verb: Verb, arguments: []const [:0]const u8) Failure!Options {
    var options: Options = .{ .verb = verb };
    var index: usize = 0;
    while (index < arguments.len) : (index += 1) {
        const name = arguments[index];
        if (verb == .list and std.mem.eql(u8, name, "--json")) {
            options.json = true;
            continue;
        }
        index += 1;
        if (index == arguments.len) return sources.fail("{s} needs a value.", .{name});
        const value = arguments[index];
        if (std.mem.eql(u8, name, "--boot-files")) options.boot_files = value //
        else if (verb != .list and std.mem.eql(u8, name, "--set")) options.set = value //
        else if (verb == .import and std.mem.eql(u8, name, "--from")) options.from = value //
        else if (verb == .import and std.mem.eql(u8, name, "--force-arch")) {
            options.force_arch = std.meta.stringToEnum(wire.boot_program.Arch, value) orelse
                return sources.fail(
                    "--force-arch is bios, x64_uefi, arm64_uefi or any, not '{s}'.",
                    .{value},
                );
        } else return sources.fail(
            "boot-files {t} has no option {s}; see bootfarm-edge boot-files {t} --help.",
            .{ verb, name, verb },
        );
    }
    if (options.boot_files.len == 0) return sources.fail(
        "--boot-files is missing: the directory given to serve as --boot-files.",
        .{},
    );
    if (options.set) |name| {
        if (std.mem.eql(u8, name, BootFiles.default_name)) return sources.fail(
            "The set default consists of the files directly in the directory; copy or remove those files yourself.",
            .{},
        );
        if (!host.program_set.isSetName(name)) return sources.fail(
            "--set is a name of at most {d} lower-case letters, digits and hyphens, not '{s}'.",
            .{ host.program_set.set_name_size_max, name },
        );
    }
    return options;
}

fn import(command: *const Command) Failure!void {
    const options = &command.options;
    const sources = &command.sources;
    const sets = if (try rootOf(command)) |root| blk: {
        if (options.force_arch != null)
            return command.fail("--force-arch is for files of a folder.", .{});
        break :blk try sources.ofSystem(root, options.set);
    } else blk: {
        const name = options.set orelse return command.fail(
            "--set is missing: a name for the set of the files in {s}.",
            .{options.from},
        );
        const set = try sources.ofFolder(options.from, name, options.force_arch);
        break :blk try sources.arena.dupe(Set, &.{set});
    };
    const dir = try openLocked(command);
    defer dir.close(sources.io);
    for (sets) |*set| {
        try put(command, dir, set);
        try command.print("{s}/{s}", .{ options.boot_files, set.name });
        for (set.files) |*file| try describe(command, set, file);
        if (hint(set)) |text| try command.print("    {s}", .{text});
    }
    try command.print(
        "A running edge reads the sets when it starts: restart it. Running devices are not affected.",
        .{},
    );
}

/// Returns the root of this system's packages, or a folder with unpacked ones; null if the folder
/// has plain files.
fn rootOf(command: *const Command) Failure!?[]const u8 {
    const from = command.options.from;
    if (std.mem.eql(u8, from, "system")) return "/";
    const inside = try std.fs.path.join(command.sources.arena, &.{ from, "usr/lib" });
    const stat = Io.Dir.cwd().statFile(command.sources.io, inside, .{}) catch return null;
    return if (stat.kind == .directory) from else null;
}

fn describe(
    command: *const Command,
    set: *const Set,
    file: *const host.program_set.File,
) Failure!void {
    const arena = command.sources.arena;
    const signers = try arena.alloc([]const u8, file.signers.constSlice().len);
    for (signers, file.signers.constSlice()) |*name, *signer| name.* = signer.slice();
    try command.print("    {s: <16} {s}{s}{s}, {s}{s}, {d} KiB, {s}{s}", .{
        file.name,
        file.kind.text(),
        if (file.version.size > 0) " " else "",
        file.version.slice(),
        if (set.isFirst(file.name)) "first program of " else "for ",
        sources_module.archText(file.arch),
        (file.bytes.len + 1023) >> 10,
        if (signers.len > 0) "signed by " else "not signed",
        try std.mem.join(arena, ", ", signers),
    });
}

/// Returns what to know before the set is chosen for a device.
fn hint(set: *const Set) ?[]const u8 {
    for (set.files) |*file|
        if (file.kind == .grub)
            return "GRUB ignores proxyDHCP and takes files from the DHCP server's next-server: " ++
                "use it only where the edge " ++
                "leases the addresses (--dhcp server), or where that server names the edge as next-server.";
    return null;
}

/// Takes a lock: two imports at once would overwrite each other's set.
fn openLocked(command: *const Command) Failure!Io.Dir {
    const path = command.options.boot_files;
    const io = command.sources.io;
    const cannot = "The directory {s} cannot be created or written.";
    Io.Dir.cwd().createDirPath(io, path) catch return command.fail(cannot, .{path});
    const dir = Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch
        return command.fail(cannot, .{path});
    errdefer dir.close(io);
    const exclusive_now = 2 | 4; // LOCK_EX | LOCK_NB of flock(2).
    switch (linux.errno(linux.flock(dir.handle, exclusive_now))) {
        .SUCCESS => return dir,
        .AGAIN => return command.fail(
            "Another bootfarm-edge boot-files is running in {s}.",
            .{path},
        ),
        else => return command.fail(cannot, .{path}),
    }
}

/// Hidden, so that no edge takes it for a set.
const being_made = ".boot-files-import";

/// Writes the set beside its final place and moves it there with one rename; an earlier set is
/// replaced.
fn put(command: *const Command, dir: Io.Dir, set: *const Set) Failure!void {
    const io = command.sources.io;
    const cannot = "{s}/{s} cannot be written: {t}.";
    const where = command.options.boot_files;
    if (isPresent(io, dir, set.name)) try expectSet(command, dir, set.name);
    // Left by an import that was killed.
    dir.deleteTree(io, being_made) catch {};
    write(command, dir, set) catch |err| {
        dir.deleteTree(io, being_made) catch {};
        return switch (err) {
            error.OutOfMemory => error.OutOfMemory,
            else => |other| command.fail(cannot, .{ where, set.name, other }),
        };
    };
    const name = try command.sources.arena.dupeSentinel(u8, set.name, 0);
    const flags: linux.RENAME = .{ .EXCHANGE = isPresent(io, dir, set.name) };
    switch (linux.errno(linux.renameat2(dir.handle, being_made, dir.handle, name, flags))) {
        .SUCCESS => {},
        else => |err| {
            dir.deleteTree(io, being_made) catch {};
            return command.fail(cannot, .{ where, set.name, err });
        },
    }
    _ = linux.fsync(dir.handle);
    dir.deleteTree(io, being_made) catch {};
}

fn write(command: *const Command, dir: Io.Dir, set: *const Set) !void {
    const io = command.sources.io;
    try dir.createDirPath(io, being_made);
    const inside = try dir.openDir(io, being_made, .{});
    defer inside.close(io);
    for (set.files) |*file| try writeDurably(io, inside, file.name, file.bytes);
    const manifest = try host.program_set.writeManifest(command.sources.arena, set);
    try writeDurably(io, inside, host.program_set.manifest_name, manifest);
    _ = linux.fsync(inside.handle);
}

fn writeDurably(io: Io, dir: Io.Dir, name: []const u8, bytes: []const u8) !void {
    const file = try dir.createFile(io, name, .{});
    defer file.close(io);
    try file.writePositionalAll(io, bytes, 0);
    try file.sync(io);
}

fn isPresent(io: Io, dir: Io.Dir, name: []const u8) bool {
    _ = dir.statFile(io, name, .{}) catch return false;
    return true;
}

/// Refuses a directory that was not made by an import: it belongs to a person.
fn expectSet(command: *const Command, dir: Io.Dir, name: []const u8) Failure!void {
    const path =
        try std.fs.path.join(command.sources.arena, &.{ name, host.program_set.manifest_name });
    if (!isPresent(command.sources.io, dir, path)) return command.fail(
        "{s}/{s} is not a set of boot-files import; move it away, or use another name.",
        .{ command.options.boot_files, name },
    );
}

fn remove(command: *const Command) Failure!void {
    const io = command.sources.io;
    const name = command.options.set orelse
        return command.fail("--set is missing: which set to remove.", .{});
    const path = command.options.boot_files;
    const dir = Io.Dir.cwd().openDir(io, path, .{}) catch
        return command.fail("The directory {s} cannot be read.", .{path});
    dir.close(io);
    const locked = try openLocked(command);
    defer locked.close(io);
    if (!isPresent(io, locked, name))
        return command.fail("There is no set {s} in {s}; see boot-files list.", .{ name, path });
    try expectSet(command, locked, name);
    locked.deleteTree(io, being_made) catch {};
    const old = try command.sources.arena.dupeSentinel(u8, name, 0);
    const rc = linux.renameat2(locked.handle, old, locked.handle, being_made, .{});
    if (linux.errno(rc) != .SUCCESS)
        return command.fail("{s}/{s} cannot be removed.", .{ path, name });
    locked.deleteTree(io, being_made) catch {};
    try command.print("removed {s}/{s}", .{ path, name });
}

fn list(command: *const Command) Failure!void {
    const path = command.options.boot_files;
    const arena = command.sources.arena;
    const files = BootFiles.load(arena, command.sources.io, path) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.DirectoryNotReadable => command.fail("The directory {s} cannot be read.", .{path}),
        error.FileNotReadable => command.fail(
            "A file in {s} cannot be read, or is larger than 64 MiB.",
            .{path},
        ),
        error.TooManyFiles => command.fail(
            "There are more files or sets in {s} than an edge supports.",
            .{path},
        ),
    };
    for (files.left_out) |*set| _ = command.sources.terminal.fail("{s}/{s} {s}.", .{
        path, set.name, host.program_set.sentence(set.why),
    });
    if (command.options.json) return listJson(command, &files);
    if (files.sets.len == 0) return command.print("There are no boot programs in {s}.", .{path});
    for (files.sets) |*set| {
        try command.print("{s}", .{set.name});
        for (set.files) |*file| try describe(command, set, file);
        if (hint(set)) |text| try command.print("    {s}", .{text});
    }
}

/// Writes one object per file, with the names of `bootProgram` in packages/proto/src/uplink.ts.
fn listJson(command: *const Command, files: *const BootFiles) Failure!void {
    var writer: Io.Writer.Allocating = .init(command.sources.arena);
    var json: std.json.Stringify =
        .{ .writer = &writer.writer, .options = .{ .whitespace = .indent_2 } };
    writeJson(&json, files) catch return error.OutOfMemory;
    try command.print("{s}", .{writer.written()});
}

fn writeJson(json: *std.json.Stringify, files: *const BootFiles) std.json.Stringify.Error!void {
    try json.beginArray();
    for (files.sets) |*set| for (set.files) |*file| {
        try json.beginObject();
        try json.objectField("isFirst");
        try json.write(set.isFirst(file.name));
        const fields = .{
            .{ "set", set.name },             .{ "file", file.name },
            .{ "arch", @tagName(file.arch) }, .{ "kind", file.kind.text() },
        };
        inline for (fields) |pair| {
            try json.objectField(pair[0]);
            try json.write(pair[1]);
        }
        if (file.version.size > 0) {
            try json.objectField("version");
            try json.write(file.version.slice());
        }
        try json.objectField("sizeBytes");
        try json.write(file.bytes.len);
        try json.objectField("sha256");
        try json.write(&std.fmt.bytesToHex(file.sha256, .lower));
        try json.objectField("signedBy");
        try json.beginArray();
        for (file.signers.constSlice()) |*signer| try json.write(signer.slice());
        try json.endArray();
        try json.endObject();
    };
    try json.endArray();
}
