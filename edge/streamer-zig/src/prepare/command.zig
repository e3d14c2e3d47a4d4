//! `bootfarm-target prepare`: checks the root, reports and writes what is missing, and lets the
//! system rebuild its initramfs. A second run finds nothing to change.

const std = @import("std");
const base = @import("base");
const linux = std.os.linux;
const sys = @import("host").sys;
const initramfs = @import("initramfs");
const checks = @import("checks.zig");
const files = @import("files.zig");
const in_root = @import("in_root.zig");
const Options = @import("options.zig");
const RootDirectory = @import("root_directory.zig");
const check = @import("root_directory.zig").check;
const Allocator = std.mem.Allocator;

const line_size_max = 1024;
/// Limit of this program, and of a file that is compared.
const file_size_max = 16 << 20;

/// `Explained`: the reason has been printed already.
const Failure = error{ Explained, OutOfMemory };

/// `words` follow `prepare` on the command line. Returns the exit code.
pub fn run(words: []const [*:0]const u8) u8 {
    var word: []const u8 = "";
    const options = Options.parse(words, &word) catch |reason| {
        say(2, "bootfarm-target: {s}: {s}", .{ word, Options.explain(reason) });
        return 2;
    };
    var arena: std.heap.ArenaAllocator = .init(std.heap.page_allocator);
    defer arena.deinit();
    const command = Command.init(options, arena.allocator()) catch return 1;
    defer command.root.close();
    const result = if (options.is_undo) command.undo() else command.prepare();
    result catch |reason| {
        if (reason == error.OutOfMemory) say(2, "bootfarm-target: out of memory", .{});
        return 1;
    };
    return 0;
}

const Command = @This();

options: Options,
arena: Allocator,
root: RootDirectory,

fn init(options: Options, arena: Allocator) Failure!Command {
    if (linux.geteuid() != 0) return fail("only root can prepare a system", .{});
    const root = RootDirectory.open(options.root) catch
        return fail("{s} is not a directory", .{options.root});
    errdefer root.close();
    const command: Command = .{ .options = options, .arena = arena, .root = root };
    if (command.isRunningSystem() and startedFromEdge()) return fail(
        "this system was booted from an edge, and changes to it are lost at " ++
            "power-off; prepare its image, mounted somewhere, with --root",
        .{},
    );
    if (linux.errno(linux.faccessat(root.fd, ".", linux.W_OK, 0)) == .ROFS)
        return command.refuse(.read_only);
    return command;
}

fn isRunningSystem(command: Command) bool {
    return std.mem.eql(u8, command.options.root, "/");
}

fn prepare(command: Command) Failure!void {
    const system = switch (checks.look(command.root, command.arena)) {
        .system => |system| system,
        .refused => |reason| return command.refuse(reason),
    };
    say(1, "{s} is {s}", .{ command.options.root, system.name });
    for (system.unfit) |unfit| say(1, "  kernel {s} is skipped: it has no {s} ({s}), and {s}", .{
        unfit.release, unfit.lacks.name, unfit.lacks.option, unfit.lacks.purpose,
    });
    const wanted = try command.wantedFiles();
    var changes: usize = 0;
    for (wanted.items) |file| {
        if (try command.isSame(file)) continue;
        changes += 1;
        // From here on the initramfs must be rebuilt, whatever happens.
        if (files.isInInitramfs(file) and
            !command.options.is_dry_run) try command.forgetInitramfs();
        say(1, "  {s} /{s}: {s}", .{ command.tense("writes", "would write"), file.path, file.why });
        if (command.options.is_dry_run) continue;
        command.root.write(file.path, file.mode, file.content) catch |reason|
            return command.failed(file.path, reason);
    }
    if (command.options.makes_initramfs)
        changes += try command.makeInitramfs(system.releases, wanted.items);
    if (changes == 0) say(1, "nothing to change", .{}) //
    else if (!command.options.is_dry_run) say(
        1,
        "prepared: serve {s} as disk, its /boot/vmlinuz-{s} and /boot/initrd.img-{s} from an edge",
        .{
            command.options.root,
            system.releases[system.releases.len - 1],
            system.releases[system.releases.len - 1],
        },
    );
}

/// All files of a prepared root, in the order in which they are written.
fn wantedFiles(command: Command) Failure!std.ArrayList(files.File) {
    var wanted: std.ArrayList(files.File) = .empty;
    try wanted.append(command.arena, .{
        .path = files.program_path,
        .mode = 0o755,
        .content = try command.ownProgram(),
        .why = "turns an edge's stream into the root disk, and reports to the edge how the " ++
            "boot went",
    });
    try wanted.appendSlice(command.arena, &files.scripts);
    if (command.options.write_cache != null or !command.root.exists(files.write_cache_path)) {
        const choice = command.options.write_cache orelse Options.write_cache_default;
        try wanted.append(command.arena, .{
            .path = files.write_cache_path,
            .content = try std.fmt.allocPrint(command.arena, "{s}\n", .{choice}),
            .why = try std.fmt.allocPrint(command.arena, "writes may take {s} of the " ++
                "machine's memory, and are lost at power-off", .{choice["ram=".len..]}),
        });
    }
    for (files.unit_overrides) |rest| {
        for (rest.unit_paths) |path| {
            if (!command.root.exists(path)) continue;
            try wanted.append(command.arena, rest.file);
            break;
        }
    }
    return wanted;
}

fn ownProgram(command: Command) Failure![]const u8 {
    const fd: i32 = @intCast(check(linux.open("/proc/self/exe", .{ .CLOEXEC = true }, 0)) catch
        return fail("this program cannot read itself; is /proc mounted?", .{}));
    defer sys.close(fd);
    const buffer = try command.arena.alloc(u8, file_size_max);
    const size = sys.readAt(fd, buffer, 0) catch
        return fail("this program cannot read itself", .{});
    return buffer[0..size];
}

fn isSame(command: Command, file: files.File) Failure!bool {
    const there = command.root.read(command.arena, file.path, file_size_max) catch |reason|
        switch (reason) {
            error.OutOfMemory => return error.OutOfMemory,
            error.NotThere => return false,
            else => |other| return command.failed(file.path, other),
        };
    return std.mem.eql(u8, there, file.content);
}

/// Returns the number of initramfs that were built.
fn makeInitramfs(
    command: Command,
    releases: []const []const u8,
    wanted: []const files.File,
) Failure!usize {
    const stamp = try command.stampOf(releases, wanted);
    const is_there = for (releases) |release| {
        if (!command.root.exists(try command.imageOf(release))) break false;
    } else true;
    if (is_there and try command.isSame(.{ .path = files.stamp_path, .content = stamp, .why = "" }))
        return 0;
    for (releases) |release| try command.updateInitramfs(release);
    if (!command.options.is_dry_run)
        command.root.write(files.stamp_path, 0o644, stamp) catch |reason|
            return command.failed(files.stamp_path, reason);
    return releases.len;
}

/// -c creates, -u updates (update-initramfs(8)).
fn updateInitramfs(command: Command, release: []const u8) Failure!void {
    const image = try command.imageOf(release);
    const verb: [:0]const u8 = if (command.root.exists(image)) "-u" else "-c";
    say(1, "  {s} update-initramfs {s} -k {s}: /{s} is what an edge serves", .{
        command.tense("runs", "would run"), verb, release, image,
    });
    if (command.options.is_dry_run) return;
    const name = try command.arena.dupeSentinel(u8, release, 0);
    const arguments = [_:null]?[*:0]const u8{ "/usr/sbin/update-initramfs", verb, "-k", name };
    in_root.run(
        command.root,
        command.isRunningSystem(),
        &arguments,
    ) catch |reason| switch (reason) {
        error.NotStarted => return fail(
            "update-initramfs could not be started in {s}; may this " ++
                "process mount and chroot?",
            .{command.options.root},
        ),
        error.Failed => return fail(
            "update-initramfs for {s} ended with code {d}; its output " ++
                "is above. Fix the cause, then run prepare again",
            .{ release, in_root.last_code },
        ),
    };
}

fn imageOf(command: Command, release: []const u8) Failure![]const u8 {
    return std.mem.concat(command.arena, u8, &.{ "boot/initrd.img-", release });
}

/// Changes with every file of the initramfs, and with every kernel.
fn stampOf(
    command: Command,
    releases: []const []const u8,
    wanted: []const files.File,
) Failure![]const u8 {
    var hash: base.Sha256 = .init(.{});
    for (wanted) |file| if (files.isInInitramfs(file)) hash.update(file.content);
    const digest = hash.finalResult();
    var text: std.ArrayList(u8) = .empty;
    try text.appendSlice(command.arena, try std.fmt.allocPrint(command.arena, "{x}\n", .{&digest}));
    for (releases) |release| {
        try text.appendSlice(command.arena, release);
        try text.append(command.arena, '\n');
    }
    return text.items;
}

fn forgetInitramfs(command: Command) Failure!void {
    command.root.remove(files.stamp_path) catch |reason| switch (reason) {
        error.NotThere => {},
        else => return command.failed(files.stamp_path, reason),
    };
}

fn undo(command: Command) Failure!void {
    var changes: usize = 0;
    changes += try command.takeBack(files.program_path);
    for (files.scripts) |file| changes += try command.takeBack(file.path);
    changes += try command.takeBack(files.write_cache_path);
    for (files.unit_overrides) |rest| {
        const taken = try command.takeBack(rest.file.path);
        changes += taken;
        if (taken > 0 and !command.options.is_dry_run)
            command.root.removeEmpty(std.fs.path.dirnamePosix(rest.file.path).?);
    }
    const is_stamped = command.root.exists(files.stamp_path);
    if (changes == 0 and !is_stamped) return say(1, "nothing to change", .{});
    if (command.options.makes_initramfs) {
        for (command.root.list(command.arena, "boot") catch &.{}) |name| {
            const release = std.mem.cutPrefix(u8, name, "initrd.img-") orelse continue;
            const modules = try std.mem.concat(command.arena, u8, &.{ "lib/modules/", release });
            if (command.root.exists(modules)) try command.updateInitramfs(release);
        }
    }
    if (command.options.is_dry_run) return;
    try command.forgetInitramfs();
    for (files.folders) |folder| command.root.removeEmpty(folder);
    say(1, "taken back: {s} only boots from its own disk", .{command.options.root});
}

/// Returns 1 if there was a file to remove.
fn takeBack(command: Command, path: []const u8) Failure!usize {
    if (!command.root.exists(path)) return 0;
    say(1, "  {s} /{s}", .{ command.tense("removes", "would remove"), path });
    if (command.options.is_dry_run) return 1;
    command.root.remove(path) catch |reason| return command.failed(path, reason);
    return 1;
}

fn tense(command: Command, does: []const u8, would: []const u8) []const u8 {
    return if (command.options.is_dry_run) would else does;
}

fn failed(command: Command, path: []const u8, reason: @import("root_directory.zig").Error) Failure {
    return switch (reason) {
        error.ReadOnly => command.refuse(.read_only),
        error.NotPermitted => command.refuse(.not_permitted),
        error.NotThere, error.Failed => fail(
            "/{s} in {s} cannot be read or written; is the disk full, or something else in its place?",
            .{ path, command.options.root },
        ),
    };
}

fn refuse(command: Command, reason: checks.Reason) Failure {
    const root = command.options.root;
    return switch (reason) {
        .not_debian => |name| fail("{s} has {s}; prepare supports Debian, Ubuntu and their " ++
            "derivatives. `bootfarm-edge initramfs build` works for any Linux", .{ root, name }),
        .other_machine => |other| fail("{s} is a root for {s}, this is the bootfarm-target " ++
            "for {s}; run the one that was built for {s}, on such a machine", .{
            root, machineName(other), machineName(checks.machine), machineName(other),
        }),
        .no_initramfs_tools => fail("{s} has no initramfs-tools; install the package " ++
            "initramfs-tools in it", .{root}),
        .no_busybox => fail(
            "{s} has no busybox; install the package busybox-static in it",
            .{root},
        ),
        .busybox_lacks => |applet| fail(
            "the busybox of {s} has no `{s}`; install the package " ++ "busybox-static in it",
            .{ root, applet },
        ),
        .no_kernel => fail(
            "{s} has no kernel: no /boot/vmlinuz-R with /lib/modules/R; install " ++
                "one in it, such as linux-image-amd64 or linux-image-generic",
            .{root},
        ),
        .unfit_kernel => |unfit| fail("kernel {s} of {s} has no {s} ({s}), and {s}; install " ++
            "another kernel", .{ unfit.release, root, unfit.lacks.name, unfit.lacks.option, unfit.lacks.purpose }),
        .read_only => fail("{s} is read-only; mount it so that it can be written", .{root}),
        .not_permitted => fail("{s} cannot be written, although this is root; is it mounted " ++
            "from another machine?", .{root}),
        .unreadable => |path| fail("{s} of {s} is not a readable program; is the root " ++
            "complete?", .{ path, root }),
        .no_memory => error.OutOfMemory,
    };
}

fn machineName(machine: initramfs.elf.Machine) []const u8 {
    return switch (machine) {
        .x86_64 => "x86-64",
        .aarch64 => "arm64",
        .other => "another processor",
    };
}

fn startedFromEdge() bool {
    var buffer: [4096]u8 = undefined;
    const fd: i32 =
        @intCast(check(linux.open("/proc/cmdline", .{ .CLOEXEC = true }, 0)) catch return false);
    defer sys.close(fd);
    const size = sys.readAt(fd, &buffer, 0) catch return false;
    return std.mem.find(u8, buffer[0..size], "bootfarm.edge=") != null;
}

fn fail(comptime format: []const u8, arguments: anytype) Failure {
    say(2, "bootfarm-target: " ++ format, arguments);
    return error.Explained;
}

/// Writes one line in one call; a longer one is cut.
fn say(fd: i32, comptime format: []const u8, arguments: anytype) void {
    var buffer: [line_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    writer.print(format ++ "\n", arguments) catch {
        buffer[buffer.len - 1] = '\n';
        writer.end = buffer.len;
    };
    sys.writeAll(fd, writer.buffered()) catch {};
}
