//! The log of the running edge, one line per event on standard error, and what it prints on
//! standard output. Once a thread is there, it writes: whoever reads the other end may stand still,
//! and no caller waits for him. Lines that find no place are dropped, counted, and the number is
//! said.

const std = @import("std");
const sys = @import("sys.zig");
const Worker = @import("threads/worker.zig");

const line_size_max = 4096;
/// Lines that wait; of a reader that stands still, the latest are dropped.
const waiting_size_max = 256 << 10;

/// Null: the caller writes, as a command that ends when it is done does.
var writer: ?*Writer = null;

pub const Writer = struct {
    worker: Worker,
    /// Lines that found no place since the thread said it last.
    dropped: std.atomic.Value(u64) = .init(0),

    fn task(to: *Writer) Worker.Task {
        return .{ .context = to, .run = run };
    }

    fn give(to: *Writer, fd: u8, text: []const u8) void {
        if (to.worker.give(to.task(), &.{ &.{fd}, text }, 0)) return;
        _ = to.dropped.fetchAdd(1, .monotonic);
    }

    fn run(context: *anyopaque, jobs: *Worker.Jobs) void {
        const to: *Writer = @ptrCast(@alignCast(context));
        while (jobs.next()) |bytes| sys.writeAll(bytes[0], bytes[1..]) catch {};
        const count = to.dropped.swap(0, .monotonic);
        if (count == 0) return;
        var buffer: [128]u8 = undefined;
        const text = std.mem.print(
            &buffer,
            "bootfarm-edge: {d} lines were dropped: whoever reads them was too slow.\n",
            .{count},
        ) catch unreachable;
        sys.writeAll(2, text) catch {};
    }
};

/// From here on, until the process ends, a thread writes.
pub fn start(gpa: std.mem.Allocator, io: std.Io) !void {
    const to = try gpa.create(Writer);
    to.* = .{ .worker = try .init(io, waiting_size_max) };
    try to.worker.start();
    writer = to;
}

/// Returns once everything is written: at the end of the process.
pub fn finish() void {
    if (writer) |to| to.worker.finish();
}

/// A line that is too long is left out. Each line is one write, from any thread.
pub fn info(comptime format: []const u8, arguments: anytype) void {
    var buffer: [line_size_max]u8 = undefined;
    const text =
        std.mem.print(&buffer, "bootfarm-edge: " ++ format ++ "\n", arguments) catch return;
    print(2, text);
}

/// Writes to standard output (1) or standard error (2).
pub fn print(fd: u8, text: []const u8) void {
    if (writer) |to| to.give(fd, text) else sys.writeAll(fd, text) catch {};
}

const testing = std.testing;
const linux = std.os.linux;

test "a reader that stands still makes nobody wait, and is told how many lines it missed" {
    var fds: [2]i32 = undefined;
    _ = try sys.check(linux.pipe2(&fds, .{ .CLOEXEC = true }));
    defer for (fds) |fd| sys.close(fd);
    var to: Writer = .{ .worker = try .init(testing.io, 4096) };
    defer to.worker.deinit();
    const fd: u8 = @intCast(fds[1]);
    for (0..100) |_| to.give(fd, "a line of the log that is written\n");
    const dropped = to.dropped.load(.monotonic);
    try testing.expect(dropped > 0);
    // The number goes to standard error.
    to.dropped.store(0, .monotonic);
    to.worker.finish();
    var buffer: [8192]u8 = undefined;
    const count = try sys.check(linux.read(fds[0], &buffer, buffer.len));
    const lines = std.mem.count(u8, buffer[0..count], "\n");
    try testing.expectEqual(100, lines + dropped);
}
