//! The directory `exports` of a store, where jobs write versions as images. A file's name says
//! which version and format it is, so that the same job finds what it has written. A `.part` that
//! no process writes is the rest of an export that was canceled. Nobody else removes the files, so
//! that those that are old, or more than a part of the disk, go by themselves. Files with other
//! names were put there by somebody and stay.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const image = @import("image");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const Io = std.Io;
const LOCK = std.posix.LOCK;
const linux = std.os.linux;

pub const directory = "exports";
pub const part_suffix = ".part";
/// Long enough to copy a file, also over a weekend.
const age_max_ms = 7 * std.time.ms_per_day;
/// The files together take at most this part of the store's file system.
const disk_share = 4;
/// Of the version's id in a name.
const id_digits = 8;
const name_size_max = store_module.manifest.name_size_max + 40;

/// Below the store's directory.
pub const Path = base.BoundedArray(u8, directory.len + 1 + name_size_max);

/// The name of the vDisk, the version's number, and the beginning of its id.
pub fn pathOf(manifest: *const store_module.Manifest, format: image.writer.Format) Path {
    var path: Path = .empty;
    var name: [store_module.manifest.name_size_max]u8 = undefined;
    const given = manifest.name.constSlice();
    for (given, 0..) |char, index| {
        const is_plain = std.ascii.isAlphanumeric(char) or char == '_' or
            (index > 0 and (char == '.' or char == '-'));
        name[index] = if (is_plain) char else '-';
    }
    const id = manifest.version.toText();
    var buffer: [path.buffer.len]u8 = undefined;
    const text = std.mem.print(&buffer, directory ++ "/{s}-{d}-{s}.{t}", .{
        if (given.len > 0) name[0..given.len] else "vdisk", manifest.number, id[0..id_digits],
        format,
    }) catch unreachable;
    path = Path.fromSlice(text) catch unreachable;
    return path;
}

/// Returns whether `pathOf` gives such a name, or it is one of an export that is being written.
fn isOurs(name: []const u8) bool {
    const whole = std.mem.cutSuffix(u8, name, part_suffix) orelse name;
    const dot = std.mem.findScalarLast(u8, whole, '.') orelse return false;
    _ = std.meta.stringToEnum(image.writer.Format, whole[dot + 1 ..]) orelse return false;
    const id_at = std.mem.findScalarLast(u8, whole[0..dot], '-') orelse return false;
    const id = whole[id_at + 1 .. dot];
    if (id.len != id_digits) return false;
    for (id) |digit| switch (digit) {
        '0'...'9', 'a'...'f' => {},
        else => return false,
    };
    const number_at = std.mem.findScalarLast(u8, whole[0..id_at], '-') orelse return false;
    _ = std.fmt.parseInt(u32, whole[number_at + 1 .. id_at], 10) catch return false;
    return number_at > 0;
}

/// Makes the directory if it is not there.
pub fn make(call: *const Call) Call.Error!void {
    const rc = linux.mkdirat(call.opened.on.dir_fd, directory, 0o700);
    switch (linux.errno(rc)) {
        .SUCCESS, .EXIST => {},
        .NOSPC, .DQUOT => return call.fail("The disk of the store {s} is full.", .{call.path()}),
        else => return call.fail("{s}/" ++ directory ++ " cannot be created.", .{call.path()}),
    }
}

/// Removes what exports that were canceled or killed have left. Without the directory there is
/// nothing to do.
pub fn removeAbandoned(call: *const Call) void {
    const io = call.init.io;
    const store_dir: Io.Dir = .{ .handle = call.opened.on.dir_fd };
    var dir = store_dir.openDir(io, directory, .{ .iterate = true }) catch return;
    defer dir.close(io);
    var entries = dir.iterate();
    // What cannot be removed now is tried again by the next export.
    while (entries.next(io) catch return) |entry| {
        if (!std.mem.endsWith(u8, entry.name, part_suffix) or !isOurs(entry.name)) continue;
        const file = dir.openFile(io, entry.name, .{ .follow_symlinks = false }) catch continue;
        defer file.close(io);
        if (lock(file.handle)) dir.deleteFile(io, entry.name) catch {};
    }
}

const Oldest = struct { name: base.BoundedArray(u8, 255), modified_ms: i64 };

/// Removes finished exports that are old, and the oldest of them while all take too much of the
/// disk. A file that is open stays readable for who reads it.
pub fn removeOld(call: *const Call, now_unix_ms: u64) void {
    const io = call.init.io;
    const store_dir: Io.Dir = .{ .handle = call.opened.on.dir_fd };
    var dir = store_dir.openDir(io, directory, .{ .iterate = true }) catch return;
    defer dir.close(io);
    const space = host.file_system.spaceOf(dir.handle) catch return;
    const taken_max = space.total_bytes / disk_share;
    const kept_from_ms = @as(i64, @intCast(now_unix_ms)) - age_max_ms;
    // Each round removes one.
    for (0..rounds_max) |_| {
        var taken: u64 = 0;
        const oldest = findOldest(io, dir, &taken) orelse return;
        if (oldest.modified_ms >= kept_from_ms and taken <= taken_max) return;
        dir.deleteFile(io, oldest.name.constSlice()) catch return;
        host.log.info("Removed the export {s}, which is {s}.", .{
            oldest.name.constSlice(),
            if (oldest.modified_ms < kept_from_ms) "older than 7 days" else "the oldest: all " ++
                "exports take more than a quarter of the store's disk",
        });
    }
}

const rounds_max = 1000;

fn findOldest(io: Io, dir: Io.Dir, taken: *u64) ?Oldest {
    var found: ?Oldest = null;
    var entries = dir.iterate();
    while (entries.next(io) catch return null) |entry| {
        if (std.mem.endsWith(u8, entry.name, part_suffix) or !isOurs(entry.name)) continue;
        const name = @FieldType(Oldest, "name").fromSlice(entry.name) catch continue;
        var name_z: [256]u8 = @splat(0);
        @memcpy(name_z[0..entry.name.len], entry.name);
        var stat: linux.Statx = undefined;
        const rc = linux.statx(dir.handle, name_z[0..255 :0], linux.AT.SYMLINK_NOFOLLOW, .{
            .TYPE = true,
            .MTIME = true,
            .BLOCKS = true,
        }, &stat);
        if (linux.errno(rc) != .SUCCESS or stat.mode & linux.S.IFMT != linux.S.IFREG) continue;
        taken.* += stat.blocks * 512;
        const modified_ms = stat.mtime.sec * std.time.ms_per_s;
        if (found) |before| if (before.modified_ms <= modified_ms) continue;
        found = .{ .name = name, .modified_ms = modified_ms };
    }
    return found;
}

/// Returns false if another process writes the file. The lock ends with the process.
pub fn lock(fd: i32) bool {
    return linux.errno(linux.flock(fd, LOCK.EX | LOCK.NB)) == .SUCCESS;
}

const testing = std.testing;

test "a file's name has no characters that a shell or Windows would not take" {
    var manifest: store_module.Manifest = .{
        .store = .fromRandom(@splat(1)),
        .organization = .zero,
        .vdisk = .fromRandom(@splat(2)),
        .version = .fromRandom(@splat(0x3a)),
        .parent = .zero,
        .number = 7,
        .incarnation = 0,
        .counter = 1,
        .created_unix_ms = 1,
        .disk_size = 512,
        .root = .zeros,
    };
    const empty = pathOf(&manifest, .raw);
    try testing.expectEqualStrings("exports/vdisk-7-3a3a3a3a.raw", empty.constSlice());
    manifest.name = @TypeOf(manifest.name).fromSlice("../Büro 1.2/x") catch unreachable;
    manifest.number = std.math.maxInt(u32);
    const escaped = pathOf(&manifest, .vhdx);
    try testing.expectEqualStrings(
        "exports/-.-B--ro-1.2-x-4294967295-3a3a3a3a.vhdx",
        escaped.constSlice(),
    );
    const longest: [store_module.manifest.name_size_max]u8 = @splat('n');
    manifest.name = @TypeOf(manifest.name).fromSlice(&longest) catch unreachable;
    try testing.expect(pathOf(&manifest, .qcow2).count > longest.len);
    for ([_][]const u8{ empty.constSlice(), escaped.constSlice() }) |path| {
        const given = path[directory.len + 1 ..];
        var part: [128]u8 = undefined;
        try testing.expect(isOurs(given));
        try testing.expect(isOurs(try std.mem.print(&part, "{s}.part", .{given})));
    }
}

test "a file that somebody has put there is none of ours" {
    for ([_][]const u8{
        "debian.raw",              "debian-12.qcow2",          "backup.part",
        "lab-3-3a3a3a3.raw",       "lab-3-3A3A3A3A.raw",       "lab-3-3a3a3a3a.vmdk",
        "lab-three-3a3a3a3a.vhdx", "3a3a3a3a.raw",             "-3-3a3a3a3a.raw.bak",
        "3-3a3a3a3a.raw",          "lab-3-3a3a3a3a.raw.part2", "lab-99999999999-3a3a3a3a.raw",
    }) |name| try testing.expect(!isOurs(name));
}
