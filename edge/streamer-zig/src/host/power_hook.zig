//! Runs the command that switches devices on (`serve --power-hook PATH`): without a shell, a few at
//! a time, for a limited time, with limited output (packages/proto/UPLINK.md, "Schedules"). Nothing
//! that a device has sent reaches it.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const sys = @import("sys.zig");
const assert = std.debug.assert;
const linux = std.os.linux;
const Io = std.Io;

pub const PowerHook = struct {
    io: Io,
    path: [:0]const u8,
    wake_fd: i32,
    mutex: Io.Mutex = .init,
    has_jobs: Io.Condition = .init,
    jobs: base.BoundedArray(Job, jobs_max) = .empty,
    results: base.BoundedArray(Done, results_max) = .empty,
    /// Jobs that were given and whose result was not collected yet.
    open_count: u32 = 0,

    const workers = 4;
    const jobs_max = 64;
    const results_max = jobs_max + workers;
    const time_limit_us = 30 * std.time.us_per_s;
    const output_size_max = 1024;

    pub const Job = agent.PowerJob;

    pub const Done = agent.PowerResult;

    /// `hook` must not move afterwards; its threads run until the process ends.
    pub fn start(hook: *PowerHook) std.Thread.SpawnError!void {
        for (0..workers) |_| {
            const thread = try std.Thread.spawn(.{ .stack_size = 256 << 10 }, work, .{hook});
            thread.detach();
        }
    }

    pub fn hasRoom(hook: *PowerHook) bool {
        hook.mutex.lockUncancelable(hook.io);
        defer hook.mutex.unlock(hook.io);
        return hook.open_count < jobs_max;
    }

    /// Call it only after `hasRoom`.
    pub fn give(hook: *PowerHook, job: Job) void {
        hook.mutex.lockUncancelable(hook.io);
        defer hook.mutex.unlock(hook.io);
        hook.jobs.appendAssumeCapacity(job);
        hook.open_count += 1;
        hook.has_jobs.signal(hook.io);
    }

    pub fn take(hook: *PowerHook) ?Done {
        hook.mutex.lockUncancelable(hook.io);
        defer hook.mutex.unlock(hook.io);
        if (hook.results.count == 0) return null;
        hook.open_count -= 1;
        return hook.results.swapRemove(0);
    }

    fn work(hook: *PowerHook) void {
        while (true) {
            const job = hook.nextJob();
            var output: [output_size_max]u8 = undefined;
            const outcome = run(hook.path, &job, &output);
            const done: Done = .{ .job = job, .is_on = outcome.is_on, .text = textOf(&outcome) };
            hook.mutex.lockUncancelable(hook.io);
            hook.results.appendAssumeCapacity(done);
            hook.mutex.unlock(hook.io);
            sys.wake(hook.wake_fd);
        }
    }

    fn nextJob(hook: *PowerHook) Job {
        hook.mutex.lockUncancelable(hook.io);
        defer hook.mutex.unlock(hook.io);
        while (hook.jobs.count == 0) hook.has_jobs.waitUncancelable(hook.io, &hook.mutex);
        const first = hook.jobs.buffer[0];
        std.mem.copyForwards(
            Job,
            hook.jobs.buffer[0 .. hook.jobs.count - 1],
            hook.jobs.buffer[1..hook.jobs.count],
        );
        hook.jobs.count -= 1;
        return first;
    }
};

const End = union(enum) { not_run, exited: u8, signalled, too_long };

const Outcome = struct {
    is_on: bool,
    end: End,
    output: []const u8,
};

/// Returns what went wrong, followed by the first line that the command printed.
fn textOf(outcome: *const Outcome) base.UntrustedText {
    const line = std.mem.sliceTo(std.mem.trimStart(u8, outcome.output, "\r\n"), '\n');
    const said = std.mem.trim(u8, line, " \t\r");
    var buffer: [256]u8 = undefined;
    const text = switch (outcome.end) {
        .not_run => "the power command cannot be run",
        .too_long => "ended after 30 s",
        .signalled => std.mem.print(&buffer, "ended by a signal: {s}", .{
            said[0..@min(said.len, 64)],
        }) catch unreachable,
        .exited => |code| if (code == 0) said else std.mem.print(&buffer, "exit {d}: {s}", .{
            code, said[0..@min(said.len, 64)],
        }) catch unreachable,
    };
    return .init(text);
}

fn run(path: [*:0]const u8, job: *const PowerHook.Job, output: []u8) Outcome {
    var words: Words = undefined;
    words.init(path, job);
    var pipe: [2]i32 = undefined;
    _ = sys.check(linux.pipe2(&pipe, .{ .CLOEXEC = true })) catch
        return .{ .is_on = false, .end = .not_run, .output = "" };
    const pid: i32 = @bitCast(@as(u32, @truncate(sys.check(linux.fork()) catch {
        sys.close(pipe[0]);
        sys.close(pipe[1]);
        return .{ .is_on = false, .end = .not_run, .output = "" };
    })));
    if (pid == 0) runInChild(&words, pipe[1]);
    sys.close(pipe[1]);
    defer sys.close(pipe[0]);
    const deadline_us = sys.monotonicUs() + PowerHook.time_limit_us;
    const read = readUntilOver(pid, pipe[0], output, deadline_us);
    // With all the processes that it has started.
    _ = linux.kill(-pid, .KILL);
    _ = linux.kill(pid, .KILL);
    var status: i32 = 0;
    while (linux.errno(linux.waitpid(pid, &status, 0)) == .INTR) {}
    const word: u32 = @bitCast(status);
    const end: End = if (!read.is_over) .too_long else if (!linux.W.IFEXITED(word))
        .signalled
    else
        .{ .exited = linux.W.EXITSTATUS(word) };
    return .{
        .is_on = end == .exited and end.exited == 0,
        .end = if (end == .exited and end.exited == not_found and read.size == 0) .not_run else end,
        .output = output[0..read.size],
    };
}

/// Exit code of a child that did not find the program.
const not_found = 127;

/// Reads until the program ends, even if another process still holds its output.
fn readUntilOver(pid: i32, fd: i32, buffer: []u8, deadline_us: u64) struct {
    size: usize,
    is_over: bool,
} {
    const pid_fd: i32 =
        @intCast(sys.check(linux.pidfd_open(pid, 0)) catch return .{ .size = 0, .is_over = false });
    defer sys.close(pid_fd);
    var filled: usize = 0;
    var is_open = true;
    while (true) {
        const left_us = deadline_us -| sys.monotonicUs();
        if (left_us == 0) return .{ .size = filled, .is_over = false };
        var polled = [_]linux.pollfd{
            .{ .fd = pid_fd, .events = linux.POLL.IN, .revents = 0 },
            .{ .fd = if (is_open) fd else -1, .events = linux.POLL.IN, .revents = 0 },
        };
        var timeout: linux.timespec = .{
            .sec = @intCast(left_us / std.time.us_per_s),
            .nsec = @intCast(left_us % std.time.us_per_s * std.time.ns_per_us),
        };
        _ = linux.ppoll(&polled, polled.len, &timeout, null);
        if (polled[1].revents != 0) {
            // Output beyond the buffer is read and dropped: a program must not block on its output.
            var dropped: [512]u8 = undefined;
            const rest = if (filled < buffer.len) buffer[filled..] else &dropped;
            const size = sys.check(linux.read(fd, rest.ptr, rest.len)) catch 0;
            if (size == 0) is_open = false else if (filled < buffer.len) filled += size;
        } else if (polled[0].revents != 0) return .{ .size = filled, .is_over = true };
    }
}

/// Arguments and environment, each ended by a zero byte.
const Words = struct {
    buffer: [1024]u8,
    arguments: [6:null]?[*:0]const u8,
    environment: [6:null]?[*:0]const u8,

    fn init(words: *Words, path: [*:0]const u8, job: *const PowerHook.Job) void {
        var writer: std.Io.Writer = .fixed(&words.buffer);
        words.arguments = @splat(null);
        words.environment = @splat(null);
        words.arguments[0] = path;
        words.arguments[1] = "power_on";
        words.arguments[2] = word(&writer, "{f}", .{job.mac});
        words.arguments[3] = word(&writer, "{f}", .{job.device});
        words.arguments[4] = word(&writer, "{s}", .{job.name.slice()});
        words.environment[0] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        words.environment[1] = "BOOTFARM_ACTION=power_on";
        words.environment[2] = word(&writer, "BOOTFARM_MAC={f}", .{job.mac});
        words.environment[3] = word(&writer, "BOOTFARM_DEVICE_ID={f}", .{job.device});
        words.environment[4] = word(&writer, "BOOTFARM_DEVICE_NAME={s}", .{job.name.slice()});
    }

    fn word(writer: *std.Io.Writer, comptime format: []const u8, values: anytype) [*:0]const u8 {
        const from = writer.end;
        writer.print(format ++ "\x00", values) catch unreachable;
        return @ptrCast(writer.buffer[from..].ptr);
    }
};

fn runInChild(words: *const Words, output: i32) noreturn {
    _ = linux.setpgid(0, 0);
    // The edge reads its own signals; a program expects them to be delivered.
    var none = linux.sigemptyset();
    _ = linux.sigprocmask(linux.SIG.SETMASK, &none, null);
    if (sys.check(linux.open("/dev/null", .{ .ACCMODE = .RDWR }, 0))) |nothing| {
        _ = linux.dup2(@intCast(nothing), 0);
    } else |_| {}
    _ = linux.dup2(output, 1);
    _ = linux.dup2(output, 2);
    _ = linux.execve(words.arguments[0].?, &words.arguments, &words.environment);
    linux.exit_group(not_found);
}

const testing = std.testing;

fn testJob() PowerHook.Job {
    return .{
        .key = .{ .schedule_id = .zero, .instant_ms = 0 },
        .device = .fromRandom(@splat(7)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 9 } },
        .name = .init("lab 3; reboot $(x)"),
    };
}

/// Runs a program that the test writes; `text` is a shell script.
fn runScript(tmp: *std.testing.TmpDir, text: []const u8, output: []u8) !Outcome {
    const options: std.Io.Dir.CreateFileOptions = .{ .permissions = .executable_file };
    var file = try tmp.dir.createFile(testing.io, "hook", options);
    try file.writeStreamingAll(testing.io, text);
    file.close(testing.io);
    var path_buffer: [256]u8 = undefined;
    const path =
        try std.mem.printSentinel(&path_buffer, ".zig-cache/tmp/{s}/hook", .{&tmp.sub_path}, 0);
    return run(path, &testJob(), output);
}

test "the command gets its device as arguments and environment, never through a shell" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var output: [1024]u8 = undefined;
    const script = "#!/bin/sh\necho \"$#|$1|$2|$4|$BOOTFARM_MAC|$BOOTFARM_DEVICE_NAME\"\n";
    const outcome = try runScript(&tmp, script, &output);
    try testing.expect(outcome.is_on);
    try testing.expectEqualStrings(
        "4|power_on|02:bf:00:00:00:09|lab 3; reboot $(x)|02:bf:00:00:00:09|lab 3; reboot $(x)\n",
        outcome.output,
    );
}

test "a command that fails, is missing, or prints without end is reported in one line" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var output: [64]u8 = undefined;
    const failed = try runScript(&tmp, "#!/bin/sh\necho 'no\x1b[1m route' >&2\nexit 3\n", &output);
    try testing.expect(!failed.is_on);
    try testing.expectEqualStrings("exit 3: no?[1m route", textOf(&failed).slice());
    const absent = run("/nowhere/hook", &testJob(), &output);
    try testing.expectEqualStrings("the power command cannot be run", textOf(&absent).slice());
    const much = try runScript(
        &tmp,
        "#!/bin/sh\ni=0\nwhile [ $i -lt 9000 ]; do echo 0123456789; i=$((i+1)); done\n",
        &output,
    );
    try testing.expect(much.is_on);
    try testing.expectEqualStrings("0123456789", textOf(&much).slice());
}
