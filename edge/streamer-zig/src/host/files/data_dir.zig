//! The edge's data directory: used by one edge at a time; each file is written whole or not at all.
//! Only this user can read the secrets.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const assert = std.debug.assert;
const linux = std.os.linux;
const Io = std.Io;

pub const Identity = struct {
    edgeId: base.Uuid,
    organizationId: base.Uuid,
    siteId: base.Uuid,
    siteName: []const u8,
    url: []const u8,
    signingKeyId: base.Uuid,
    /// The organization's key in base64; it verifies states.
    signingKey: []const u8,
};

/// flock(2).
const lock_exclusive = 2;
const lock_nonblocking = 4;

pub const OpenError = error{ NotUsable, Locked };
pub const ReadError = error{ Missing, NotReadable };

pub const DataDir = @This();

io: Io,
dir: Io.Dir,
lock_fd: i32,

const file_size_max = core.uplink.desired_state.envelope_size_max + 1024;

/// Creates the directory if needed, and holds its lock until the process ends.
pub fn open(io: Io, path: []const u8) OpenError!DataDir {
    const cwd = Io.Dir.cwd();
    const made = !exists(io, path);
    cwd.createDirPath(io, path) catch return error.NotUsable;
    const dir = cwd.openDir(io, path, .{ .iterate = true }) catch return error.NotUsable;
    errdefer dir.close(io);
    if (made) _ = linux.fchmod(dir.handle, 0o700);
    const flags: linux.O = .{ .ACCMODE = .RDWR, .CREAT = true, .CLOEXEC = true };
    const fd: i32 = @intCast(
        sys.check(linux.openat(dir.handle, "lock", flags, 0o600)) catch return error.NotUsable,
    );
    errdefer sys.close(fd);
    _ = sys.check(
        linux.flock(fd, lock_exclusive | lock_nonblocking),
    ) catch |err| return switch (err) {
        error.WouldBlock => error.Locked,
        error.Interrupted, error.SystemCallFailed => error.NotUsable,
    };
    return .{ .io = io, .dir = dir, .lock_fd = fd };
}

pub fn close(data: *DataDir) void {
    sys.close(data.lock_fd);
    data.dir.close(data.io);
    data.* = undefined;
}

pub fn read(data: *const DataDir, arena: std.mem.Allocator, name: []const u8) ReadError![]u8 {
    return data.dir.readFileAlloc(
        data.io,
        name,
        arena,
        .limited(file_size_max),
    ) catch |err| switch (err) {
        error.FileNotFound => error.Missing,
        else => error.NotReadable,
    };
}

/// After a crash the file is either the old one or the new one.
pub fn write(data: *const DataDir, comptime name: [:0]const u8, bytes: []const u8) sys.Error!void {
    const temporary = name ++ ".new";
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .TRUNC = true, .CLOEXEC = true };
    const fd: i32 = @intCast(try sys.check(linux.openat(data.dir.handle, temporary, flags, 0o600)));
    defer sys.close(fd);
    try sys.writeAll(fd, bytes);
    _ = try sys.check(linux.fsync(fd));
    _ = try sys.check(linux.renameat(data.dir.handle, temporary, data.dir.handle, name));
    _ = try sys.check(linux.fsync(data.dir.handle));
}

/// Opens a directory inside this one, and creates it if needed.
pub fn subDir(data: *const DataDir, name: []const u8) error{NotUsable}!Io.Dir {
    data.dir.createDirPath(data.io, name) catch return error.NotUsable;
    return data.dir.openDir(data.io, name, .{ .iterate = true }) catch error.NotUsable;
}

/// Returns the number of this start: one more than the previous one, durable before it is used.
pub fn nextEpoch(
    data: *const DataDir,
    arena: std.mem.Allocator,
) (ReadError || sys.Error || error{Damaged})!u64 {
    const last = data.read(arena, "epoch") catch |err| switch (err) {
        error.Missing => "0",
        error.NotReadable => return err,
    };
    const number =
        std.fmt.parseInt(u53, std.mem.trim(u8, last, " \n"), 10) catch return error.Damaged;
    var buffer: [24]u8 = undefined;
    const epoch = @as(u64, number) + 1;
    try data.write("epoch", std.mem.print(&buffer, "{d}\n", .{epoch}) catch unreachable);
    return epoch;
}

/// Returns the secret bytes of this name, which the first call creates.
pub fn secret(
    data: *const DataDir,
    comptime name: [:0]const u8,
) (ReadError || sys.Error || error{Damaged})![32]u8 {
    var bytes: [32]u8 = undefined;
    const file = data.dir.openFile(data.io, name, .{}) catch |err| switch (err) {
        error.FileNotFound => {
            sys.random(&bytes);
            var hex: [65]u8 = undefined;
            try data.write(name, std.mem.print(&hex, "{x}\n", .{&bytes}) catch unreachable);
            return bytes;
        },
        else => return error.NotReadable,
    };
    defer file.close(data.io);
    var buffer: [128]u8 = undefined;
    const text = buffer[0..try sys.readAt(file.handle, &buffer, 0)];
    const trimmed = std.mem.trim(u8, text, " \n");
    if (trimmed.len != 64) return error.Damaged;
    _ = std.fmt.hexToBytes(&bytes, trimmed) catch return error.Damaged;
    return bytes;
}

pub fn identity(
    data: *const DataDir,
    arena: std.mem.Allocator,
) (ReadError || error{Damaged})!Identity {
    const text = try data.read(arena, "identity.json");
    return std.json.parseFromSliceLeaky(
        Identity,
        arena,
        text,
        .{ .ignore_unknown_fields = true },
    ) catch error.Damaged;
}

pub fn writeIdentity(data: *const DataDir, value: Identity) sys.Error!void {
    var buffer: [16 * 1024]u8 = undefined;
    var writer: Io.Writer = .fixed(&buffer);
    std.json.Stringify.value(value, .{ .whitespace = .indent_2 }, &writer) catch
        return error.SystemCallFailed;
    try data.write("identity.json", writer.buffered());
}

fn exists(io: Io, path: []const u8) bool {
    const dir = Io.Dir.cwd().openDir(io, path, .{}) catch return false;
    dir.close(io);
    return true;
}

/// Changes with each start of the kernel; as long as it is the same, monotonic times of earlier
/// processes are valid.
pub fn kernelBootId() ?base.Uuid {
    const rc =
        linux.openat(linux.AT.FDCWD, "/proc/sys/kernel/random/boot_id", .{ .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return null);
    defer sys.close(fd);
    var text: [base.Uuid.text_size]u8 = undefined;
    const size = sys.check(linux.read(fd, &text, text.len)) catch return null;
    return base.Uuid.parse(text[0..size]) catch null;
}

const testing = std.testing;

fn testPath(buffer: []u8, tmp: *const testing.TmpDir) ![]const u8 {
    const size = try tmp.dir.realPath(testing.io, buffer);
    return std.fmt.bufPrint(buffer[size..], "{s}/data", .{buffer[0..size]});
}

test "a data directory belongs to one edge at a time" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    const path = try testPath(&buffer, &tmp);
    var data = try DataDir.open(testing.io, path);
    try testing.expectError(error.Locked, DataDir.open(testing.io, path));
    data.close();
    var again = try DataDir.open(testing.io, path);
    again.close();
}

test "epochs grow with each start, and secrets stay the same" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var data = try DataDir.open(testing.io, try testPath(&buffer, &tmp));
    defer data.close();
    try testing.expectEqual(1, try data.nextEpoch(arena.allocator()));
    try testing.expectEqual(2, try data.nextEpoch(arena.allocator()));
    const key = try data.secret("stream.key");
    try testing.expectEqual(key, try data.secret("stream.key"));
    try data.write("epoch", "x");
    try testing.expectError(error.Damaged, data.nextEpoch(arena.allocator()));
    try testing.expectError(error.Missing, data.identity(arena.allocator()));
}

test "an identity survives being written to its file" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var data = try DataDir.open(testing.io, try testPath(&buffer, &tmp));
    defer data.close();
    const value: Identity = .{
        .edgeId = .fromRandom(@splat(1)),
        .organizationId = .fromRandom(@splat(2)),
        .siteId = .fromRandom(@splat(3)),
        .siteName = "Zürich \"1\"",
        .url = "http://localhost:4000",
        .signingKeyId = .fromRandom(@splat(4)),
        .signingKey = &core.uplink.key_text.write(@splat(5)),
    };
    try data.writeIdentity(value);
    try testing.expectEqualDeep(value, try data.identity(arena.allocator()));
    try testing.expect(kernelBootId() != null);
}
