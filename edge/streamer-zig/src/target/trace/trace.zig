//! `bootfarm-target trace`: which programs read the disk during the boot. The initramfs starts it
//! before there is a disk; it stays in the background until the machine reports ready, and then
//! sends what it saw to the edge through the process that serves the disk. Whatever fails here
//! costs the boot nothing.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const guest_trace = @import("core").boot.guest_trace;
const sys_time = @import("../sys_time.zig");
const system_end = @import("../system_end.zig");
const BlockTrace = @import("block_trace.zig");
const ProcessNames = @import("process_names.zig");
const StreamedDisks = @import("streamed_disks.zig");
const Line = @import("event_line.zig").Line;
const send = @import("send.zig");

/// A machine that has not reported ready by then is traced no longer.
const limit_us = 5 * std.time.us_per_min;
/// Events are handled together: the kernel needs not wake this program for each.
const pause: linux.timespec = .{ .sec = 0, .nsec = 10 * std.time.ns_per_ms };
const wait_ms = 500;
/// Of the pipe, until the next look at the machine.
const reads_max = 64;
const line_size_max = 256;
/// Made by `bootfarm-target ready`, in a folder that is open since the initramfs.
const ready_mark = "ready";

pub fn run() u8 {
    const folder_fd: i32 = @intCast(sys.check(
        linux.open("/run/bootfarm", .{ .PATH = true, .DIRECTORY = true, .CLOEXEC = true }, 0),
    ) catch return 1);
    const proc: system_end.ProcFolder = .open();
    var disks: StreamedDisks = .open();
    const begun = BlockTrace.begin();
    const pid = sys.check(linux.fork()) catch return 1;
    if (pid != 0) return 0;
    leaveCaller();
    // Not a part of the program: the process that serves the disk would have it locked in memory.
    const memory = std.heap.page_allocator.create(Memory) catch linux.exit_group(1);
    memory.* = .{ .names = .{ .proc_fd = proc.fd } };
    const state: guest_trace.State = if (begun) |trace| blk: {
        var opened = trace;
        follow(memory, &opened, &disks, folder_fd);
        break :blk .complete;
    } else |reason| switch (reason) {
        error.NoTracing => .no_tracing,
        error.NoEvent => .no_event,
    };
    if (state != .complete) waitUntilReady(folder_fd);
    const text = memory.collector.write(state, hasSystemd(proc), &memory.text);
    // An edge that has the first part takes it again; who announced it may have failed.
    const is_announced = send.first(.block_trace, guest_trace.magic);
    linux.exit_group(if (is_announced and send.rest(.block_trace, text)) 0 else 1);
}

const Memory = struct {
    names: ProcessNames,
    collector: guest_trace.Collector = .{},
    text: [guest_trace.size_max]u8 = undefined,
    pipe: [16 << 10]u8 = undefined,
};

/// Ends the trace. In the folder that the initramfs made.
pub fn markReady() void {
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .CLOEXEC = true };
    const rc = linux.open("/run/bootfarm/" ++ ready_mark, flags, 0o600);
    sys.close(@intCast(sys.check(rc) catch return));
}

/// The initramfs makes folders of systemd for every system, so its process counts.
fn hasSystemd(proc: system_end.ProcFolder) bool {
    var buffer: [32]u8 = undefined;
    const name = sys.readFileIn(proc.fd, "1/comm", &buffer) catch return false;
    return std.mem.eql(u8, std.mem.trimEnd(u8, name, "\n"), "systemd");
}

/// The script that started this goes on, and a signal for it is not for this process.
fn leaveCaller() void {
    _ = linux.setsid();
    // Nobody waits for this process's children.
    const ignore: std.posix.Sigaction =
        .{ .handler = .{ .handler = linux.SIG.IGN }, .mask = std.posix.sigemptyset(), .flags = 0 };
    std.posix.sigaction(.CHLD, &ignore, null);
    if (sys.check(linux.open("/dev/null", .{ .ACCMODE = .RDWR }, 0))) |nothing| {
        for (0..3) |fd| _ = linux.dup2(@intCast(nothing), @intCast(fd));
        if (nothing > 2) sys.close(@intCast(nothing));
    } else |_| {}
}

/// The edge learns that an account will come. In another process: the edge may not answer.
fn announce() void {
    const pid = sys.check(linux.fork()) catch return;
    if (pid != 0) return;
    linux.exit_group(if (send.first(.block_trace, guest_trace.magic)) 0 else 1);
}

fn isReady(folder_fd: i32) bool {
    return linux.errno(linux.faccessat(folder_fd, ready_mark, linux.F_OK, 0)) == .SUCCESS;
}

fn waitUntilReady(folder_fd: i32) void {
    const until_us = sys.monotonicUs() + limit_us;
    while (sys.monotonicUs() < until_us and !isReady(folder_fd)) {
        const time = sys_time.timespecOf(wait_ms * std.time.us_per_ms);
        _ = linux.nanosleep(&time, null);
    }
}

/// Takes the kernel's lines until the machine is ready.
fn follow(memory: *Memory, trace: *BlockTrace, disks: *StreamedDisks, folder_fd: i32) void {
    const until_us = sys.monotonicUs() + limit_us;
    var lines: Lines = .{ .memory = memory, .disks = disks };
    while (sys.monotonicUs() < until_us and !isReady(folder_fd)) {
        trace.wait(wait_ms);
        // Whether the machine is ready counts also while it reads without a pause.
        for (0..reads_max) |_| lines.take(trace.read(&memory.pipe) orelse break);
        _ = linux.nanosleep(&pause, null);
    }
    trace.stop();
    while (trace.read(&memory.pipe)) |bytes| lines.take(bytes);
    trace.end();
}

/// Puts lines together that came in parts.
const Lines = struct {
    memory: *Memory,
    disks: *StreamedDisks,
    buffer: [line_size_max]u8 = undefined,
    size: usize = 0,
    is_announced: bool = false,

    fn take(lines: *Lines, bytes: []const u8) void {
        for (bytes) |byte| {
            if (byte == '\n') {
                lines.handle(lines.buffer[0..lines.size]);
                lines.size = 0;
            } else if (lines.size < line_size_max) {
                lines.buffer[lines.size] = byte;
                lines.size += 1;
            }
        }
    }

    fn handle(lines: *Lines, text: []const u8) void {
        const collector = &lines.memory.collector;
        switch (Line.parse(text)) {
            .other => {},
            .lost => |count| collector.lost +|= count,
            .read => |read| if (lines.disks.has(read.major, read.minor)) {
                if (!lines.is_announced) announce();
                lines.is_announced = true;
                const program = lines.memory.names.programOf(collector, read.pid, read.comm);
                collector.add(program, read.sector, read.sectors);
            },
        }
    }
};
