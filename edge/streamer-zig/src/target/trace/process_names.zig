//! Names of the processes that read the disk: the program, and the unit of the init system that it
//! runs in. Asked of /proc while the process waits for its read, and remembered.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const guest_trace = @import("core").boot.guest_trace;

pub const ProcessNames = @This();

/// /proc, wherever the system has moved it.
proc_fd: i32,
known: [known_count]Known = @splat(.{}),
/// The first process runs from another root than this one.
has_system: bool = false,

/// More processes than ever read at once; one that was forgotten is asked for again.
const known_count = 1024;
const Known = struct { pid: u32 = 0, comm_hash: u32 = 0, program: ?u16 = null };

const initramfs_unit = "(initramfs)";
const kernel_unit = "(kernel)";
const no_unit = "(no unit)";

/// Returns the number of the program in `collector`.
pub fn programOf(
    names: *ProcessNames,
    collector: *guest_trace.Collector,
    pid: u32,
    comm: []const u8,
) ?u16 {
    const known = &names.known[pid % known_count];
    // A process that runs another program has another name.
    const hash: u32 = @truncate(std.hash.Wyhash.hash(0, comm));
    if (known.pid == pid and known.comm_hash == hash) return known.program;
    var buffer: [1024]u8 = undefined;
    var name: [guest_trace.program_size_max]u8 = undefined;
    const program = collector.programOf(.{
        .name = printable(trimmed(comm), &name),
        .unit = names.unitOf(pid, &buffer),
    });
    known.* = .{ .pid = pid, .comm_hash = hash, .program = program };
    return program;
}

/// A name as systemd gives it to a child that has not begun its program: `(plymouthd)`.
fn trimmed(comm: []const u8) []const u8 {
    if (comm.len > 2 and comm[0] == '(' and comm[comm.len - 1] == ')')
        return comm[1 .. comm.len - 1];
    return comm;
}

fn printable(text: []const u8, buffer: *[guest_trace.program_size_max]u8) []const u8 {
    const size = @min(text.len, buffer.len);
    for (buffer[0..size], text[0..size]) |*to, byte|
        to.* = if (std.ascii.isPrint(byte)) byte else '?';
    return buffer[0..size];
}

/// Empty: the process has ended.
fn unitOf(names: *ProcessNames, pid: u32, buffer: *[1024]u8) []const u8 {
    if (!names.has_system) {
        names.has_system = names.hasSystem();
        if (!names.has_system) return initramfs_unit;
    }
    var path: [32]u8 = undefined;
    const cgroup = std.mem.printSentinel(&path, "{d}/cgroup", .{pid}, 0) catch unreachable;
    const text = sys.readFileIn(names.proc_fd, cgroup, buffer) catch return "";
    if (unitIn(text)) |unit| {
        for (unit) |*byte| if (!std.ascii.isPrint(byte.*)) {
            byte.* = '?';
        };
        return unit;
    }
    const exe = std.mem.printSentinel(&path, "{d}/exe", .{pid}, 0) catch unreachable;
    var target: [1]u8 = undefined;
    const rc = linux.readlinkat(names.proc_fd, exe, &target, target.len);
    // A thread of the kernel has no program.
    return if (linux.errno(rc) == .SUCCESS) no_unit else kernel_unit;
}

fn hasSystem(names: *const ProcessNames) bool {
    const ours = identityOf(linux.AT.FDCWD, "/") orelse return false;
    const theirs = identityOf(names.proc_fd, "1/root/") orelse return false;
    return !std.meta.eql(ours, theirs);
}

const Identity = struct { dev_major: u32, dev_minor: u32, ino: u64 };

fn identityOf(folder_fd: i32, path: [*:0]const u8) ?Identity {
    var status: linux.Statx = undefined;
    _ = sys.check(linux.statx(folder_fd, path, 0, .{ .INO = true }, &status)) catch return null;
    return .{ .dev_major = status.dev_major, .dev_minor = status.dev_minor, .ino = status.ino };
}

const unit_suffixes = [_][]const u8{ ".service", ".scope", ".mount", ".swap", ".socket" };

/// The unit of the system's manager: the first one of the path, in version 2 of control groups or
/// in systemd's own hierarchy.
fn unitIn(text: []u8) ?[]u8 {
    var lines = std.mem.tokenizeScalar(u8, text, '\n');
    while (lines.next()) |line| {
        const slash = std.mem.find(u8, line, ":/") orelse continue;
        if (!std.mem.startsWith(u8, line, "0::") and
            std.mem.find(u8, line[0..slash], "name=systemd") == null) continue;
        var parts = std.mem.tokenizeScalar(u8, line[slash + 1 ..], '/');
        while (parts.next()) |part| for (unit_suffixes) |suffix| {
            if (!std.mem.endsWith(u8, part, suffix)) continue;
            const at = @intFromPtr(part.ptr) - @intFromPtr(text.ptr);
            return text[at..][0..@min(part.len, guest_trace.unit_size_max)];
        };
    }
    return null;
}

const testing = std.testing;

test "a process belongs to the system's unit, in both versions of control groups" {
    const cases = [_]struct { []const u8, ?[]const u8 }{
        .{ "0::/system.slice/ssh.service\n", "ssh.service" },
        .{ "0::/user.slice/user@1000.service/app.slice/a.scope\n", "user@1000.service" },
        .{ "2:cpu:/x.service\n1:name=systemd:/system.slice/a.mount\n0::/\n", "a.mount" },
        .{ "0::/init.scope", "init.scope" },
        .{ "0::/\n", null },
        .{ "", null },
        .{ "0:", null },
        .{ "2:cpu:/x.service\n", null },
    };
    for (cases) |case| {
        var buffer: [128]u8 = undefined;
        @memcpy(buffer[0..case[0].len], case[0]);
        const unit = unitIn(buffer[0..case[0].len]);
        if (case[1]) |expected|
            try testing.expectEqualStrings(expected, unit.?)
        else
            try testing.expectEqual(null, unit);
    }
}

test "names of processes are printable, and those of systemd's children lose their brackets" {
    var buffer: [guest_trace.program_size_max]u8 = undefined;
    try testing.expectEqualStrings("udev-worker", printable(trimmed("(udev-worker)"), &buffer));
    try testing.expectEqualStrings("a?b", printable(trimmed("a\nb"), &buffer));
    try testing.expectEqualStrings("()", printable(trimmed("()"), &buffer));
}
