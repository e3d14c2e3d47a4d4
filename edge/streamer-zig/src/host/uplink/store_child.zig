//! A process of this same program that works on the store: started without a shell, at the lowest
//! priority of processor and disk, in its own process group; it ends when this process does,
//! however that ends. Its output is read line by line, each of limited size.

const std = @import("std");
const core = @import("core");
const sys = @import("../sys.zig");
const linux = std.os.linux;

pub const StoreChild = @This();

pid: i32,
pid_fd: i32,
output_fd: i32,
line: [core.uplink.store_job.line_size_max]u8 = undefined,
line_size: u16 = 0,
/// The current line is too long: it is skipped.
is_long: bool = false,

/// The result of one turn of reading.
pub const Turn = enum { more, over };

/// Between the end of its output and its own end.
const end_limit_s = 10;

/// The most bytes that one turn reads, so that a process that prints without end does not delay
/// others.
const turn_size_max = 64 * 1024;

pub fn start(arguments: *const core.uplink.store_job.Arguments) sys.Error!StoreChild {
    var pipe: [2]i32 = undefined;
    _ = try sys.check(linux.pipe2(&pipe, .{ .CLOEXEC = true }));
    defer sys.close(pipe[1]);
    errdefer sys.close(pipe[0]);
    const parent = linux.getpid();
    const pid: i32 = @bitCast(@as(u32, @truncate(try sys.check(linux.fork()))));
    if (pid == 0) runInChild(arguments, pipe[1], parent);
    errdefer _ = reap(pid);
    const pid_fd: i32 = @intCast(try sys.check(linux.pidfd_open(pid, 0)));
    errdefer sys.close(pid_fd);
    _ = try sys.check(
        linux.fcntl(pipe[0], linux.F.SETFL, @as(u32, @bitCast(linux.O{ .NONBLOCK = true }))),
    );
    return .{ .pid = pid, .pid_fd = pid_fd, .output_fd = pipe[0] };
}

/// Kills the process if it still runs, and reaps it.
pub fn stop(child: *StoreChild) void {
    _ = reap(child.pid);
    sys.close(child.pid_fd);
    sys.close(child.output_fd);
    child.* = undefined;
}

/// After `over`: returns its exit code; null if it was killed, or did not end in time. Reaps
/// the process.
pub fn finish(child: *StoreChild) ?u8 {
    var polled = [_]linux.pollfd{.{ .fd = child.pid_fd, .events = linux.POLL.IN, .revents = 0 }};
    var timeout: linux.timespec = .{ .sec = end_limit_s, .nsec = 0 };
    _ = linux.ppoll(&polled, 1, &timeout, null);
    const word = reap(child.pid);
    sys.close(child.pid_fd);
    sys.close(child.output_fd);
    child.* = undefined;
    return if (linux.W.IFEXITED(word)) linux.W.EXITSTATUS(word) else null;
}

/// Returns how the process ended.
fn reap(pid: i32) u32 {
    _ = linux.kill(-pid, .KILL);
    _ = linux.kill(pid, .KILL);
    var status: i32 = 0;
    while (linux.errno(linux.waitpid(pid, &status, 0)) == .INTR) {}
    return @bitCast(status);
}

/// Passes on the lines that are available; `over`: it has closed its output, and prints nothing
/// more.
pub fn read(
    child: *StoreChild,
    context: anytype,
    comptime take: fn (@TypeOf(context), []const u8) void,
) Turn {
    var left: usize = turn_size_max;
    while (left > 0) {
        var buffer: [4096]u8 = undefined;
        const size = sys.check(
            linux.read(child.output_fd, &buffer, buffer.len),
        ) catch |err| switch (err) {
            error.WouldBlock, error.Interrupted => return .more,
            error.SystemCallFailed => return .over,
        };
        if (size == 0) return .over;
        left -|= size;
        for (buffer[0..size]) |byte| child.takeByte(byte, context, take);
    }
    return .more;
}

fn takeByte(
    child: *StoreChild,
    byte: u8,
    context: anytype,
    comptime take: fn (@TypeOf(context), []const u8) void,
) void {
    if (byte == '\n') {
        if (!child.is_long) take(context, child.line[0..child.line_size]);
        child.line_size = 0;
        child.is_long = false;
    } else if (child.line_size == child.line.len) {
        child.is_long = true;
    } else {
        child.line[child.line_size] = byte;
        child.line_size += 1;
    }
}

const death_signal_option = 1;
const lowest_nice = 19;
const idle_class = 3 << 13;

fn runInChild(
    arguments: *const core.uplink.store_job.Arguments,
    output: i32,
    parent: i32,
) noreturn {
    _ = linux.setpgid(0, 0);
    _ = linux.prctl(death_signal_option, @backingInt(linux.SIG.KILL), 0, 0, 0);
    // The parent may have ended before the child asked to be notified.
    if (linux.getppid() != parent) linux.exit_group(1);
    _ = linux.syscall3(.setpriority, 0, 0, lowest_nice);
    _ = linux.syscall3(.ioprio_set, 1, 0, idle_class);
    var none = linux.sigemptyset();
    _ = linux.sigprocmask(linux.SIG.SETMASK, &none, null);
    if (sys.check(linux.open("/dev/null", .{ .ACCMODE = .RDWR }, 0))) |nothing| {
        _ = linux.dup2(@intCast(nothing), 0);
    } else |_| {}
    _ = linux.dup2(output, 1);
    const environment: [0:null]?[*:0]const u8 = .{};
    _ = linux.execve(arguments.words[0].?, &arguments.words, &environment);
    linux.exit_group(127);
}

const testing = std.testing;

const OutputLines = struct {
    text: [256]u8 = undefined,
    size: usize = 0,

    fn take(heard: *OutputLines, line: []const u8) void {
        const shown = line[0..@min(line.len, 20)];
        @memcpy(heard.text[heard.size..][0..shown.len], shown);
        heard.text[heard.size + shown.len] = '|';
        heard.size += shown.len + 1;
    }
};

/// `text` is a shell script; it gets the words of a merge as its arguments.
fn startScript(tmp: *std.testing.TmpDir, text: []const u8) !StoreChild {
    const options: std.Io.Dir.CreateFileOptions = .{ .permissions = .executable_file };
    var file = try tmp.dir.createFile(testing.io, "program", options);
    try file.writeStreamingAll(testing.io, text);
    file.close(testing.io);
    var path_buffer: [64]u8 = undefined;
    const path = try std.mem.print(&path_buffer, ".zig-cache/tmp/{s}/program", .{&tmp.sub_path});
    var arguments: core.uplink.store_job.Arguments = .{};
    core.uplink.store_job.writeList(&arguments, path, "/store");
    return StoreChild.start(&arguments);
}

fn readAll(child: *StoreChild, heard: *OutputLines) void {
    while (true) {
        var polled =
            [_]linux.pollfd{.{ .fd = child.output_fd, .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.ppoll(&polled, 1, null, null);
        if (child.read(heard, OutputLines.take) == .over) return;
    }
}

test "lines of a process are read whole, one that is too long is skipped, and an unfinished one is ignored" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var child =
        try startScript(
            &tmp,
            "#!/bin/sh\necho \"$1 $2 $5\"\nhead -c 9000 /dev/zero | tr '\\0' x\necho\necho end\nprintf half\nexit 3\n",
        );
    var heard: OutputLines = .{};
    readAll(&child, &heard);
    try testing.expectEqualStrings("vdisk list /store|end|", heard.text[0..heard.size]);
    try testing.expectEqual(3, child.finish().?);
}

test "a process that is stopped is gone with what it has started, and its priority was the lowest" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var child = try startScript(&tmp, "#!/bin/sh\nsleep 1000 &\necho $!\necho $(nice)\nwait\n");
    var heard: OutputLines = .{};
    while (std.mem.countScalar(u8, heard.text[0..heard.size], '|') < 2) {
        var polled =
            [_]linux.pollfd{.{ .fd = child.output_fd, .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.ppoll(&polled, 1, null, null);
        try testing.expectEqual(.more, child.read(&heard, OutputLines.take));
    }
    var words = std.mem.splitScalar(u8, heard.text[0..heard.size], '|');
    const sleeper = try std.fmt.parseInt(i32, words.next().?, 10);
    try testing.expectEqualStrings("19", words.next().?);
    const sleeper_fd: i32 = @intCast(try sys.check(linux.pidfd_open(sleeper, 0)));
    defer sys.close(sleeper_fd);
    const pid = child.pid;
    child.stop();
    try testing.expectEqual(.SRCH, linux.errno(linux.kill(pid, @fromBackingInt(0))));
    // Readable once it has ended; the process that adopts it reaps it.
    var polled = [_]linux.pollfd{.{ .fd = sleeper_fd, .events = linux.POLL.IN, .revents = 0 }};
    _ = linux.ppoll(&polled, 1, null, null);
    try testing.expect(polled[0].revents & linux.POLL.IN != 0);
}
