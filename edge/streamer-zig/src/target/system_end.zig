//! Stops the machine's system in the way its own init expects, or the machine at once.
//!
//! The process that serves the disk must not wait for that disk. So it only sends a signal if the
//! init accepts one; otherwise it runs the system's own program in a child. It uses fork, never
//! vfork: a parent that waits until its child's program has been read from the disk would wait for
//! itself.

const std = @import("std");
const linux = std.os.linux;
const base = @import("base");
const Kind = @import("core").stream.Client.Order.Kind;
const sys = @import("host").sys;
const protection = @import("protection.zig");

/// /proc as it was when the disk was attached; the system has moved it since. Opened once, and
/// valid forever.
pub const ProcFolder = struct {
    fd: i32,

    pub fn open() ProcFolder {
        const flags: linux.O = .{ .PATH = true, .DIRECTORY = true, .CLOEXEC = true };
        const fd: i32 = if (sys.check(linux.open("/proc", flags, 0))) |fd| @intCast(fd) else |_| -1;
        return .{ .fd = fd };
    }
};

/// The kind of the first process, as far as it matters.
const Init = union(enum) {
    /// It accepts this signal (systemd(1), SIGRTMIN+4 and +5 with glibc's SIGRTMIN of 34; busybox's
    /// init: SIGUSR2, SIGTERM).
    signalled: linux.SIG,
    /// Its own program is run in its root.
    program,
    /// The initramfs: nothing is running that must be stopped.
    none,
};

/// Returns whether this machine booted by this boot. Words that were passed as arguments do not
/// count: the disk of a machine that runs from another one may be lost without harm.
pub fn isMachineOf(boot_id: base.Uuid) bool {
    const fd = sys.check(linux.open("/proc/cmdline", .{ .CLOEXEC = true }, 0)) catch return false;
    defer sys.close(@intCast(fd));
    var buffer: [4096]u8 = undefined;
    const size = sys.readAt(@intCast(fd), &buffer, 0) catch return false;
    return namesBoot(buffer[0..size], boot_id);
}

fn namesBoot(command_line: []const u8, boot_id: base.Uuid) bool {
    var words = std.mem.tokenizeAny(u8, command_line, " \t\r\n");
    while (words.next()) |word| {
        const value = std.mem.cutPrefix(u8, word, "bootfarm.boot=") orelse continue;
        const id = base.Uuid.parse(value) catch continue;
        if (id.eql(boot_id)) return true;
    }
    return false;
}

/// Asks the running system to stop; returns false if there is none yet.
pub fn askSystem(proc: ProcFolder, kind: Kind) bool {
    switch (findInit(proc, kind)) {
        .none => return false,
        .signalled => |signal| return linux.errno(linux.kill(1, signal)) == .SUCCESS,
        .program => return inChild(.{ .program = kind }, proc),
    }
}

/// Writes the disks' caches, then stops the machine; in a child, since a disk may never answer.
pub fn syncAndEnd(proc: ProcFolder, kind: Kind) void {
    _ = inChild(.{ .sync = kind }, proc);
}

/// Stops the machine at once.
pub fn askKernel(kind: Kind) void {
    _ = linux.reboot(.MAGIC1, .MAGIC2, switch (kind) {
        .power_off => .POWER_OFF,
        .restart => .RESTART,
    }, null);
}

fn findInit(proc: ProcFolder, kind: Kind) Init {
    const ours = identityOf(linux.AT.FDCWD, "/") orelse return .none;
    const theirs = identityOf(proc.fd, "1/root/") orelse return .none;
    if (std.meta.eql(ours, theirs)) return .none;
    var buffer: [256]u8 = undefined;
    const rc = linux.readlinkat(proc.fd, "1/exe", &buffer, buffer.len);
    const size = sys.check(rc) catch return .program;
    return initNamed(std.fs.path.basename(buffer[0..size]), kind);
}

fn initNamed(name: []const u8, kind: Kind) Init {
    if (std.mem.eql(u8, name, "systemd")) return .{ .signalled = @fromBackingInt(switch (kind) {
        .power_off => 34 + 4,
        .restart => 34 + 5,
    }) };
    if (std.mem.eql(u8, name, "busybox")) return .{ .signalled = switch (kind) {
        .power_off => .USR2,
        .restart => .TERM,
    } };
    return .program;
}

const Identity = struct { dev_major: u32, dev_minor: u32, ino: u64 };

fn identityOf(folder_fd: i32, path: [*:0]const u8) ?Identity {
    var status: linux.Statx = undefined;
    _ = sys.check(linux.statx(folder_fd, path, 0, .{ .INO = true }, &status)) catch return null;
    return .{ .dev_major = status.dev_major, .dev_minor = status.dev_minor, .ino = status.ino };
}

const StopTask = union(enum) { program: Kind, sync: Kind };

/// Nobody waits for the child: its parent ignores SIGCHLD (`protection.zig`).
fn inChild(work: StopTask, proc: ProcFolder) bool {
    const pid = sys.check(linux.fork()) catch return false;
    if (pid != 0) return true;
    becomeOrdinary(proc);
    switch (work) {
        .program => |kind| runSystemProgram(kind, proc),
        .sync => |kind| {
            linux.sync();
            askKernel(kind);
        },
    }
    linux.exit_group(1);
}

/// Undoes what `protection.protect` did and a program would inherit, and limits the child's
/// resources.
fn becomeOrdinary(proc: ProcFolder) void {
    const default: std.posix.Sigaction =
        .{ .handler = .{ .handler = linux.SIG.DFL }, .mask = std.posix.sigemptyset(), .flags = 0 };
    for (protection.ignored_signals) |signal| std.posix.sigaction(signal, &default, null);
    _ = linux.prctl(protection.PR_SET_IO_FLUSHER, 0, 0, 0, 0);
    _ = linux.setsid();
    if (sys.check(
        linux.openat(proc.fd, "self/oom_score_adj", .{ .ACCMODE = .WRONLY, .CLOEXEC = true }, 0),
    )) |fd| {
        _ = linux.write(@intCast(fd), "0", 1);
        sys.close(@intCast(fd));
    } else |_| {}
    const limits = [_]struct { linux.rlimit_resource, u64 }{
        .{ .CPU, 30 },
        .{ .CORE, 0 },
        .{ .AS, 512 << 20 },
    };
    for (limits) |limit| _ = linux.setrlimit(limit[0], &.{ .cur = limit[1], .max = limit[1] });
}

fn runSystemProgram(kind: Kind, proc: ProcFolder) void {
    const root = sys.check(
        linux.openat(proc.fd, "1/root", .{ .PATH = true, .DIRECTORY = true, .CLOEXEC = true }, 0),
    ) catch return;
    _ = sys.check(linux.fchdir(@intCast(root))) catch return;
    _ = sys.check(linux.chroot(".")) catch return;
    const name: [*:0]const u8 = switch (kind) {
        .power_off => "poweroff",
        .restart => "reboot",
    };
    const arguments = [_:null]?[*:0]const u8{name};
    const environment = [_:null]?[*:0]const u8{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    const paths: [3][*:0]const u8 = switch (kind) {
        .power_off => .{ "/usr/sbin/poweroff", "/sbin/poweroff", "/bin/poweroff" },
        .restart => .{ "/usr/sbin/reboot", "/sbin/reboot", "/bin/reboot" },
    };
    for (paths) |path| _ = linux.execve(path, &arguments, &environment);
}

const testing = std.testing;

test "a machine is of the boot that its kernel was told" {
    const id: base.Uuid = .fromRandom(@splat(1));
    var buffer: [128]u8 = undefined;
    const line = try std.mem.print(&buffer, "quiet bootfarm.boot={f} panic=1\n", .{id});
    try testing.expect(namesBoot(line, id));
    try testing.expect(!namesBoot(line, .fromRandom(@splat(2))));
    try testing.expect(!namesBoot("quiet bootfarm.boot= root=/dev/sda1\n", id));
}

test "each init is asked in its own way" {
    try testing.expectEqual(38, @backingInt(initNamed("systemd", .power_off).signalled));
    try testing.expectEqual(39, @backingInt(initNamed("systemd", .restart).signalled));
    try testing.expectEqual(linux.SIG.USR2, initNamed("busybox", .power_off).signalled);
    try testing.expectEqual(linux.SIG.TERM, initNamed("busybox", .restart).signalled);
    try testing.expectEqual(.program, std.meta.activeTag(initNamed("init", .restart)));
}
