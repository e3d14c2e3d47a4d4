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
/// -1 where the disk did not take a new file.
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
    // Where no file can be made, the directory itself is locked. Every edge locks both.
    try lock(dir.handle);
    const fd: i32 = openLock(dir.handle, flags) catch
        openLock(dir.handle, .{ .ACCMODE = .RDONLY, .CLOEXEC = true }) catch -1;
    errdefer if (fd >= 0) sys.close(fd);
    if (fd >= 0) try lock(fd);
    return .{ .io = io, .dir = dir, .lock_fd = fd };
}

fn openLock(dir_fd: i32, flags: linux.O) sys.Error!i32 {
    return @intCast(try sys.check(linux.openat(dir_fd, "lock", flags, 0o600)));
}

fn lock(fd: i32) OpenError!void {
    _ = sys.check(
        linux.flock(fd, lock_exclusive | lock_nonblocking),
    ) catch |err| return switch (err) {
        error.WouldBlock => error.Locked,
        error.Interrupted, error.SystemCallFailed => error.NotUsable,
    };
}

pub fn close(data: *DataDir) void {
    if (data.lock_fd >= 0) sys.close(data.lock_fd);
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

pub const Epoch = struct {
    number: u64,
    /// It is on the disk: the next start takes a higher one.
    is_kept: bool,
};

/// A number with 16 digits and a line feed, written in place: it needs no space on a full disk.
const epoch_size = 17;
const epoch_max = std.math.maxInt(u53);

/// Returns the number of this start: one more than the previous one, durable before it is used.
/// `above` is the highest one that other files name. A disk that does not keep it, or has lost the
/// previous one, keeps no edge from starting: the number is then taken from the wall clock, with
/// random digits behind, so that no two starts take the same. It is higher than every number that
/// was counted, and the next start counts on from it if it could be written meanwhile.
pub fn nextEpoch(data: *const DataDir, above: u64, unix_ms: u64) Epoch {
    const last = data.lastEpoch() catch {
        const number = epochByClock(above, unix_ms);
        return .{ .number = number, .is_kept = data.keepEpoch(number) };
    };
    const next = @max(last, above) + 1;
    if (next <= epoch_max and data.keepEpoch(next)) return .{ .number = next, .is_kept = true };
    const number = epochByClock(next, unix_ms);
    return .{ .number = number, .is_kept = data.keepEpoch(number) };
}

fn lastEpoch(data: *const DataDir) error{NotReadable}!u64 {
    var buffer: [64]u8 = undefined;
    const text = data.dir.readFile(data.io, "epoch", &buffer) catch |err| return switch (err) {
        error.FileNotFound => 0,
        else => error.NotReadable,
    };
    return std.fmt.parseInt(u53, std.mem.trim(u8, text, " \n"), 10) catch error.NotReadable;
}

/// Milliseconds since 1970 take 41 bits until 2039, ten random ones follow. Where the clock says
/// less than what was counted, only chance keeps two starts apart, by 40 bits.
fn epochByClock(above: u64, unix_ms: u64) u64 {
    var random: [8]u8 = undefined;
    sys.random(&random);
    const bits = std.mem.readInt(u64, &random, .little);
    const by_clock = @as(u64, @as(u42, @truncate(unix_ms))) << 10 | (bits & 1023);
    const by_chance = above +| 1 +| (bits >> 24);
    return @min(@max(by_clock, by_chance), epoch_max);
}

/// Overwrites the file in place; returns whether the number is on the disk.
pub fn keepEpoch(data: *const DataDir, number: u64) bool {
    assert(number > 0);
    return if (data.writeEpoch(number)) true else |_| false;
}

fn writeEpoch(data: *const DataDir, number: u64) sys.Error!void {
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .CLOEXEC = true };
    const fd: i32 = @intCast(try sys.check(linux.openat(data.dir.handle, "epoch", flags, 0o600)));
    defer sys.close(fd);
    var buffer: [epoch_size]u8 = undefined;
    const text = std.mem.print(&buffer, "{d:0>16}\n", .{number}) catch unreachable;
    try sys.writeAllAt(fd, text, 0);
    _ = try sys.check(linux.ftruncate(fd, epoch_size));
    _ = try sys.check(linux.fsync(fd));
    // It may be new.
    _ = linux.fsync(data.dir.handle);
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
            try data.writeSecret(name, bytes);
            return bytes;
        },
        else => return error.NotReadable,
    };
    defer file.close(data.io);
    var buffer: [128]u8 = undefined;
    const size = sys.readAt(file.handle, &buffer, 0) catch return error.NotReadable;
    const text = buffer[0..size];
    const trimmed = std.mem.trim(u8, text, " \n");
    if (trimmed.len != 64) return error.Damaged;
    _ = std.fmt.hexToBytes(&bytes, trimmed) catch return error.Damaged;
    return bytes;
}

pub fn writeSecret(
    data: *const DataDir,
    comptime name: [:0]const u8,
    bytes: [32]u8,
) sys.Error!void {
    var hex: [65]u8 = undefined;
    try data.write(name, std.mem.print(&hex, "{x}\n", .{&bytes}) catch unreachable);
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
    try testing.expectEqual(Epoch{ .number = 1, .is_kept = true }, data.nextEpoch(0, 0));
    try testing.expectEqual(Epoch{ .number = 2, .is_kept = true }, data.nextEpoch(0, 0));
    // A file of an earlier release, which later ones and that one read.
    try data.write("epoch", "41\n");
    try testing.expectEqual(Epoch{ .number = 42, .is_kept = true }, data.nextEpoch(7, 0));
    const text = try data.read(arena.allocator(), "epoch");
    try testing.expectEqualStrings("0000000000000042\n", text);
    try testing.expectEqual(Epoch{ .number = 91, .is_kept = true }, data.nextEpoch(90, 0));
    const key = try data.secret("stream.key");
    try testing.expectEqual(key, try data.secret("stream.key"));
    try testing.expectError(error.Missing, data.identity(arena.allocator()));
}

test "a disk that does not keep the epoch, or has lost it, gets one that no other start had" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    var data = try DataDir.open(testing.io, try testPath(&buffer, &tmp));
    defer data.close();
    const now_ms = 1_795_000_000_000;
    _ = data.nextEpoch(0, now_ms);
    for ([_][]const u8{ "x", "", "99999999999999999999" }) |damaged| {
        try data.write("epoch", damaged);
        const chosen = data.nextEpoch(0, now_ms);
        try testing.expect(chosen.is_kept and chosen.number >= now_ms << 10);
        const next = data.nextEpoch(0, now_ms);
        try testing.expectEqual(Epoch{ .number = chosen.number + 1, .is_kept = true }, next);
    }
    // A directory in its place can be neither read nor written, by nobody.
    try data.dir.deleteFile(testing.io, "epoch");
    try data.dir.createDir(testing.io, "epoch", .default_dir);
    var last: u64 = 0;
    for (0..20) |step| {
        const chosen = data.nextEpoch(5, now_ms + step);
        try testing.expect(!chosen.is_kept);
        try testing.expect(chosen.number > last);
        last = chosen.number;
    }
    // Without a clock, chance keeps them apart.
    const first, const second = .{ data.nextEpoch(5, 0), data.nextEpoch(5, 0) };
    try testing.expect(first.number > 5 and second.number > 5);
    try testing.expect(first.number != second.number);
    try testing.expect(first.number <= epoch_max);
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
