//! A signing key of the organization that somebody has named on this machine (`bootfarm-edge trust-key`), for a control
//! plane that was restored to before a change of its key. It waits in the data directory until the next desired state is
//! taken, whichever key that is by: what is named never stays a second way in.

const std = @import("std");
const core = @import("core");
const DataDir = @import("data_dir.zig").DataDir;

pub const file_name = "trust-key";
const temporary_name = file_name ++ ".new";

/// Null where none is named, or the file is no key.
pub fn read(data: *const DataDir) ?[32]u8 {
    var buffer: [128]u8 = undefined;
    const text = data.dir.readFile(data.io, file_name, &buffer) catch return null;
    return core.uplink.message.parseKey(std.mem.trim(u8, text, " \n")) catch null;
}

/// By another process than the edge: whole, or not at all.
pub fn write(io: std.Io, dir: std.Io.Dir, key: [32]u8) !void {
    const text = core.uplink.message.keyText(key);
    try dir.writeFile(io, .{ .sub_path = temporary_name, .data = &text });
    try dir.rename(temporary_name, dir, file_name, io);
}

pub fn forget(data: *const DataDir) void {
    data.dir.deleteFile(data.io, file_name) catch {};
}

const testing = std.testing;

test "a named key is there until it is forgotten, and what is no key is none" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    const size = try tmp.dir.realPath(testing.io, &buffer);
    const path = try std.fmt.bufPrint(buffer[size..], "{s}/data", .{buffer[0..size]});
    var data = try DataDir.open(testing.io, path);
    defer data.close();
    try testing.expectEqual(null, read(&data));
    try write(testing.io, data.dir, @splat(1));
    try write(testing.io, data.dir, @splat(2));
    try testing.expectEqual(@as([32]u8, @splat(2)), read(&data));
    forget(&data);
    try testing.expectEqual(null, read(&data));
    try data.dir.writeFile(testing.io, .{ .sub_path = file_name, .data = "no key" });
    try testing.expectEqual(null, read(&data));
}
