//! The store's process that makes a version of a difference while its pieces still come: a site
//! has the version a moment after the last piece, not an import later. It is told over its standard
//! input how many bytes from the file's beginning are there. It is only ever ahead: if it ends
//! before the fetch, for whatever reason, the version is imported when the file is whole.

const std = @import("std");
const core = @import("core");
const sys = @import("../sys.zig");
const StoreChild = @import("../uplink/store_child.zig");
const linux = std.os.linux;
const Pieces = core.difference.Pieces;

pub const ImportAhead = @This();

child: StoreChild,
said_fd: i32,
/// Bytes of the whole file, and how many the process knows of.
size: u64,
said: u64 = 0,

/// All that is ever said has room in the pipe, so that nothing waits for the process.
const lines_max = 1024;

pub fn start(arguments: *const core.uplink.store_job.Arguments, size: u64) sys.Error!ImportAhead {
    var pipe: [2]i32 = undefined;
    _ = try sys.check(linux.pipe2(&pipe, .{ .CLOEXEC = true, .NONBLOCK = true }));
    defer sys.close(pipe[0]);
    errdefer sys.close(pipe[1]);
    const child = try StoreChild.startWithInput(arguments, pipe[0]);
    return .{ .child = child, .said_fd = pipe[1], .size = size };
}

/// Ends it; what it has made of the version stays for the next import.
pub fn stop(ahead: *ImportAhead) void {
    ahead.child.stop();
    sys.close(ahead.said_fd);
    ahead.* = undefined;
}

/// Tells it what is there while pieces still come. Returns false if it has ended.
pub fn turn(ahead: *ImportAhead, there: u64) bool {
    if (ahead.child.read({}, ignore) == .over) return false;
    const step = @max(Pieces.piece_size, ahead.size / lines_max + 1);
    // The last byte is kept until the file has its name: it does not end before.
    if (there >= ahead.said + step) ahead.say(@min(there, ahead.size - 1));
    return true;
}

/// The file is whole. Returns the process, whose output says from now on what it does.
pub fn handOver(ahead: *ImportAhead) StoreChild {
    ahead.say(ahead.size);
    sys.close(ahead.said_fd);
    defer ahead.* = undefined;
    return ahead.child;
}

/// One that has ended is found when its output is read.
fn say(ahead: *ImportAhead, there: u64) void {
    var buffer: [24]u8 = undefined;
    const line = std.mem.print(&buffer, "{d}\n", .{there}) catch unreachable;
    _ = linux.write(ahead.said_fd, line.ptr, line.len);
    ahead.said = there;
}

fn ignore(_: void, _: []const u8) void {}

const testing = std.testing;

fn startScript(tmp: *testing.TmpDir, text: []const u8, size: u64) !ImportAhead {
    const options: std.Io.Dir.CreateFileOptions = .{ .permissions = .executable_file };
    var file = try tmp.dir.createFile(testing.io, "program", options);
    try file.writeStreamingAll(testing.io, text);
    file.close(testing.io);
    var buffer: [64]u8 = undefined;
    const path = try std.mem.print(&buffer, ".zig-cache/tmp/{s}/program", .{&tmp.sub_path});
    var arguments: core.uplink.store_job.Arguments = .{};
    core.uplink.store_job.writeList(&arguments, path, "/store");
    return ImportAhead.start(&arguments, size);
}

const Lines = struct {
    text: [256]u8 = undefined,
    count: usize = 0,

    fn take(lines: *Lines, line: []const u8) void {
        for ([_][]const u8{ line, "|" }) |part| {
            @memcpy(lines.text[lines.count..][0..part.len], part);
            lines.count += part.len;
        }
    }
};

fn readAll(child: *StoreChild, lines: *Lines) void {
    while (true) {
        var polled =
            [_]linux.pollfd{.{ .fd = child.output_fd, .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.ppoll(&polled, 1, null, null);
        if (child.read(lines, Lines.take) == .over) return;
    }
}

test "the process is told piece by piece what is there, the last byte at the end, and then the end" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const piece = Pieces.piece_size;
    var ahead = try startScript(&tmp, "#!/bin/sh\nexec tr '\\n' ,\n", 3 * piece);
    for ([_]u64{ 1, piece, piece + 1, 3 * piece }) |there| try testing.expect(ahead.turn(there));
    var child = ahead.handOver();
    var lines: Lines = .{};
    var wanted: [64]u8 = undefined;
    const end = try std.mem.print(&wanted, "{d},{d},{d},", .{ piece, 3 * piece - 1, 3 * piece });
    // `tr` ends no line.
    readAll(&child, &lines);
    try testing.expectEqualStrings(end, child.line[0..child.line_size]);
    try testing.expectEqual(0, child.finish().?);
}

test "a process that ends early is seen, whether it read or not" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var ahead = try startScript(&tmp, "#!/bin/sh\nexit 3\n", 8 * Pieces.piece_size);
    defer ahead.stop();
    var polled =
        [_]linux.pollfd{.{ .fd = ahead.child.output_fd, .events = linux.POLL.IN, .revents = 0 }};
    _ = linux.ppoll(&polled, 1, null, null);
    try testing.expect(!ahead.turn(Pieces.piece_size));
}

test "of a huge file no more is said than the pipe has room for" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const size: u64 = 1 << 50;
    var ahead = try startScript(&tmp, "#!/bin/sh\nsleep 1000\n", size);
    defer ahead.stop();
    var there: u64 = 0;
    while (there < size) : (there += size / 5000) try testing.expect(ahead.turn(there));
    // A pipe that was full would refuse it.
    try testing.expectEqual(2, linux.write(ahead.said_fd, "1\n", 2));
}
