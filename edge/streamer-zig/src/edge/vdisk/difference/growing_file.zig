//! A difference whose file is still being written: another program says on a descriptor how many of
//! its bytes are there, a decimal number a line, and a read waits until those that it wants are.
//! The numbers only grow. What is there is right: the one who writes has compared it.

const std = @import("std");
const store_module = @import("store");
const linux = std.os.linux;

const FdSource = store_module.image_source.FdSource;
const ImageSource = store_module.image_source.ImageSource;
const ReadError = store_module.image_source.ReadError;

/// Must not move once `source` was called.
pub const GrowingFile = @This();

/// Of the whole file.
size: u64,
/// Where the numbers come from.
said_fd: i32,
is_canceled: *std.atomic.Value(bool),
there: u64 = 0,
/// Of a line that has not ended.
number: u64 = 0,
file: ?ImageSource = null,

const wait_ms = 200;
const vtable: ImageSource.VTable = .{ .read = read, .nextData = nextData, .now = now };

/// @param file of what is there, at its places
pub fn source(growing: *GrowingFile, file: *FdSource) ImageSource {
    growing.file = file.source();
    return .{
        .context = growing,
        .vtable = &vtable,
        .size = growing.size,
        .is_positional = growing.file.?.is_positional,
    };
}

fn read(context: *anyopaque, buffer: []u8, offset: u64, failed_at: *u64) ReadError!usize {
    const growing: *GrowingFile = @ptrCast(@alignCast(context));
    failed_at.* = offset;
    while (growing.there < @min(offset +| buffer.len, growing.size)) try growing.hear();
    return growing.file.?.read(buffer, offset, failed_at);
}

/// Waits for a number. When nobody is left who writes the file, the import is interrupted: what was
/// read of it stays, and the rest may come later.
fn hear(growing: *GrowingFile) ReadError!void {
    if (growing.is_canceled.load(.monotonic)) return error.Canceled;
    var polled =
        [_]linux.pollfd{.{ .fd = growing.said_fd, .events = linux.POLL.IN, .revents = 0 }};
    const count = linux.poll(&polled, polled.len, wait_ms);
    if (linux.errno(count) != .SUCCESS or count == 0) return;
    var text: [256]u8 = undefined;
    const size = linux.read(growing.said_fd, &text, text.len);
    switch (linux.errno(size)) {
        .SUCCESS => {},
        .INTR, .AGAIN => return,
        else => return error.ReadFailed,
    }
    if (size == 0) {
        growing.is_canceled.store(true, .monotonic);
        return error.Canceled;
    }
    for (text[0..size]) |byte| try growing.take(byte);
}

fn take(growing: *GrowingFile, byte: u8) ReadError!void {
    switch (byte) {
        '0'...'9' => growing.number = growing.number *| 10 +| (byte - '0'),
        '\n' => {
            growing.there = @min(@max(growing.there, growing.number), growing.size);
            growing.number = 0;
        },
        else => return error.ReadFailed,
    }
}

fn nextData(context: *anyopaque, offset: u64) ?u64 {
    _ = context;
    return offset;
}

fn now(context: *anyopaque) ?ImageSource.Now {
    const growing: *GrowingFile = @ptrCast(@alignCast(context));
    return growing.file.?.now();
}

const testing = std.testing;

const Fixture = struct {
    tmp: testing.TmpDir,
    file: FdSource,
    pipe: [2]i32,
    canceled: std.atomic.Value(bool) = .init(false),
    growing: GrowingFile,

    fn init(fixture: *Fixture, size: u64) !void {
        fixture.tmp = testing.tmpDir(.{});
        errdefer fixture.tmp.cleanup();
        try fixture.tmp.dir.writeFile(testing.io, .{ .sub_path = "part", .data = "0123456789" });
        var path: [64]u8 = undefined;
        fixture.canceled = .init(false);
        fixture.file = try .open(
            try std.mem.print(&path, ".zig-cache/tmp/{s}/part", .{&fixture.tmp.sub_path}),
            &fixture.canceled,
        );
        try testing.expectEqual(0, linux.pipe2(&fixture.pipe, .{}));
        fixture.growing = .{
            .size = size,
            .said_fd = fixture.pipe[0],
            .is_canceled = &fixture.canceled,
        };
    }

    fn deinit(fixture: *Fixture) void {
        fixture.file.close();
        for (fixture.pipe) |fd| if (fd >= 0) {
            _ = linux.close(fd);
        };
        fixture.tmp.cleanup();
    }

    fn say(fixture: *Fixture, text: []const u8) void {
        std.debug.assert(linux.write(fixture.pipe[1], text.ptr, text.len) == text.len);
    }

    fn end(fixture: *Fixture) void {
        _ = linux.close(fixture.pipe[1]);
        fixture.pipe[1] = -1;
    }
};

test "a read gets what was said to be there, also where a number comes in two parts" {
    var fixture: Fixture = undefined;
    try fixture.init(20);
    defer fixture.deinit();
    const source_ = fixture.growing.source(&fixture.file);
    try testing.expectEqual(20, source_.size.?);
    var buffer: [4]u8 = undefined;
    var failed_at: u64 = 0;
    fixture.say("4\n1");
    try testing.expectEqual(4, try source_.read(&buffer, 0, &failed_at));
    try testing.expectEqualStrings("0123", &buffer);
    try testing.expectEqual(4, fixture.growing.there);
    fixture.say("0\n8\n");
    try testing.expectEqual(4, try source_.read(&buffer, 6, &failed_at));
    try testing.expectEqualStrings("6789", &buffer);
    // A smaller number takes nothing back, and a larger one than the size is the size.
    fixture.say("99999999999999999999999\n");
    try testing.expectEqual(0, try source_.read(&buffer, 16, &failed_at));
    try testing.expectEqual(20, fixture.growing.there);
}

test "a read is interrupted when nobody writes the file any more, and fails for what is no number" {
    var fixture: Fixture = undefined;
    try fixture.init(20);
    defer fixture.deinit();
    const source_ = fixture.growing.source(&fixture.file);
    var buffer: [4]u8 = undefined;
    var failed_at: u64 = 0;
    fixture.say("x\n");
    try testing.expectError(error.ReadFailed, source_.read(&buffer, 4, &failed_at));
    try testing.expectEqual(4, failed_at);
    fixture.say("7\n");
    fixture.end();
    try testing.expectError(error.Canceled, source_.read(&buffer, 4, &failed_at));
    try testing.expect(fixture.canceled.load(.monotonic));
    try testing.expectEqual(4, try source_.read(&buffer, 3, &failed_at));
}
